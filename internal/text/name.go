package text

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
