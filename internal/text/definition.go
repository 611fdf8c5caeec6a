package text

import (
	"bytes"
	"encoding/json"
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
