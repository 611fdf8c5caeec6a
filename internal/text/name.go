package text

// MaxName is the longest tool name, in bytes, that the common model providers
// take.
const MaxName = 64

// IsSafeName reports whether a tool can have the name with the common model
// providers: they take [A-Za-z0-9_-]{1,64}.
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

// IsSafeByte reports whether c can stand in a name that [IsSafeName].
func IsSafeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
