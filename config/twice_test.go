package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A name that servers share is told with the lines where it is.
func TestLinesOfRepeatedNames(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"{\"mcpServers\": {\n\"a\": {\"command\": \"a\"},\n// twice\n\"b\": {\"command\": \"b\"}, \"c\": {},\n\"a\": {\"command\": \"a\"}\n}}":                "lines 2 and 5",
		"\ufeff{\"mcpServers\": {\"a\": {},\n\"a\": {},\r\n\"a\": {}}}":                                                                                       "lines 1, 2 and 3",
		"{\"mcpServers\": {\n\"a\": {\"command\": \"x\", \"env\": {\"a\": \"1\"}},\n\"b\": {\"command\": \"b\", \"args\": [\"a\", {\"a\": 1}]},\n\"a\": {}}}": "lines 2 and 4",
		"{\"mcp\": {\"servers\": {\n\"a\": {},\n\"a\": {}}}}":                                                                                                 "lines 2 and 3",
		"{\"mcpServers\": {\n\"a\": {\"x\": 1e400},\n\"a\": {}}}":                                                                                             "lines 2 and 3",
	} {
		_, err := parseConfig([]byte(text), environment())
		assert.ErrorContains(t, err, `server "a": it is defined `, text)
		assert.ErrorContains(t, err, "times, in "+says+": keep one, or give each a name of its own", text)
	}
	_, err := parseConfig([]byte(`{"mcpServers": {"a": {}, "a": {}}, "x": {"mcpServers": {"a": {}}}}`), environment())
	assert.EqualError(t, err, `server "a": it is defined 2 times`, "which of three can't be told")
}
