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

// A node is one value of a JSON text.
type Node struct {
	Name  string     // of a member
	Value json.Token // json.Delim '{' or '[' if it has kids
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

// Definition returns of a tools/list element the members that the model
// and the host rely on, or false if it is no JSON object. Names match without
// case, as in [json.Unmarshal].
func Definition(raw json.RawMessage) (n Node, ok bool) {
	if !json.Valid(raw) { // among others, what nests 10,000 deep
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

// FoldCase returns s in lower case, with one form for letters that have
// several, such as the Kelvin sign.
func FoldCase(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// CanonicalHash returns a hash of what the model and the host rely on in a
// tools/list element: the name, title, description, schemas and annotations.
// It is the same for equal JSON values, whatever their space, escapes and
// order of members, but a number counts as it is written: 1 is not 1.0. Of
// members with the same name, which are read by this one and that, the order
// counts too. What is no JSON object is hashed byte by byte.
func CanonicalHash(raw json.RawMessage) string {
	text := append([]byte("bytes "), raw...)
	if n, ok := Definition(raw); ok {
		text = n.appendCanonical(nil, true)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// appendCanonical appends n with its members sorted and the length of each
// string before it. Hashes are stored: this must never change. If folds, n is
// decoded to a struct, for which names in any case are the same.
func (n Node) appendCanonical(b []byte, folds bool) []byte {
	switch v := n.Value.(type) {
	case json.Delim:
		kids := slices.Clone(n.Kids)
		if v == '{' {
			slices.SortStableFunc(kids, func(x, y Node) int {
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
		return append(b, byte(v)+2) // the closing one
	case string:
		return fmt.Appendf(b, "%d:%s", len(v), v)
	default:
		return fmt.Appendf(b, "%v,", v)
	}
}
