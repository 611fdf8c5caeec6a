package text

import (
	"fmt"
	"strings"
)

// MaxName is the longest tool name, in bytes, that the common model providers
// accept.
const MaxName = 64

// IsSafeName reports whether the common model providers accept name as a tool
// name: it matches [A-Za-z0-9_-]{1,64}.
func IsSafeName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		if !IsSafeByte(name[i]) {
			return false
		}
	}
	return true
}

// IsSafeByte reports whether c may occur in a name that passes [IsSafeName].
func IsSafeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// Names returns the first 10 of names, quoted, and the number of further ones.
func Names(names []string) string {
	const most = 10
	var b strings.Builder
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", Line(name, MaxName))
	}
	if len(names) > most {
		fmt.Fprintf(&b, " and %d more", len(names)-most)
	}
	return b.String()
}
