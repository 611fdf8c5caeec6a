package cache

import (
	"errors"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCatalogIsKept(t *testing.T) {
	t.Parallel()
	store := new(mcptest.Store)
	empty, err := Read(store)
	require.NoError(t, err)
	assert.Equal(t, new(Catalog), empty)
	empty, err = Read(nil)
	require.NoError(t, err)
	assert.Equal(t, new(Catalog), empty)

	want := &Catalog{
		Names:   []names.Claim{{Server: "a", Wanted: "mcp_a", Prefix: "mcp_a"}},
		Servers: map[string]Server{"a": {Config: "c", Listed: time.Unix(1, 0).UTC(), Tools: []string{"{\"name\" : 1.0}\n"}}},
	}
	require.NoError(t, want.Save(store))
	got, err := Read(store)
	require.NoError(t, err)
	assert.Equal(t, want, got, "to the byte")
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"": "unexpected end of JSON input", "{": "unexpected end of JSON input", `{"version":1,"servers":[]}`: `"servers" is a JSON array`,
	} {
		c, err := Read(&mcptest.Store{Data: []byte(data)})
		assert.Nil(t, c)
		assert.ErrorContains(t, err, "the cached catalog: ")
		assert.ErrorContains(t, err, want)
	}
	c, err := Read(&mcptest.Store{Data: []byte(`{"version":9,"servers":{"a":{}}}`)})
	require.NoError(t, err)
	assert.Equal(t, new(Catalog), c, "of another version")
	burning := errors.New("disk on fire")
	_, err = Read(&mcptest.Store{Err: burning})
	assert.ErrorIs(t, err, burning)
	assert.ErrorIs(t, new(Catalog).Save(&mcptest.Store{Err: burning}), burning)
}

// Two processes share a store: none loses the names of the other.
func TestSaveMergesNames(t *testing.T) {
	t.Parallel()
	claim := func(server, prefix string) names.Claim {
		return names.Claim{Server: server, Wanted: prefix, Prefix: prefix}
	}
	store := new(mcptest.Store)
	save := func(claims ...names.Claim) error { return (&Catalog{Names: claims}).Save(store) }
	require.NoError(t, save(claim("a-b", "mcp_a_b")))
	require.NoError(t, save(claim("c", "mcp_c"), claim("a_b", "mcp_a_b")))
	got, err := Read(store)
	require.NoError(t, err)
	assert.Equal(t, []names.Claim{claim("a-b", "mcp_a_b"), claim("c", "mcp_c")}, got.Names)

	before := store.Data
	store.Err = errors.New("disk on fire")
	assert.ErrorIs(t, save(), store.Err)
	assert.Equal(t, before, store.Data, "not overwritten")
	for _, data := range []string{"{", `{"version":9}`} {
		store.Data, store.Err = []byte(data), nil
		require.NoError(t, save(claim("c", "mcp_c")))
		got, err = Read(store)
		require.NoError(t, err)
		assert.Equal(t, []names.Claim{claim("c", "mcp_c")}, got.Names, data)
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	assert.Len(t, Key("command", []string{"a"}), 32)
	assert.Equal(t, Key("command", []string{"a"}), Key("command", []string{"a"}))
	assert.NotEqual(t, Key("command", []string{"a"}), Key("command", []string{"b"}))
	assert.NotEqual(t, Key("ab", "c"), Key("a", "bc"))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"version":1,"names":[{}],"servers":{"a":{"config":"c","listed":"2026-01-01T00:00:00Z","tools":["{}"]}}}`))
	f.Add([]byte(`{"version":1,"servers":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(&mcptest.Store{Data: data})
		if err != nil {
			require.Nil(t, c)
			return
		}
		if c.Version != version {
			require.Equal(t, new(Catalog), c)
			return
		}
		store := new(mcptest.Store)
		if c.Save(store) != nil {
			t.Skip("a time that JSON can't write")
		}
		again, err := Read(store)
		require.NoError(t, err)
		require.Len(t, again.Servers, len(c.Servers))
	})
}
