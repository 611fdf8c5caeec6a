package text

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCountValues(t *testing.T) {
	for message, want := range map[string]int{
		``: 0, `1`: 0, `"a,b:[{"`: 0, `"\",\\"`: 0, `[]`: 1, `[1,2]`: 2, `{"a":1}`: 2, `{"a":{"b":[1,2]}}`: 6,
		`"\\",`: 1, `{"a\"":","}`: 2, `[`: 1, `"`: 0, `"\`: 0,
	} {
		assert.Equal(t, want, CountValues([]byte(message)), message)
	}
}

// No shape of a message takes more memory for a value than ValueSize says.
func TestValueSize(t *testing.T) {
	list := func(element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", 20_000), ",") + "]"
	}
	deep := func(begin, end string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(strings.Repeat(begin, 1000)+"1"+strings.Repeat(end, 1000)+",", 20), ",") + "]"
	}
	for _, message := range []string{
		list(`{}`), list(`[]`), list(`1`), list(`""`), list(`null`), list(`[[]]`), list(`[1]`), list(`[1,2]`), list(`{"a":1}`), list(`{"a":"b"}`),
		list(`{"a":{}}`), list(`{"a":[]}`), list(`{"a":1,"b":2}`), list(`{"type":"text","text":""}`), deep(`{"a":`, `}`), deep(`[`, `]`), deep(`[{"a":`, `}]`),
		list(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`),
	} {
		data := []byte(message)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var v any
		require.NoError(t, json.Unmarshal(data, &v))
		runtime.ReadMemStats(&after)
		each := int(after.TotalAlloc-before.TotalAlloc) / CountValues(data)
		assert.LessOrEqual(t, each, ValueSize, "%.40s", message)
	}
}
