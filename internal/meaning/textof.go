package meaning

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// TextOf returns the text to embed for what has that name and description, and these
// parameters: their names are in it.
func TextOf(name, description string, parameters json.RawMessage) string {
	var args []string
	schema.Walk(parameters, func(_ int, name []byte) { args = append(args, string(name)) }, func(int, []byte) {})
	text := fmt.Sprintf("Tool Name: %s. Description: %s.", name, strings.TrimRight(description, ". \n"))
	if len(args) > 0 {
		text += " Arguments: " + strings.Join(args, ", ")
	}
	return strings.ToValidUTF8(text[:min(len(text), MaxText)], "")
}
