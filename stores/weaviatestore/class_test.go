package weaviatestore

import (
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unsuitable class of another program is reported before anything is
// written.
func TestForeignClasses(t *testing.T) {
	for _, test := range []struct {
		want   string // at the end of the error; none if empty
		change func(class map[string]any)
	}{
		{"", func(map[string]any) {}},
		{"", func(c map[string]any) { c["vectorIndexType"] = "hnsw" }},
		{"", func(c map[string]any) { propertyOf(c, 3)["tokenization"] = "trigram" }},
		{"has no tenants, or does not make them by itself", func(c map[string]any) { delete(c, "multiTenancyConfig") }},
		{"has no tenants, or does not make them by itself", func(c map[string]any) {
			c["multiTenancyConfig"].(map[string]any)["autoTenantCreation"] = false
		}},
		{"has a distance that is not cosine", func(c map[string]any) { c["vectorIndexConfig"] = map[string]any{"distance": "dot"} }},
		{"has not one vector without a name and without a vectorizer", func(c map[string]any) {
			for _, key := range []string{"vectorizer", "vectorIndexType", "vectorIndexConfig"} {
				delete(c, key)
			}
			c["vectorConfig"] = map[string]any{"x": map[string]any{"vectorIndexType": "flat", "vectorizer": map[string]any{"none": map[string]any{}}}}
		}},
		{`has no property "sum" of the type text`, func(c map[string]any) { propertyOf(c, 4)["name"] = "other" }},
		{`has no property "dimensions" of the type int`, func(c map[string]any) { propertyOf(c, 6)["dataType"] = []string{"number"} }},
		{`has no property "schema_json" of the type text`, func(c map[string]any) {
			propertyOf(c, 8)["dataType"] = []string{"number"}
			delete(propertyOf(c, 8), "tokenization")
		}},
		{`can't be filtered by "origin_sha256"`, func(c map[string]any) { propertyOf(c, 2)["indexFilterable"] = false }},
		{`can't be searched for words in "text"`, func(c map[string]any) { propertyOf(c, 3)["indexSearchable"] = false }},
	} {
		opts := newOptions(t)
		changing := opts
		changing.Create = test.change
		err := open(t, changing).Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}) // makes the class
		if test.want == "" {
			require.NoError(t, err)
			s := open(t, opts) // does not know of the change
			require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
			assert.Equal(t, []string{"a"}, search(t, s, "u", vector.Query{Words: "text", Vector: []float32{1, 0}, Alpha: 0.5, Limit: 5}))
			continue
		}
		assert.EqualError(t, err, `weaviatestore: scope "u": storing: class "`+opts.Class+`" `+test.want)
		assert.NotErrorIs(t, err, vector.ErrDimensions)
	}
}

// A class that an earlier version made gets the properties for readers when a store
// reads or writes it, whatever other stores do at once.
func TestOlderClass(t *testing.T) {
	for _, first := range []string{"get", "upsert"} {
		older := newOptions(t)
		opts := older
		older.Create = func(c map[string]any) {
			list := c["properties"].([]map[string]any)
			c["properties"] = list[:len(list)-len(forReaders)]
		}
		a := tool("a", 3, 4)
		old := open(t, older)
		require.NoError(t, old.call(t.Context(), "POST", "/v1/schema", old.newClass(), nil))
		o, err := old.object("u", &a, 2)
		require.NoError(t, err)
		delete(o.Properties, fieldDescription)
		delete(o.Properties, fieldSchema)
		require.NoError(t, old.send(t.Context(), []*object{o}))

		a.Description, a.Schema = "Does a.", "{}"
		var wg sync.WaitGroup
		for range 4 {
			s := open(t, opts)
			wg.Go(func() {
				if first == "upsert" {
					assert.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{a}))
				}
				got, err := s.Get(t.Context(), "u", []string{"a"})
				assert.NoError(t, err)
				if assert.Len(t, got, 1) {
					assert.InDeltaSlice(t, []float32{0.6, 0.8}, got[0].Vector, 1e-6)
					assert.Equal(t, map[string]string{"get": "", "upsert": "{}"}[first], got[0].Schema)
				}
			})
		}
		wg.Wait()
	}
}

// propertyOf returns a property of a class before it is made.
func propertyOf(class map[string]any, i int) map[string]any {
	return class["properties"].([]map[string]any)[i]
}

// Bad tools are named. Neither they nor the others are stored.
func TestBadTools(t *testing.T) {
	opts := newOptions(t)
	s := open(t, opts)
	require.NoError(t, s.Upsert(t.Context(), "u", nil))
	for _, bad := range []vector.Record{
		{ID: "a\xff"}, {ID: "a", Sum: "\xff"}, {ID: "a", Server: "\xff"}, tool("a", []float32{}...), tool("a", 0, 0),
	} {
		err := s.Upsert(t.Context(), "u", []vector.Record{tool("good", 1, 0), bad})
		assert.ErrorContains(t, err, `weaviatestore: scope "u": tool "a`, "%+v", bad)
	}
	err := s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0), tool("b", 1)})
	assert.ErrorIs(t, err, vector.ErrDimensions)
	assert.EqualError(t, err, `weaviatestore: scope "u": tool "b": the vector has the wrong number of dimensions: 1, not the 2 of the others`)
	sums, err := s.Sums(t.Context(), "u")
	require.NoError(t, err)
	assert.Empty(t, sums)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)})) // for newClass to delete
}
