package weaviatestore

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/google/uuid"
)

// TenantName returns the name of a scope's tenant: the scope itself if it has 1
// to 63 of a-z, 0-9, "_" and "-", as "system" and UUIDs have, and otherwise the
// SHA-256 of the scope in hexadecimal.
//
// No two scopes share a tenant: only hashes have 64 characters, which is the
// most that Weaviate takes. Capital letters are hashed since each tenant is a
// directory of its name, and some file systems don't tell them from small ones.
func TenantName(scope string) string {
	if plainScope.MatchString(scope) {
		return scope
	}
	return hash(scope)
}

var plainScope = regexp.MustCompile(`\A[a-z0-9_-]{1,63}\z`)

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// space is what object ids are made in; it must never change.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/mcphybrid/mcphybrid/stores/weaviatestore"))

// objectID returns the id of a tool's object: a UUID of version 5 of the tool's
// ID. The same tool has the same one in every tenant.
func objectID(tool string) string {
	return uuid.NewSHA1(space, []byte(tool)).String()
}
