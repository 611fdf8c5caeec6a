package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A gateway that a server of its own file starts refuses to, also behind another file and a link.
// Otherwise there would be more and more.
func TestGatewayWithinItself(t *testing.T) {
	file := commandtest.WriteFile(t, "mcp.json", file(`"a": {"command": "x", "env": {"A": "1"}}`))
	other := writeConfig(t, "kitchen")
	for _, outer := range []string{file, other} {
		above, err := ancestry(outer)
		require.NoError(t, err)
		g := quiet(gatewayOptions{ancestry: above})
		defer g.close()
		s := mcphybrid.ServerConfig{Name: "a", Command: "x", Env: map[string]string{"A": "1"}}
		env := g.heard(s).Env
		assert.Equal(t, "1", env["A"])
		assert.Len(t, s.Env, 1, "it is as in the file")
		t.Setenv(ancestryVariable, env[ancestryVariable])
		assert.Empty(t, g.heard(mcphybrid.ServerConfig{Name: "web", URL: "http://127.0.0.1:1/mcp"}).Env)
	}
	link := filepath.Join(t.TempDir(), "link.json")
	if os.Symlink(file, link) != nil {
		link = file // on Windows not everybody may
	}
	for _, inner := range []string{file, link, other} {
		err := run(t.Context(), []string{"-config", inner, "-cache", "off"}, strings.NewReader(""), nil, t.Output())
		assert.ErrorContains(t, err, inner+" has a server that starts a gateway with the same file")
	}
}
