package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A file whose servers stand at another place is told which.
func TestMisplacedServers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"x": {"command": "a"}, "y": 1}`:                     `no "mcpServers" object: "x" looks like a server, one level too high`,
		`{"y": 1, "x": {"url": "http://a"}}`:                  `no "mcpServers" object: "x" looks like a server, one level too high`,
		`{"command": "a", "args": []}`:                        `no "mcpServers" object: the file is one server`,
		`{"mcpServer": {}}`:                                   `no "mcpServers" object: "mcpServer" is not known: did you mean "mcpServers"?`,
		`{"x": {"command": 1}}`:                               `no "mcpServers" object`,
		`{"mcpServers": {"mcpServers": {"x": {"url": "a"}}}}`: `its "x" looks like a server, one level too deep: move it up by one`,
	} {
		_, err := Parse([]byte(text), "mcp.json", nil)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := Parse([]byte(`{"x": {"command": 1}}`), "mcp.json", nil)
	assert.EqualError(t, err, `mcphybrid: mcp.json: no "mcpServers" object`)
}
