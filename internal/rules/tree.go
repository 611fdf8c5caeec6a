package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"go.yaml.in/yaml/v3"
)

// parseRuleTree parses data as YAML or JSON, by the extension of name.
func parseRuleTree(data []byte, name string) (*yaml.Node, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		return parseJSONTree(data)
	case ".yaml", ".yml":
		return parseYAMLTree(data)
	}
	return nil, errors.New("the name must end in .yaml, .yml or .json")
}

func parseYAMLTree(data []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&document); {
	case err == io.EOF:
		return nil, errors.New(`line 1, column 1: there is no "rules"`)
	case err != nil:
		return nil, describeYAMLError(data, err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d, column %d: a second document begins", second.Line, second.Column)
	case err != io.EOF:
		return nil, describeYAMLError(data, err)
	}
	return document.Content[0], nil
}

// yamlError matches the error texts of package yaml. Their line numbers name the
// start of the construct, not the place of the error, so we drop them.
var yamlError = regexp.MustCompile(`^yaml: (?:line \d+: )?(.*)$`)

// unknownAnchor matches the error text of an alias without an anchor.
var unknownAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`)

// describeYAMLError adds a line and column to err, a syntax error: the place in
// data that the parser had reached.
func describeYAMLError(data []byte, err error) error {
	read, _ := firstYAMLError(data)
	at := max(read-1, 0)
	text := err.Error()
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		// The parser reads a few tokens ahead, and these may repeat the alias.
		// Search backwards for the first alias that causes this error.
		alias := []byte("*" + m[1])
		for end, n := read, 0; n < 10; n++ {
			i := bytes.LastIndex(data[:end], alias)
			if i < 0 {
				break
			}
			if _, e := firstYAMLError(data[:i+len(alias)]); n > 0 && e.Error() != text {
				break
			}
			at, end = i, i
		}
		text = fmt.Sprintf("the alias *%s has no anchor: put a pattern that begins with * in quotes", m[1])
	} else if m := yamlError.FindStringSubmatch(text); m != nil {
		text = m[1]
		if strings.Contains(text, "alphabetic or numeric") { // the name of an alias
			text += ": put a pattern that begins with * in quotes"
		}
	}
	line, column := advance(1, 1, data[:at])
	return fmt.Errorf("line %d, column %d: %s", line, column, text)
}

// firstYAMLError returns the first error in data, or io.EOF if there is none, and
// how many bytes the parser had read by then.
func firstYAMLError(data []byte) (read int, err error) {
	r := byteReader{data: data}
	dec := yaml.NewDecoder(&r)
	for err == nil {
		err = dec.Decode(new(yaml.Node))
	}
	return r.read, err
}

// A byteReader returns one byte at a time, so that the parser does not read ahead.
type byteReader struct {
	data []byte
	read int
}

func (r *byteReader) Read(p []byte) (int, error) {
	if r.read == len(r.data) || len(p) == 0 {
		return 0, io.EOF
	}
	p[0] = r.data[r.read]
	r.read++
	return 1, nil
}

// advance returns the line and column after text, given those at its start.
// Columns count characters from 1.
func advance(line, column int, text []byte) (int, int) {
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		line += bytes.Count(text, []byte("\n"))
		column = 1
		text = text[i+1:]
	}
	return line, column + utf8.RuneCount(text)
}

// A jsonTree reads a JSON document into a tree of YAML nodes with lines and
// columns.
type jsonTree struct {
	data         []byte
	dec          *json.Decoder
	at           int // current offset in data
	line, column int // of at
}

// ruleDepth is the nesting depth of a rule file: an object of lists of objects of
// lists. The parser skips the content of deeper lists and objects.
const ruleDepth = 4

func parseJSONTree(data []byte) (*yaml.Node, error) {
	var valid json.RawMessage
	if err := json.Unmarshal(data, &valid); err != nil {
		return nil, text.JSONError(data, err)
	}
	t := jsonTree{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1, column: 1}
	t.dec.UseNumber()
	return t.node(0)
}

// node returns the next value or member name.
func (t *jsonTree) node(depth int) (*yaml.Node, error) {
	start := int(t.dec.InputOffset())
	start = len(t.data) - len(bytes.TrimLeft(t.data[start:], " \t\r\n,:"))
	t.line, t.column = advance(t.line, t.column, t.data[t.at:start])
	t.at = start
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: t.line, Column: t.column}

	switch t.data[start] {
	case '{':
		n.Kind = yaml.MappingNode
	case '[':
		n.Kind = yaml.SequenceNode
	}
	if depth == ruleDepth && n.Kind != yaml.ScalarNode {
		return n, t.dec.Decode(new(json.RawMessage))
	}
	token, err := t.dec.Token()
	if err != nil {
		return nil, err // never: the document is valid
	}
	switch v := token.(type) {
	case json.Delim:
		for t.dec.More() {
			e, err := t.node(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, e)
		}
		_, err = t.dec.Token() // the closing bracket
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
		if !strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag = "!!bool"
	default:
		n.Tag = "!!null"
	}
	return n, err
}
