package mcphybrid

import (
	"testing"

	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The index has one document for each deferred tool, in registration order. The next catalog's
// is made of it; a user's has all tools.
func TestDeferredIndexHasTheDeferredTools(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{serving("s", numbered(60)...)}})
	first := m.cur.Load()
	assert.Equal(t, namesOf(m.DeferredTools()), namesOf(first.documents()))
	assert.Equal(t, namesOf(m.InlineTools()), namesOf(first.tools[:len(first.split().unindexed)]))
	require.Equal(t, 20, first.index().Len())

	require.NoError(t, m.AddTools("more", echoTool("zeppelin", "Flies")))
	next := m.cur.Load()
	assert.Equal(t, append(namesOf(first.documents()), "mcp_more__zeppelin"), namesOf(next.documents()))
	before, now := first.index().(*search.Index), next.index().(*search.Index)
	require.Equal(t, 21, now.Len())
	for doc := range before.Len() {
		assert.Same(t, before.Document(doc), now.Document(doc))
	}

	u := newUser(t, m, "ann", nil, numbered(3)...)
	assert.Len(t, u.cur.Load().documents(), 3, "they are inline for some sessions only")
}
