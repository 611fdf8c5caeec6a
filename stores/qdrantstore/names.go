package qdrantstore

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// CollectionName returns the default name of a scope's collection:
//
//   - sys_tool_index for "system"
//   - kb_user_{id}_tools for "user:{id}", the scope of a Manager's user
//   - kb_scope_{scope}_tools for any other scope
//
// If an id or a scope is not 1 to 64 characters a-z, 0-9, "_" and "-", as a UUID is,
// the name has "sha256." and its SHA-256 in hexadecimal instead. No two scopes share a
// collection: only hashed names contain a dot. Capital letters are hashed, because
// Qdrant stores each collection in a directory of its name and some file systems
// ignore case.
func CollectionName(scope string) string {
	if scope == systemScope {
		return "sys_tool_index"
	}
	kind := "scope"
	if id, ok := userOf(scope); ok {
		kind, scope = "user", id
	}
	if !plainScope.MatchString(scope) {
		sum := sha256.Sum256([]byte(scope))
		scope = "sha256." + hex.EncodeToString(sum[:])
	}
	return "kb_" + kind + "_" + scope + "_tools"
}

// userOf returns the id of the user whose records are in a scope.
func userOf(scope string) (id string, ok bool) { return strings.CutPrefix(scope, "user:") }

// systemScope is the scope of the records that all users share.
const systemScope = "system"

var plainScope = regexp.MustCompile(`\A[a-z0-9_-]{1,64}\z`)

// bareSuffix is added to the name of a scope's collection for its second one. No
// result of CollectionName ends in it.
const bareSuffix = "_without_vectors"

// pointID returns the id of a record's point: the first half of the SHA-256 of the
// record's ID, as a UUID of version 8 (RFC 9562, for custom formats).
func pointID(tool string) string {
	sum := sha256.Sum256([]byte(tool))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
