package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// unread says why arguments can't be read.
func unread(args json.RawMessage, err error) error {
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) && kind.Field == "" {
		return errNoObject
	}
	if errors.As(err, new(*json.SyntaxError)) {
		return notJSON(args, err)
	}
	return text.JSONError(args, err)
}

// Members reads the arguments of a tool of our own into in. missing says whether they
// lack the member that the tool can't do without.
func Members(args json.RawMessage, in any, member string, missing func() bool) error {
	if err := json.Unmarshal(args, in); err != nil {
		return unread(args, err)
	}
	if missing() {
		return fmt.Errorf("%q is missing or empty", member)
	}
	return nil
}
