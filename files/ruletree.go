package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"go.yaml.in/yaml/v4"
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
		root, err := parseYAMLTree(data)
		if err == errEmpty {
			err = errors.New(`line 1, column 1: there is no "rules"`)
		}
		return root, err
	}
	return nil, errors.New("the name must end in .yaml, .yml or .json")
}

var errEmpty = errors.New("line 1, column 1: the document is empty")

func parseYAMLTree(data []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&document); {
	case err == io.EOF:
		return nil, errEmpty
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

// unknownAnchor matches the texts of errors of an alias to nothing.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// describeYAMLError says of err, a syntax error, where in data it is.
func describeYAMLError(data []byte, err error) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return err
	}
	text, line, column := e.Message, e.Mark.Line, e.Mark.Column
	if line == 0 { // of a character that may not be in YAML, only this is known
		_, number, _ := strings.Cut(text, "(value: ")
		if r, err := strconv.ParseInt(strings.TrimSuffix(number, ")"), 0, 32); err == nil {
			line, column = advance(1, 1, data[:max(bytes.IndexRune(data, rune(r)), 0)])
		}
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("the alias *%s has no anchor: put a pattern that begins with * in quotes", m[1])
	} else if strings.Contains(text, "alphabetic or numeric") { // the name of an alias
		text += ": put a pattern that begins with * in quotes"
	}
	if l, c := advance(1, 1, data); line > l { // after a line break that is not there
		line, column = l, c
	}
	return fmt.Errorf("line %d, column %d: %s", max(line, 1), max(column, 1), text)
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
// objects of lists. The parser skips the content of deeper lists and objects.
const ruleDepth = 5

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
	token, err := t.dec.Token() // which never fails: the document is valid
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
