package weaviatestore

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/google/uuid"
)

// TenantName returns the name of a scope's tenant. It is the scope itself if that has 1
// to 63 characters a-z, 0-9, "_" and "-", as "system" and UUIDs do. Otherwise it is the
// SHA-256 of the scope in hexadecimal.
//
// No two scopes share a tenant: only hashes have 64 characters, the most that Weaviate
// accepts. Scopes with capital letters are hashed, because Weaviate stores each tenant
// in a directory of its name and some file systems ignore case.
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

// space is the namespace of object ids. It must never change.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/mcphybrid/mcphybrid/stores/weaviatestore"))

// objectID returns the id of a record's object: a UUID of version 5 of the record's ID.
// It is the same in every tenant.
func objectID(tool string) string {
	return uuid.NewSHA1(space, []byte(tool)).String()
}
