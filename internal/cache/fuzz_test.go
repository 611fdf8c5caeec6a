package cache

import (
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/require"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"version":1,"names":[{}],"servers":{"a":{"config":"c","listed":"2026-01-01T00:00:00Z","tools":["{}"]}}}`))
	f.Add([]byte(`{"version":2,"servers":{"a":{"listed":"2026-01-01T00:00:00Z","lists":{"tool":["{}"]}},"b":{"listed":"x"},"c":5}}`))
	f.Add([]byte(`{"version":1,"servers":null}`))
	f.Add([]byte(`{"version":2,"base":"x","servers":{"b":{"listed":"2026-01-01T00:00:00Z","part":"y"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := &mcptest.Store{Data: data}
		p := begin(doc)
		c, err := p.read()
		require.Equal(t, err == errGone, c == nil)
		if c != nil {
			require.NotNil(t, c.Servers)
			require.True(t, err == nil || len(c.Servers) == 0)
			for name := range c.Servers {
				c.Server(name)
			}
		}
		p.put("a", "1")
		p.Close()
		require.Empty(t, *p.errs)
		require.Equal(t, []string{"1"}, tools(t, doc, "a"))
	})
}

// Whatever the parts of a server are, lists are read, or none; changes that do not fit the
// lists change nothing.
func FuzzParts(f *testing.F) {
	f.Add([]byte(`{"tool":[{"new":"a"},{"new":"b"},{"new":"c"}],"prompt":[]}`), []byte(`{"tool":[{"from":1,"n":2},{"new":"d"},{"n":1}],"x":[{}]}`))
	for _, bad := range []string{`"from":-1,"n":1`, `"n":9223372036854775807`, `"from":9223372036854775807,"n":1`, `"from":1,"n":1`, `"n":-1`} {
		f.Add([]byte(`{"tool":[{"new":"a"}]}`), []byte(`{"tool":[{`+bad+`}]}`))
	}
	f.Add([]byte(`5`), []byte(`null`))
	f.Fuzz(func(t *testing.T, first, then []byte) {
		doc := new(mcptest.Split)
		k := begin(doc).Keeper
		put := func(of string, lists []byte) string {
			data := fmt.Appendf(nil, `{"of":%q,"listed":"2026-01-01T00:00:00Z","lists":%s}`, of, lists)
			require.NoError(t, doc.Put(store.KeyOf(data), data))
			return store.KeyOf(data)
		}
		head := put("", first)
		alone, _, _ := k.follow(head, nil, nil)
		for range 32 { // each has the same pieces
			head = put(head, then)
		}
		got, c, err := k.follow(head, nil, nil)
		if err != nil {
			require.Nil(t, got)
			return
		}
		require.Len(t, c.keys, 32+1)
		n := 0
		for _, list := range got {
			n += len(list)
		}
		require.LessOrEqual(t, n, len(first)+(32+1)*len(then))
		require.Equal(t, head, c.head())
		changes := []byte(text.JSON(c.diff(alone)))
		again, _, err := k.follow(put(head, changes), c, got)
		require.NoError(t, err)
		require.Equal(t, alone, again, "and back")
		_, _, err = k.follow(put(put(head, then), then), nil, nil)
		require.Error(t, err, "too many")
	})
}
