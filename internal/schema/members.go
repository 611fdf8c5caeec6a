package schema

import (
	"encoding/json"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Members reads the arguments of a tool of our own into in. missing says whether they
// lack the member that the tool can't do without.
func Members(args json.RawMessage, in any, member string, missing func() bool) error {
	if err := json.Unmarshal(args, in); err != nil {
		return text.JSONError(args, err)
	}
	if missing() {
		return fmt.Errorf("%q is missing or empty", member)
	}
	return nil
}
