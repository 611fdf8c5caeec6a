package schema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbered returns one of many schemas that only differ.
func numbered(i int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","required":["p%d"],"properties":{"p%d":{"type":"integer","description":%q}}}`, i, i, strings.Repeat("word ", 100)))
}

// However many schemas are used, the validators of the last ones stay, and no others.
func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	var r Recent
	size := perByte*len(numbered(1000)) + perSchema
	room := 5 << 20 / size
	first := r.Of(numbered(1000))
	require.Same(t, first, r.Of(numbered(1000)), "one validator for equal schemas")
	var gone []weak.Pointer[Validator]
	for i := range 3 * room {
		v := r.Of(numbered(1001 + i))
		if i%50 == 0 { // compiling takes its time
			violations, _ := v.Validate(json.RawMessage(`{}`))
			require.Len(t, violations, 1)
		}
		if i < room {
			gone = append(gone, weak.Make(v))
		}
		require.LessOrEqual(t, r.bytes, 5<<20)
		require.Same(t, first, r.Of(numbered(1000)), "it was used last but one")
	}
	assert.Len(t, r.of, r.order.Len())
	assert.InDelta(t, room, r.order.Len(), 2)
	runtime.GC()
	for _, v := range gone {
		assert.Nil(t, v.Value())
	}

	// A schema that is larger than the limit takes the place of all others.
	large := json.RawMessage(fmt.Sprintf(`{"type":"object","description":%q}`, strings.Repeat("x", 5<<20)))
	r.Of(large)
	assert.Equal(t, 1, r.order.Len())
	r.Of(numbered(1000))
	assert.Equal(t, 1, r.order.Len())
	assert.Len(t, r.of, 1)
	assert.Equal(t, perByte*len(numbered(1000))+perSchema, r.bytes)
}

// As many bytes as there is room for are kept, and not one more.
func TestRecentAtItsLimit(t *testing.T) {
	t.Parallel()
	padded := func(n int) json.RawMessage {
		const begin, end = `{"title":"`, `"}`
		return json.RawMessage(begin + strings.Repeat("x", n-len(begin)-len(end)) + end)
	}
	both := (MaxRecent - 2*perSchema) / perByte
	for more, want := range map[int]int{0: 2, 1: 1} {
		var r Recent
		r.Of(padded(1000))
		r.Of(padded(both - 1000 + more))
		assert.Equal(t, want, r.order.Len())
	}
}

// What a schema takes once it is compiled counts, not only its text.
func TestRecentCountsWhatIsCompiled(t *testing.T) {
	var r Recent
	before := heapBytes()
	for i := range 500 {
		v := r.Of(json.RawMessage(fmt.Sprintf(`{"properties":{"a":{"pattern":"^\\pL{200}%d"}}}`, i)))
		require.NoError(t, v.Err())
		require.LessOrEqual(t, r.bytes, 5<<20)
	}
	assert.Less(t, heapBytes()-before, 2*MaxRecent)
	runtime.KeepAlive(&r)
}

func heapBytes() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Many calls at once get right answers while there is room for few of the schemas.
func TestRecentConcurrently(t *testing.T) {
	t.Parallel()
	var r Recent
	pad := strings.Repeat("x", 5<<20/perByte/4)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 12 {
				n := (g + i) % 10
				v := r.Of(json.RawMessage(fmt.Sprintf(`{"properties":{"a":{"type":"integer","maximum":%d}},"title":%q}`, n, pad)))
				violations, _ := v.Validate(fmt.Appendf(nil, `{"a":%d}`, n))
				assert.Empty(t, violations)
				violations, _ = v.Validate(fmt.Appendf(nil, `{"a":%d}`, n+1))
				assert.Len(t, violations, 1)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, r.bytes, 5<<20)
	assert.Len(t, r.of, r.order.Len())
}
