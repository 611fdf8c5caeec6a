package mcphybrid_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Equal configurations give equal bytes, in whatever order servers become
// ready.
func TestSpecF1EqualCatalogsGiveEqualBytes(t *testing.T) {
	t.Parallel()
	snapshot := func(m *mcphybrid.Manager) string {
		var b strings.Builder
		for _, tool := range m.Default().Tools() {
			fmt.Fprintln(&b, tool.Name(), tool.Description(), string(tool.InputSchema()))
		}
		for _, h := range m.Search("chore 7", 20) {
			fmt.Fprintln(&b, h.Tool.Name(), h.Score)
		}
		return b.String() + m.PromptSections(mcphybrid.PromptFull)
	}
	servers := []mcphybrid.ServerConfig{inProcess("a", 30), inProcess("b", 30), inProcess("c", 30), inProcess("d", 30)}
	m, _ := newTestManager(t, &mcphybrid.Options{Servers: servers})
	want := snapshot(m)
	for range 20 {
		again, _ := newTestManager(t, &mcphybrid.Options{Servers: servers})
		assert.Equal(t, want, snapshot(again))
	}
	// This holds after a server came and went, too.
	require.NoError(t, m.AddServer(t.Context(), inProcess("e", 3)))
	require.True(t, m.RemoveServer("e"))
	assert.Equal(t, want, snapshot(m))
}
