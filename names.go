package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

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
	name := namePrefix(server, prefix) + "__" + tool
	if text.IsSafeName(name) {
		return name
	}
	return suffixedName(name, server, tool, 0)
}

// namePrefix returns what stands before the two underscores.
func namePrefix(server, prefix string) string {
	switch {
	case prefix == "":
		return "mcp_" + strings.ReplaceAll(server, "-", "_")
	case !strings.HasPrefix(prefix, "mcp_"):
		return "mcp_" + prefix
	}
	return prefix
}

// A prefixOwners says, by prefix, whose names begin with it: those of the
// server that was there first, even when it is gone. Otherwise a server could
// be called in the place of another, by a like prefix or by a tool's name such
// as "b__run" of server "a" beside a server "a__b".
type prefixOwners map[string]string

// claim makes a prefix the server's and reports whether it was nobody's.
func (p prefixOwners) claim(prefix, server string) bool {
	if _, ok := p[prefix]; ok {
		return false
	}
	p[prefix] = server
	return true
}

// owner returns the server that has the longest prefix of name, or "".
func (p prefixOwners) owner(name string) string {
	for i := len(name) - 2; i >= 0; i-- {
		if name[i] == '_' && name[i+1] == '_' {
			if server, ok := p[name[:i]]; ok {
				return server
			}
		}
	}
	return ""
}

// nameOf returns the registered name of a tool.
func (p prefixOwners) nameOf(registered, server, tool string) string {
	if owner := p.owner(registered); owner != "" && owner != server {
		return suffixedName(registered, server, tool, 0)
	}
	return registered
}

// suffixedName returns a safe form of name that carries a hash of its owner.
// With try > 0 it returns others, for the case that the first is taken too.
func suffixedName(name, server, tool string, try int) string {
	var b strings.Builder
	for _, r := range name {
		if b.Len() == text.MaxName-suffixLength {
			break
		}
		if r < 0x80 && text.IsSafeByte(byte(r)) {
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
