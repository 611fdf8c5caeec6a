package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// suffixLength is the length of the suffix that makes a name unique: an underscore
// and a hash of 32 bits in hexadecimal.
const suffixLength = 1 + 8

// registeredName returns the name by which the model calls a server's tool: the
// prefix, two underscores, and the tool's own name. The default prefix is "mcp_"
// and the server's name with every - replaced by _. A prefix without "mcp_" gets
// it in front.
//
//	registeredName("my-server", "", "run")   = "mcp_my_server__run"
//	registeredName("my-server", "ops", "run") = "mcp_ops__run"
//
// If a provider would reject the name, registeredName makes it safe: it replaces
// other characters by underscores, cuts the name and appends a hash of the
// server's and the tool's name. The result depends on nothing else.
func registeredName(server, prefix, tool string) string {
	name := namePrefix(server, prefix) + "__" + tool
	if text.IsSafeName(name) {
		return name
	}
	return suffixedName(name, server, tool, 0)
}

// namePrefix returns the part of a registered name before the two underscores.
func namePrefix(server, prefix string) string {
	switch {
	case prefix == "":
		return "mcp_" + strings.ReplaceAll(server, "-", "_")
	case !strings.HasPrefix(prefix, "mcp_"):
		return "mcp_" + prefix
	}
	return prefix
}

// A prefixOwners says which server owns a prefix of names: the first that had it,
// even after its removal. Otherwise one server could take over the calls of
// another: with the same prefix, or with a tool "b__run" of server "a" beside a
// server "a__b".
type prefixOwners map[string]string

// claim gives a prefix to the server, unless another has it, and reports whether
// it did.
func (p prefixOwners) claim(prefix, server string) bool {
	if _, ok := p[prefix]; ok {
		return false
	}
	p[prefix] = server
	return true
}

// owner returns the server that owns the longest prefix of name, or "".
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

// suffixedName returns a safe form of name that ends in a hash of the server and
// the tool. Each try > 0 gives another one, in case the first is taken too.
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
