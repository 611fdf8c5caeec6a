package mcphybrid

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tool that leaves and comes back is stored again.
func TestToolThatComesBackIsStoredAgain(t *testing.T) {
	t.Parallel()
	store := new(vector.MemoryStore)
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: newConcepts(), Store: store, Least: 0.5}})
	for range 2 {
		require.NoError(t, m.AddTools("s", echoTool("walk", "Walks the dog")))
		embedded(t, m, 1)
		sums, err := store.Sums(t.Context(), "system")
		require.NoError(t, err)
		assert.Len(t, sums, 1)
		assert.Equal(t, []string{"mcp_s__walk"}, hitNames(m.Search("vet", 5)))
		require.True(t, m.RemoveServer("s"))
		embedded(t, m, 0)
	}
}

// An embedder that fails is asked less and less often, up to once a minute.
func TestFailingEmbedderIsAskedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newConcepts()
		var asked atomic.Int64
		e.embed = func(context.Context) error { asked.Add(1); return errors.New("out of order") }
		m := NewManager(&Options{Inline: InlineOptions{Max: -1}, Semantic: &SemanticOptions{Embedder: e}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		require.NoError(t, m.AddTools("s", echoTool("walk", "Walks the dog")))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.LessOrEqual(t, asked.Load(), int64(7), "after 0, 1, 3, 7, 15, 31 s and so on")
		assert.GreaterOrEqual(t, asked.Load(), int64(5))
		asked.Store(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.InDelta(t, 60, asked.Load(), 2)
	})
}
