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
	plain := plainJSON(data)
	if at := loneComma(data, plain); at >= 0 {
		before := data[:at]
		return nil, fmt.Errorf("line %d, column %d: a comma without a value before it", 1+bytes.Count(before, []byte("\n")), at-bytes.LastIndexByte(before, '\n'))
	}
	return plain, nil
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

// loneComma returns where data has a comma right behind a bracket, or -1: such as {,}, which
// plainJSON makes an empty object. plain is data as that returns it.
func loneComma(data, plain []byte) int {
	opened := false // nothing but spaces and comments since a bracket
	for i, quoted := 0, false; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted, opened = !quoted, false
		case quoted:
		case c == '/' && plain[i] == ' ': // a comment: it begins here, or we are in it
			end := commentEnd(data[i:])
			i += end - 1
		case c == ',' && opened:
			return i
		case c > ' ':
			opened = c == '{' || c == '['
		}
	}
	return -1
}

// commentEnd returns the length of the comment with which data begins.
func commentEnd(data []byte) int {
	end, behind := []byte("\n"), 0
	if bytes.HasPrefix(data, []byte("/*")) {
		end, behind = []byte("*/"), 2
	}
	at := bytes.Index(data[behind:], end)
	if at < 0 {
		return len(data)
	}
	return behind + at + len(end)
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
