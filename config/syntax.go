package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tidwall/jsonc"
)

// toJSON returns the content of a file as JSON without comments and trailing commas.
func toJSON(data []byte, s *source) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	limit := maxBytes
	if s.isTOML() {
		limit = maxTOML
	}
	switch {
	case len(data) > limit:
		return nil, fmt.Errorf("larger than %d bytes", limit)
	case s.isTOML():
		return tomlToJSON(data)
	}
	return plainJSON(data), nil
}

func (s *source) isTOML() bool {
	return s.Dialect == "codex" || strings.EqualFold(filepath.Ext(s.path), ".toml")
}

// plainJSON replaces comments and trailing commas with spaces, so that all else
// keeps its place. A comment ends at any kind of line break.
func plainJSON(data []byte) []byte {
	data = bytes.Clone(data)
	for i, c := range data {
		if c == '\r' && (i+1 == len(data) || data[i+1] != '\n') {
			data[i] = '\n'
		}
	}
	return jsonc.ToJSONInPlace(data)
}

// tomlToJSON converts a TOML document to a JSON object. The keys of each table are in
// the order of their names. Dates and times become strings. An error names line and
// column. The time that it takes can grow with the square of the number of tables.
func tomlToJSON(document []byte) ([]byte, error) {
	tables := make(map[string]any)
	if err := toml.Unmarshal(document, &tables); err != nil {
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, column := syntax.Position()
			return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
		}
		return nil, err
	}
	return json.Marshal(tables)
}
