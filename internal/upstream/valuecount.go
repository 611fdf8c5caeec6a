package upstream

import "bytes"

// A valueCounter counts the values of a JSON-RPC message as its bytes arrive, in the unit
// of [text.CountValues], without those of its result. mcp-go decodes a message as a whole,
// but for the result, which is counted once it is known what it is for.
type valueCounter struct {
	n       int
	depth   int
	quoted  bool
	escaped bool
	key     []byte // the last string of the outermost object, or its beginning
	result  bool   // we are within the result
	method  bool   // it has a method, so it is no answer
	id      bool   // it may have an id
}

const resultKey, methodKey, idKey = "result", "method", "id"

// mayAnswer reports whether mcp-go may take the message so far for an answer, in whatever
// way its members are written.
func (v *valueCounter) mayAnswer() bool { return v.id && !v.method }

// take counts the next byte.
func (v *valueCounter) take(c byte) {
	if v.quoted {
		switch {
		case v.escaped:
			v.escaped = false
		case c == '\\':
			v.escaped = true
		case c == '"':
			v.quoted = false
			return
		}
		if v.depth == 1 && len(v.key) <= len(resultKey) {
			v.key = append(v.key, c)
		}
		return
	}
	switch c {
	case '"':
		v.quoted = true
		if v.depth == 1 {
			v.key = v.key[:0]
		}
		return
	case ',':
		if v.depth == 1 {
			v.result = false
		}
	case ':':
		if v.depth == 1 {
			v.result = string(v.key) == resultKey
			v.method = v.method || string(v.key) == methodKey
			v.id = v.id || bytes.EqualFold(v.key, []byte(idKey)) || bytes.ContainsRune(v.key, '\\')
		}
	case '[', '{':
		v.depth++
	case ']', '}':
		v.depth--
		return
	default:
		return
	}
	if !v.result {
		v.n++
	}
}

// reset begins a message.
func (v *valueCounter) reset() { *v = valueCounter{key: v.key[:0]} }

// hasMoreValues reports whether message has more than limit values beside its result. Each
// has a byte, so most messages need not be read.
func hasMoreValues(message []byte, limit int) bool {
	if len(message) <= limit {
		return false
	}
	var v valueCounter
	for _, c := range message {
		v.take(c)
	}
	return v.n > limit
}
