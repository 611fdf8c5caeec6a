// Package toml lets LoadConfigWith of the package mcphybrid read TOML, as Codex
// writes it. A program that does not import it does not link a parser of TOML.
package toml

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// ToJSON converts a TOML document to a JSON object, for ConfigOptions.TOML of the
// package mcphybrid. The keys of each table are in the order of their names. Dates and times become strings. An error names line and column.
//
// The time that it takes can grow with the square of the number of tables.
func ToJSON(document []byte) ([]byte, error) {
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
