package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/config"
	"go.yaml.in/yaml/v4"
)

// LoadServers reads the file in which an MCP client keeps its servers, as [config.Load]
// does, and also YAML: the config.yaml of Continue or Goose. A name that ends in .yaml or
// .yml is one of YAML. It may use anchors and aliases, but no merge keys.
func LoadServers(path string, opts *config.Options) (*config.File, error) {
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".yaml" && ext != ".yml" {
		return config.Load(path, opts)
	}
	data, err := readFile(path)
	if err == nil {
		data, err = yamlToJSON(data)
	}
	if err != nil {
		return &config.File{}, fmt.Errorf("mcphybrid: %s: %w", path, err)
	}
	return config.Parse(data, path, opts)
}

// yamlToJSON converts a document. Members keep their order, and a key that is there twice
// is there twice again.
func yamlToJSON(data []byte) ([]byte, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8")
	}
	root, err := parseYAMLTree(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	var w jsonWriter
	if err := w.node(root, 0); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// A jsonWriter writes a tree of YAML nodes as JSON.
type jsonWriter struct{ bytes.Buffer }

// maxYAMLDepth is how deep lists and objects may be in each other. By an alias, a list can
// be in itself.
const maxYAMLDepth = 100

func (w *jsonWriter) node(n *yaml.Node, depth int) error {
	problem := func(text string) error { return fmt.Errorf("line %d, column %d: %s", n.Line, n.Column, text) }
	if depth > maxYAMLDepth || w.Len() > maxFileBytes {
		return problem("it is nested too deep, or aliases make it too large")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.node(n.Alias, depth+1)
	case yaml.MappingNode:
		w.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return problem("a key must be a text, and merge keys are not supported")
			}
			if i > 0 {
				w.WriteByte(',')
			}
			_ = w.value(key.Value) // a text always has a form
			w.WriteByte(':')
			if err := w.node(n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
		w.WriteByte('}')
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, element := range n.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := w.node(element, depth+1); err != nil {
				return err
			}
		}
		w.WriteByte(']')
	default:
		w.scalar(n)
	}
	return nil
}

// scalar writes what is no list and no object. What JSON has no form for, such as a date,
// becomes a text.
func (w *jsonWriter) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		w.WriteString("null")
		return
	case "!!bool", "!!int", "!!float":
		var value any
		if json.Valid([]byte(n.Value)) {
			w.WriteString(n.Value)
			return
		}
		if n.Decode(&value) == nil && w.value(value) == nil {
			return
		}
	}
	_ = w.value(n.Value)
}

// value writes a value, or nothing if JSON has no form for it.
func (w *jsonWriter) value(v any) error {
	data, err := json.Marshal(v)
	w.Write(data)
	return err
}
