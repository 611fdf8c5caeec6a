package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// maxNameLength is the longest tool name, in bytes, that the common model
// providers take; they also take only [A-Za-z0-9_-].
const maxNameLength = 64

// suffixLength is the length of the hash that makes a name unique: 32 bits in
// hexadecimal behind an underscore.
const suffixLength = 1 + 8

// registeredName returns the name under which the model calls a server's tool:
// the prefix, two underscores, the tool's own name. Without a prefix it is
// "mcp_" and the server's name with - as _; a prefix that lacks "mcp_" gets it.
//
//	registeredName("my-server", "", "run")   = "mcp_my_server__run"
//	registeredName("my-server", "ops", "run") = "mcp_ops__run"
//
// A name that a provider would refuse is made safe: other characters become
// underscores, it is cut, and a hash of the server's and the tool's name is
// appended, so that the result depends on nothing else.
func registeredName(server, prefix, tool string) string {
	switch {
	case prefix == "":
		prefix = "mcp_" + strings.ReplaceAll(server, "-", "_")
	case !strings.HasPrefix(prefix, "mcp_"):
		prefix = "mcp_" + prefix
	}
	name := prefix + "__" + tool
	if isSafeName(name) {
		return name
	}
	return suffixedName(name, server, tool, 0)
}

func isSafeName(name string) bool {
	if name == "" || len(name) > maxNameLength {
		return false
	}
	for i := range len(name) {
		if !isSafeByte(name[i]) {
			return false
		}
	}
	return true
}

func isSafeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// suffixedName returns a safe form of name that carries a hash of its owner.
// With try > 0 it returns others, for the case that the first is taken too.
func suffixedName(name, server, tool string, try int) string {
	var b strings.Builder
	for _, r := range name {
		if b.Len() == maxNameLength-suffixLength {
			break
		}
		if r < 0x80 && isSafeByte(byte(r)) {
			b.WriteByte(byte(r))
		} else {
			b.WriteByte('_')
		}
	}
	owner := server + "\x00" + tool
	if try > 0 {
		owner += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(owner))
	return b.String() + "_" + hex.EncodeToString(sum[:4])
}
