package frontmatter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// MaxSize is how many bytes of front matter are read.
const MaxSize = 64 << 10

// maxDepth is how many mappings and lists may be within each other.
const maxDepth = 100

// Same returns nil if front, of a SKILL.md, says what listed does, which is a JSON object, and
// nothing else. Otherwise it says which field differs, or why front can't be compared:
// anchors, aliases and tags are not, because they mean something else in JSON to each reader.
func Same(front []byte, listed json.RawMessage) error {
	if len(front) > MaxSize {
		return fmt.Errorf("its front matter has more bytes than the limit of %d", MaxSize)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(append([]byte("\n"), front...), &doc); err != nil { // with its lines in the file
		return fmt.Errorf("its front matter can't be read: %w", err)
	}
	var want any
	d := json.NewDecoder(bytes.NewReader(listed))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		return fmt.Errorf("the list has no front matter: %w", err)
	}
	all := &yaml.Node{Kind: yaml.MappingNode}
	if len(doc.Content) > 0 {
		all = doc.Content[0]
	}
	if line, ok := isPlain(all, 0); !ok {
		return fmt.Errorf("its front matter can't be compared: line %d: it has an anchor, an alias, a tag, a name that is no text or is there twice, or more than %d levels", max(line, 2), maxDepth)
	}
	if field, ok := differs("", all, want); ok {
		return fmt.Errorf("its front matter differs from the list: %q", field)
	}
	return nil
}

// isPlain reports whether n is of mappings with distinct names, lists and texts only. If not,
// it returns a line that is not.
func isPlain(n *yaml.Node, depth int) (line int, ok bool) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || depth > maxDepth {
		return n.Line, false
	}
	names := make(map[string]bool)
	for i, part := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if part.Kind != yaml.ScalarNode || part.ShortTag() == "!!merge" || names[part.Value] {
				return part.Line, false
			}
			names[part.Value] = true
		}
		if line, ok := isPlain(part, depth+1); !ok {
			return line, false
		}
	}
	return 0, true
}

// differs reports whether a value is another than the listed one, and returns the field in which
// it is. name is that of the value.
func differs(name string, value *yaml.Node, listed any) (field string, ok bool) {
	switch value.Kind {
	case yaml.MappingNode:
		listed, ok := listed.(map[string]any)
		if !ok {
			return name, true
		}
		within := func(key string) string { return strings.TrimPrefix(name+"."+key, ".") }
		there := make(map[string]bool)
		for i := 0; i < len(value.Content); i += 2 {
			key := value.Content[i].Value
			there[key] = true
			other, ok := listed[key]
			if !ok {
				return within(key), true
			}
			if field, ok := differs(within(key), value.Content[i+1], other); ok {
				return field, true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(listed)) {
			if !there[key] {
				return within(key), true
			}
		}
		return "", false
	case yaml.SequenceNode:
		listed, ok := listed.([]any)
		if !ok || len(listed) != len(value.Content) {
			return name, true
		}
		for i, e := range value.Content {
			if field, ok := differs(fmt.Sprintf("%s[%d]", name, i), e, listed[i]); ok {
				return field, true
			}
		}
		return "", false
	}
	return name, !means(value, listed)
}

// means reports whether a text can mean a value of JSON. What one without quotes means depends
// on the version of YAML and on who reads it: each meaning counts, and the text itself does.
func means(n *yaml.Node, listed any) bool {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	plain := n.Style&quoted == 0
	if text, ok := listed.(string); ok {
		return n.Value == text || plain && sameTime(n.Value, text)
	}
	if !plain {
		return false
	}
	switch listed := listed.(type) {
	case nil:
		return slices.Contains([]string{"", "~", "null", "Null", "NULL"}, n.Value)
	case bool:
		words := []string{"false", "no", "off", "n"}
		if listed {
			words = []string{"true", "yes", "on", "y"}
		}
		return slices.ContainsFunc(words, func(word string) bool {
			return n.Value == word || n.Value == strings.ToUpper(word) || n.Value == strings.ToUpper(word[:1])+word[1:]
		})
	case json.Number:
		return sameNumber(n.Value, string(listed))
	}
	return false
}

// sameTime reports whether two texts are the same day, or the same moment.
func sameTime(a, b string) bool {
	when := func(s string) (t time.Time, err error) {
		for _, layout := range []string{time.DateOnly, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
			if t, err = time.Parse(layout, s); err == nil {
				break
			}
		}
		return t, err
	}
	first, err := when(a)
	if err != nil {
		return false
	}
	second, err := when(b)
	return err == nil && first.Equal(second)
}

// maxDigits is how many digits a whole number may have that is not compared as it is written.
const maxDigits = 100

// sameNumber reports whether a plain text can be that number of JSON.
func sameNumber(s, number string) bool {
	if s == number {
		return true
	}
	if len(s) > maxDigits || len(number) > maxDigits {
		return false
	}
	s = strings.TrimPrefix(s, "+")
	want, whole := new(big.Int).SetString(number, 10)
	for _, base := range []int{10, 0} { // 010 is 10, or 8
		if got, ok := new(big.Int).SetString(s, base); ok && whole && got.Cmp(want) == 0 {
			return true
		}
	}
	if _, ok := new(big.Int).SetString(s, 0); ok && whole {
		return false
	}
	got, err := strconv.ParseFloat(s, 64)
	other, failed := strconv.ParseFloat(number, 64)
	return err == nil && failed == nil && got == other
}
