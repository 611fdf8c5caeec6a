package qdrantstore

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// CollectionName returns the name of a scope's collection where
// [Options].Collection does not say otherwise: sys_tool_index for "system",
// kb_user_{scope}_tools for any other scope of at most 64 of a-z, 0-9, "_" and
// "-", as UUIDs are. Everything else becomes kb_user_sha256.{hash}_tools, with
// the SHA-256 of the scope in hexadecimal.
//
// No two scopes share a collection: only hashed names have a dot. Capital
// letters are hashed since the file system under Qdrant, where each collection
// is a directory of its name, may not tell them from small ones.
func CollectionName(scope string) string {
	switch {
	case scope == systemScope:
		return "sys_tool_index"
	case plainScope.MatchString(scope):
		return "kb_user_" + scope + "_tools"
	}
	sum := sha256.Sum256([]byte(scope))
	return "kb_user_sha256." + hex.EncodeToString(sum[:]) + "_tools"
}

// systemScope is the scope of the tools that all users share.
const systemScope = "system"

var plainScope = regexp.MustCompile(`\A[a-z0-9_-]{1,64}\z`)

// bareSuffix makes of the name of a scope's collection that of its other one.
// No name of CollectionName ends in it.
const bareSuffix = "_without_vectors"

// pointID returns the id of a tool's point: the first half of the SHA-256 of
// the tool's ID as a UUID of version 8, that for which everyone may choose
// their own way (RFC 9562).
func pointID(tool string) string {
	sum := sha256.Sum256([]byte(tool))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
