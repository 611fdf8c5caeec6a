package text

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Node is one value of a JSON text.
type Node struct {
	Name  string     // the member's name, if the parent is an object
	Value json.Token // a scalar, or json.Delim '{' or '[' with the elements in Kids
	Kids  []Node
}

// readNode reads the next value of a valid JSON text.
func readNode(dec *json.Decoder) (n Node) {
	n.Value, _ = dec.Token()
	open, ok := n.Value.(json.Delim)
	for ok && dec.More() {
		var name json.Token
		if open == '{' {
			name, _ = dec.Token()
		}
		kid := readNode(dec)
		kid.Name, _ = name.(string)
		n.Kids = append(n.Kids, kid)
	}
	if ok {
		_, _ = dec.Token()
	}
	return n
}

// Definition parses an element of a tools/list result and keeps the members that
// the model and the host rely on. It returns false if raw is not a JSON object.
// Names match without case, as in [json.Unmarshal].
func Definition(raw json.RawMessage) (n Node, ok bool) {
	if !json.Valid(raw) { // Valid also refuses nesting of more than 10,000
		return Node{}, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	n = readNode(dec)
	n.Kids = slices.DeleteFunc(n.Kids, func(kid Node) bool {
		switch FoldCase(kid.Name) {
		case "name", "title", "description", "inputschema", "outputschema", "annotations":
			return false
		}
		return true
	})
	return n, n.Value == json.Delim('{')
}

// FoldCase returns s in lower case. Letters with several lower-case forms, such as
// the Kelvin sign, get one form.
func FoldCase(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// CanonicalHash returns a SHA-256 hash, in hexadecimal, of the parts of a
// tools/list element that the model and the host rely on: name, title,
// description, schemas and annotations. Equal JSON values have equal hashes,
// regardless of space, escapes and order of members. A number counts as written:
// 1 is not 1.0. Members with the same name count in their order, because readers
// disagree which one wins. If raw is not a JSON object, its bytes are hashed.
func CanonicalHash(raw json.RawMessage) string {
	text := append([]byte("bytes "), raw...)
	if n, ok := Definition(raw); ok {
		text = n.appendCanonical(nil, true)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// appendCanonical appends n with its members sorted and the length before each
// string. Stored hashes depend on this format: it must never change. If folds is
// set, n is decoded to a struct, so its names match in any case.
func (n Node) appendCanonical(b []byte, folds bool) []byte {
	switch v := n.Value.(type) {
	case json.Delim:
		kids := make([]*Node, len(n.Kids))
		for i := range n.Kids {
			kids[i] = &n.Kids[i]
		}
		if v == '{' {
			slices.SortStableFunc(kids, func(x, y *Node) int {
				if folds {
					return cmp.Compare(FoldCase(x.Name), FoldCase(y.Name))
				}
				return cmp.Compare(x.Name, y.Name)
			})
		}
		b = append(b, byte(v))
		for _, kid := range kids {
			if v == '{' {
				b = fmt.Appendf(b, "%d:%s", len(kid.Name), kid.Name)
			}
			b = kid.appendCanonical(b, folds && FoldCase(kid.Name) == "annotations")
		}
		return append(b, byte(v)+2) // the closing bracket
	case string:
		return fmt.Appendf(b, "%d:%s", len(v), v)
	default:
		return fmt.Appendf(b, "%v,", v)
	}
}
