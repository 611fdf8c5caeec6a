package text

// ValueSize is how many bytes a value takes at most once it is decoded into Go's maps and
// slices, besides its text. An object in an object takes that much for its brace and
// its colon each; most values take a third.
const ValueSize = 175

// CountValues returns how many values a JSON message has: members, elements, arrays and
// objects. It counts the signs before them, so an array or an object that is a member or
// an element counts twice, and the first element of an array with its array. What is
// not JSON has a count, too.
func CountValues(message []byte) (n int) {
	quoted := false
	for i := 0; i < len(message); i++ {
		switch c := message[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ',' || c == ':' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
