package mcphybrid

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Servers of many users that list the same have its bytes once, and nothing is kept of what
// nobody has any more.
func TestRawDefinitionsAreShared(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	var texts []*byte
	for i := range 3 {
		u, err := m.NewUser(fmt.Sprint(i), nil)
		require.NoError(t, err)
		require.NoError(t, u.AddTools("own", echoTool("same", "Does the same for all"), echoTool(fmt.Sprint("other", i), "")))
		tools := u.NewSession(nil).InlineTools()
		require.Len(t, tools, 2)
		texts = append(texts, unsafe.SliceData(tools[0].def.Raw))
		assert.NotSame(t, texts[0], unsafe.SliceData(tools[1].def.Raw))
	}
	assert.Same(t, texts[0], texts[1])
	assert.Same(t, texts[0], texts[2])
	assert.Len(t, m.rawDefinitions.byHash, 4, "those of the system's tools are not in it")

	var all rawDefinitions
	var kept *rawDefinition
	var at sync.WaitGroup
	for range 4 { // at once, and fewer of them than are parsed
		at.Go(func() {
			for i := range 1000 {
				all.once(json.RawMessage(fmt.Sprintf(`{"name":"tool%d"}`, i)))
			}
		})
	}
	at.Wait()
	kept = all.once(json.RawMessage(`{"name":"kept"}`))
	for i := range 10_000 { // what is gone makes room
		if all.once(json.RawMessage(fmt.Sprintf(`{"name":"later%d"}`, i))); i%500 == 0 {
			runtime.GC()
		}
	}
	assert.Less(t, len(all.byHash), 2500)
	assert.Same(t, kept, all.once(json.RawMessage(`{"name":"kept"}`)))
	runtime.KeepAlive(kept)
}
