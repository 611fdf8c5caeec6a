package integration

import (
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SPEC H6: the model reads of server-everything's instructions one marked line, and all of
// it on demand. It is the same in each protocol, from the cache and where it is restored.
func TestSpecH6InstructionsOfAServer(t *testing.T) {
	mgr := loadManagerThat(t, writeConfig(t, everything(), everythingHTTP(t)), mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	require.NoError(t, mgr.Start(t.Context()))
	s := mgr.NewSession(nil)
	section := s.SearchSection()
	t.Log(section)
	for _, st := range mgr.Servers() {
		require.NotEmpty(t, st.Instructions)
		assert.LessOrEqual(t, len(st.Instructions), 2<<10)
		_, line, found := strings.Cut(section, "\n- "+st.Name+": ")
		require.True(t, found, st.Name)
		line, _, _ = strings.Cut(line, "\n")
		assert.Contains(t, strings.ReplaceAll(st.Instructions, "\n", " "), strings.TrimSuffix(line, "…"))
		answer := call(t, s, mcphybrid.SearchToolName, map[string]any{"query": "select:" + st.Name})
		assert.Contains(t, answer, `"instructions":`)
		assert.Contains(t, answer, line[:20])
	}
	restored, _, err := mgr.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Equal(t, section, restored.SearchSection())
}
