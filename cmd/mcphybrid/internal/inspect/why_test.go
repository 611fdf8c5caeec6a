package inspect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A search that finds nothing says why, in a report for people and in JSON.
func TestWhyNothing(t *testing.T) {
	kitchen := `"kitchen": ` + commandtest.Child(t, "1", "") // 40 tools inline, 10 deferred
	few := `"few": ` + commandtest.Raw(t, `{"name": "stir", "description": "Stirs the soup"}`, "")
	gone := `"gone": {"command": "no-such-program-anywhere"}`
	for _, test := range []struct {
		name, servers, query string
		want                 []string
	}{
		{"no server", `"off": {"command": "x", "disabled": true}`, "soup", []string{"no server that is switched on"}},
		{"none is up", gone, "soup", []string{"no server is up: gone (down)"}},
		{"none has tools", `"none": ` + commandtest.Raw(t, "", ""), "soup", []string{"no server has a tool"}},
		{"all inline", few, "zyzzyva", []string{"the only tool has no word of the query: zyzzyva"}},
		{"some are missing", few + "," + gone, "zyzzyva", []string{"the only tool has no word", "servers are missing: gone (down)"}},
		{"words missing", kitchen, "zyzzyva quagga", []string{"none of the 50 tools has a word of the query: zyzzyva, quagga"}},
		{"no words", kitchen, "the of", []string{"no word to search for"}},
		{"the threshold", kitchen, "text zyzzyva quagga axolotl wombat numbat dugong", []string{"the nearest of 50 tools, mcp_kitchen__tool_", "below the threshold of 0.", "it lacks: zyzzyva, quagga, axolotl"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config := commandtest.Config(t, test.servers)
			stdout, _, err := inspect.Run(t, "-config", config, "-query", test.query)
			require.NoError(t, err)
			_, why, found := strings.Cut(stdout, "\nfound nothing:\n")
			require.True(t, found, stdout)
			for _, want := range test.want {
				assert.Contains(t, why, want)
			}
			stdout, _, err = inspect.Run(t, "-config", config, "-query", test.query, "-json")
			require.NoError(t, err)
			var r report
			require.NoError(t, json.Unmarshal([]byte(stdout), &r))
			assert.Equal(t, strings.Count(why, "\n"), len(r.Why), "%q", r.Why)
		})
	}
	t.Run("it finds something", func(t *testing.T) {
		t.Parallel()
		for config, want := range map[string]string{kitchen: "mcp_kitchen__tool_47 (kitchen, deferred)", few: "mcp_few__stir (few, inline)"} {
			stdout, _, err := inspect.Run(t, "-config", commandtest.Config(t, config), "-query", "dish 47 soup")
			require.NoError(t, err)
			assert.Contains(t, stdout, "\nfound:\n")
			assert.Contains(t, stdout, want)
			assert.NotContains(t, stdout, "nothing")
		}
	})
}
