package text

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

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
