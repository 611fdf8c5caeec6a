package mcphybrid

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A tool that comes to the list changes the sections only if it has a line there. A provider that
// says what has changed is believed where the session knows of that.
func TestLossesByWhatHasChanged(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		lines bool
		miss  string
		cause snapshot.LossCause
	}{
		{false, "", snapshot.LossTools}, {false, "tools_changed", snapshot.LossTools}, {false, "system_changed", snapshot.LossProvider},
		{true, "", snapshot.LossTools}, {true, "tools_changed", snapshot.LossTools}, {true, "system_changed", snapshot.LossSections},
	} {
		var losses []snapshot.Loss
		m, _ := newTestManager(t, &Options{Prompt: PromptOptions{ListInline: of.lines}, Servers: []ServerConfig{inProcess("a", 1)}, OnEvent: func(e Event) {
			if e.Kind == EventCacheLost {
				losses = append(losses, e.Loss)
			}
		}})
		s := m.NewSession(&SessionOptions{Disclosure: ByActivation})
		s.Tools()
		s.CountUsage(provider.Usage{Input: 9_000, Written: 9_000})
		s.CountUsage(provider.Usage{Input: 9_000, Written: 9_000, Cached: 9_000})
		require.NoError(t, m.AddTools("late", echoTool("come", "Comes late.")))
		s.Tools()
		s.CountUsage(provider.Usage{Input: 9_000, Miss: of.miss})
		require.Len(t, losses, 1)
		assert.Equal(t, of.cause, losses[0].Cause, "%+v", of)
		s.Close()
	}
}
