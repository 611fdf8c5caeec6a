package weaviatestore

import (
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/weaviate/weaviate/entities/models"
)

// What a class that somebody else made is like is said before anything is
// written.
func TestForeignClasses(t *testing.T) {
	for _, test := range []struct {
		want   string // at the end of the error; none if empty
		change func(*models.Class)
	}{
		{"", func(*models.Class) {}},
		{"", func(c *models.Class) { c.VectorIndexType = "hnsw" }},
		{"", func(c *models.Class) { c.Properties[3].Tokenization = models.PropertyTokenizationTrigram }},
		{"has no tenants, or does not make them by itself", func(c *models.Class) { c.MultiTenancyConfig = nil }},
		{"has no tenants, or does not make them by itself", func(c *models.Class) { c.MultiTenancyConfig.AutoTenantCreation = false }},
		{"has the distance dot, not cosine", func(c *models.Class) { c.VectorIndexConfig = map[string]any{"distance": "dot"} }},
		{"has not one vector without a name and without a vectorizer", func(c *models.Class) {
			c.Vectorizer, c.VectorIndexType, c.VectorIndexConfig = "", "", nil
			c.VectorConfig = map[string]models.VectorConfig{"x": {VectorIndexType: "flat", Vectorizer: map[string]any{"none": map[string]any{}}}}
		}},
		{`has no property "sum" of the type text`, func(c *models.Class) { c.Properties[4].Name = "other" }},
		{`has no property "dimensions" of the type int`, func(c *models.Class) { c.Properties[6].DataType = []string{"number"} }},
		{`can't be filtered by "origin_sha256"`, func(c *models.Class) { c.Properties[2].IndexFilterable = new(bool) }},
		{`can't be searched for words in "text"`, func(c *models.Class) { c.Properties[3].IndexSearchable = new(bool) }},
	} {
		opts := newClass(t)
		changing := *opts
		changing.Create = test.change
		s := open(t, &changing)
		require.NoError(t, s.client.Schema().ClassCreator().WithClass(s.class()).Do(t.Context()), test.want)
		s = open(t, opts) // knows nothing of the change
		err := s.Upsert(t.Context(), "u", []mcphybrid.StoredTool{tool("a", 1, 0)})
		if test.want == "" {
			require.NoError(t, err)
			assert.Equal(t, []string{"a"}, search(t, s, "u", mcphybrid.StoreQuery{Words: "text", Vector: []float32{1, 0}, Alpha: 0.5, Limit: 5}))
			continue
		}
		assert.EqualError(t, err, `weaviatestore: scope "u": storing: class "`+opts.Class+`" `+test.want)
		assert.NotErrorIs(t, err, mcphybrid.ErrDimensions)
	}
}

func TestOptions(t *testing.T) {
	s := open(t, nil)
	assert.Equal(t, DefaultClass, s.opts.Class)
	assert.PanicsWithValue(t, "weaviatestore: the client is nil", func() { New(nil, nil) })
	for _, name := range []string{"tools", "T-1", "Tools\n", "T{x}", "Ü"} {
		assert.Panics(t, func() { New(s.client, &Options{Class: name}) }, name)
	}
}

// Bad tools are named, and nothing is stored of them or of the others.
func TestBadTools(t *testing.T) {
	opts := newClass(t)
	s := open(t, opts)
	require.NoError(t, s.Upsert(t.Context(), "u", nil))
	for _, bad := range []mcphybrid.StoredTool{
		{ID: "a\xff"}, {ID: "a", Sum: "\xff"}, {ID: "a", Server: "\xff"}, tool("a", []float32{}...), tool("a", 0, 0),
	} {
		err := s.Upsert(t.Context(), "u", []mcphybrid.StoredTool{tool("good", 1, 0), bad})
		assert.ErrorContains(t, err, `weaviatestore: scope "u": tool "a`, "%+v", bad)
	}
	err := s.Upsert(t.Context(), "u", []mcphybrid.StoredTool{tool("a", 1, 0), tool("b", 1)})
	assert.ErrorIs(t, err, mcphybrid.ErrDimensions)
	assert.EqualError(t, err, `weaviatestore: scope "u": tool "b": the vector has the wrong number of dimensions: 1, not the 2 of the others`)
	sums, err := s.Sums(t.Context(), "u")
	require.NoError(t, err)
	assert.Empty(t, sums)
	require.NoError(t, s.Upsert(t.Context(), "u", []mcphybrid.StoredTool{tool("a", 1, 0)})) // for newClass to delete
}

// What the engine does not say that it stored is not stored.
func TestRefused(t *testing.T) {
	status := func(s string) *models.ObjectsGetResponseAO2Result {
		return &models.ObjectsGetResponseAO2Result{Status: &s}
	}
	for _, r := range []*models.ObjectsGetResponseAO2Result{nil, {}, status("FAILED"), status("PENDING")} {
		assert.Error(t, refused(&models.ObjectsGetResponse{Result: r}))
	}
	assert.NoError(t, refused(&models.ObjectsGetResponse{Result: status("SUCCESS")}))
	withError := status("SUCCESS")
	withError.Errors = &models.ErrorResponse{Error: []*models.ErrorResponseErrorItems0{{Message: "no"}}}
	assert.EqualError(t, refused(&models.ObjectsGetResponse{Result: withError}), "no")
}
