package weaviatestore

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newOptions returns the server and a new class, which is deleted after the
// test.
func newOptions(t testing.TB) Options {
	t.Helper()
	opts := Options{URL: "http://" + addr(t), Class: fmt.Sprintf("McphybridTest%d", rand.Uint64())}
	t.Cleanup(func() { assert.NoError(t, deleteClass(context.Background(), open(t, opts))) })
	return opts
}

func deleteClass(ctx context.Context, s *Store) error {
	return s.call(ctx, http.MethodDelete, "/v1/schema/"+s.opts.Class, nil, nil)
}

// open returns a store with its own connections.
func open(t testing.TB, opts Options) *Store {
	t.Helper()
	opts.Client = &http.Client{Transport: new(http.Transport), Timeout: time.Minute}
	t.Cleanup(opts.Client.CloseIdleConnections)
	s, err := New(opts)
	require.NoError(t, err)
	return s
}

// fetch returns the server's answer for a path.
func fetch[T any](t *testing.T, s *Store, path string) (out T) {
	t.Helper()
	require.NoError(t, s.call(t.Context(), http.MethodGet, path, nil, func(reply []byte) error { return json.Unmarshal(reply, &out) }))
	return out
}

// tenants returns the names of a class's tenants.
func tenants(t *testing.T, s *Store) (names []string) {
	t.Helper()
	for _, tenant := range fetch[[]struct{ Name string }](t, s, "/v1/schema/"+s.opts.Class+"/tenants") {
		names = append(names, tenant.Name)
	}
	return names
}

func tool(id string, v ...float32) vector.Record {
	return vector.Record{ID: id, Sum: "sum of " + id, Server: "s", Text: "text of " + id, Vector: v}
}

func search(t *testing.T, s *Store, scope string, q vector.Query) (ids []string) {
	t.Helper()
	found, err := s.Search(t.Context(), scope, q)
	require.NoError(t, err)
	for _, m := range found {
		ids = append(ids, m.ID)
	}
	return ids
}

// The server is real and has the version that the documentation names.
func TestServer(t *testing.T) {
	s := open(t, Options{URL: "http://" + addr(t)})
	meta := fetch[struct{ Version string }](t, s, "/v1/meta")
	t.Logf("the server at %s says that it is Weaviate %s", addr(t), meta.Version)
	if own == nil {
		t.Skipf("it is the one that %s names", addrVariable)
	}
	assert.Equal(t, serverVersion, meta.Version)
	_, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second)
	assert.ErrorContains(t, err, "unreachable", "no way out of the namespace, and none in")
}

func TestStore(t *testing.T) {
	opts := newOptions(t)
	storetest.Run(t, storetest.Subject{
		Open: func(t *testing.T) vector.Store { return open(t, opts) },
		Broken: func(t *testing.T) vector.Store {
			return open(t, Options{URL: "http://127.0.0.1:1", Class: opts.Class}) // nobody listens there
		},
		Slow: func(t *testing.T) vector.Store {
			l := newLine(t)
			s := l.store(t, opts)
			l.hush()
			return s
		},
	})
	assert.Empty(t, tenants(t, open(t, opts)), "dropped scopes leave nothing")
}

// Of many equal tools, the first by ID are found, although the engine returns
// any.
func TestTiesBeyondTheLimit(t *testing.T) {
	s := open(t, newOptions(t))
	tools := []vector.Record{tool("zz", 1, 0)}
	tools[0].Text = "text text"
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(500) {
		u := tool(fmt.Sprintf("t%03d", i), 1, 1)
		u.Text = "text"
		tools = append(tools, u)
	}
	require.NoError(t, s.Upsert(t.Context(), "u", tools))
	for _, q := range []vector.Query{
		{Vector: []float32{1, 0}}, {Words: "text"}, {Words: "text", Vector: []float32{1, 0}, Alpha: 0.5}, {Words: "text", Servers: []string{"s"}},
	} {
		q.Limit, q.Candidates = 3, 3
		assert.Equal(t, []string{"zz", "t000", "t001"}, search(t, s, "u", q), "%+v", q)
	}
}

// The class holds what the package comment says.
func TestObjects(t *testing.T) {
	opts := newOptions(t)
	s := open(t, opts)
	a := tool("a", 3, 4)
	a.Description, a.Schema = "Does a.", `{"type":"object"}`
	require.NoError(t, s.Upsert(t.Context(), "system", []vector.Record{a}))
	require.NoError(t, s.Upsert(t.Context(), "Ünï", []vector.Record{{ID: "b", Sum: "1", Server: "s", Text: "bad \xff"}}))
	hashed := "216999f2898ef2f6f5514c9966e633a6224e147925670b4a0461ac6036b37df4"
	assert.ElementsMatch(t, []string{"system", hashed}, tenants(t, s))

	get := func(tenant, tool string) object {
		return fetch[object](t, s, "/v1/objects/"+opts.Class+"/"+objectID(tool)+"?include=vector&tenant="+tenant)
	}
	o := get("system", "a")
	assert.InDeltaSlice(t, []float32{0.6, 0.8}, o.Vector, 1e-6)
	assert.Equal(t, map[string]any{
		"tool_name": "a", "origin": "s", "origin_sha256": "043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89",
		"text": "text of a", "sum": "sum of a", "scope": "system", "dimensions": 2.0, "description": "Does a.", "schema_json": `{"type":"object"}`,
	}, o.Properties)
	o = get(hashed, "b")
	assert.Empty(t, o.Vector)
	assert.Equal(t, "bad \uFFFD", o.Properties["text"])
	assert.Equal(t, "Ünï", o.Properties["scope"])

	// Objects of other programs in a tenant are skipped.
	foreign := &object{Class: opts.Class, Tenant: "system", ID: "00000000-0000-4000-8000-000000000001", Vector: []float32{0.6, 0.8},
		Properties: map[string]any{"tool_name": "a", "text": "text of a", "sum": "foreign"}}
	require.NoError(t, s.send(t.Context(), []*object{foreign}))
	assert.Equal(t, []string{"a"}, search(t, s, "system", vector.Query{Words: "text", Vector: []float32{3, 4}, Limit: 5, Alpha: 0.5}))
	sums, err := s.Sums(t.Context(), "system")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "sum of a"}, sums)
	got, err := s.Get(t.Context(), "system", []string{"a"})
	require.NoError(t, err)
	assert.Len(t, got, 1)
}

// The reason why the store does not use Weaviate's own fusion:
// relativeScoreFusion gives 0 to the last result of each side, however similar
// it is, and does not report a cosine.
func TestRelativeScores(t *testing.T) {
	s := open(t, newOptions(t))
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("best", 1, 0), tool("good", 1, 0.1)}))
	rows, err := s.ask(t.Context(), map[string]*query{"x": s.query("u", "tool_name _additional {id score}", 10,
		`hybrid: {query: "nothing like it", vector: [1, 0], alpha: 0.6, fusionType: relativeScoreFusion}`)})
	require.NoError(t, err)
	native, err := matches(rows["x"], byWords) // a score
	require.NoError(t, err)
	t.Logf("Weaviate's own scores: %+v", native)
	require.Len(t, native, 2)
	assert.Zero(t, native[1].Words, "a similarity of 0.995")

	found, err := s.Search(t.Context(), "u", vector.Query{Words: "nothing like it", Vector: []float32{1, 0}, Alpha: 0.6, Limit: 2})
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.InDelta(t, 0.6*0.995, found[1].Score, 1e-3)
}

// Requests stay small. Answers may be large and come in pages.
func TestBatches(t *testing.T) {
	s := open(t, newOptions(t))
	var tools []vector.Record
	for i := range 2500 {
		u := tool(fmt.Sprintf("t%04d", i), 1, float32(i))
		if i%5 == 0 {
			u.Text = fmt.Sprintf("%020000d", i)
		}
		tools = append(tools, u)
	}
	tools[7].Text += fmt.Sprintf("%05000000d", 7) // alone larger than a request
	require.NoError(t, s.Upsert(t.Context(), "u", tools))
	sums, err := s.Sums(t.Context(), "u")
	require.NoError(t, err)
	assert.Len(t, sums, 2500)
	assert.Equal(t, "sum of t2499", sums["t2499"])
	assert.Len(t, search(t, s, "u", vector.Query{Vector: []float32{1, 1}, Words: "text", Limit: 3000, Candidates: 1 << 40, Alpha: 0.5}), 2500)
	assert.Len(t, search(t, s, "u", vector.Query{Words: "text", Limit: 3000}), 2000)
}

// The vectors of a scope keep their length until the scope is dropped, even
// when no tool is left to show it.
func TestDimensionsStay(t *testing.T) {
	opts := newOptions(t)
	s := open(t, opts)
	bare := vector.Record{ID: "bare", Sum: "1", Server: "s"}
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{bare, tool("a", 1, 0)}))
	err := s.Upsert(t.Context(), "u", []vector.Record{tool("b", 1, 0, 0)})
	assert.ErrorIs(t, err, vector.ErrDimensions)
	assert.EqualError(t, err, `weaviatestore: scope "u": storing: the vector has the wrong number of dimensions: 3, not 2`)
	require.NoError(t, s.Delete(t.Context(), "u", []string{"a"}))
	assert.ErrorIs(t, s.Upsert(t.Context(), "u", []vector.Record{tool("b", 1, 0, 0)}), vector.ErrDimensions)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("b", 0, 1)}))
	require.NoError(t, s.Upsert(t.Context(), "other", []vector.Record{tool("b", 1, 0, 0)}), "each scope has its own")
	require.NoError(t, s.Drop(t.Context(), "u"))
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("b", 1, 0, 0)}))
	assert.Equal(t, []string{"b"}, search(t, s, "u", vector.Query{Vector: []float32{1, 0, 0}, Limit: 5}))
}

// A similarity equal to Least counts, although the engine reports 1 minus it,
// as a float32.
func TestLeastItself(t *testing.T) {
	s := open(t, newOptions(t))
	for i, sides := range [][3]float32{{3, 4, 5}, {7, 24, 25}, {5, 12, 13}, {8, 15, 17}, {9, 40, 41}, {11, 60, 61}, {13, 84, 85}, {1, 0, 1}} {
		scope, least := fmt.Sprint("u", i), float64(sides[0])/float64(sides[2])
		require.NoError(t, s.Upsert(t.Context(), scope, []vector.Record{tool("a", sides[0], sides[1])}))
		assert.Equal(t, []string{"a"}, search(t, s, scope, vector.Query{Vector: []float32{1, 0}, Limit: 1, Least: least}), "%v", least)
		assert.Empty(t, search(t, s, scope, vector.Query{Vector: []float32{1, 0}, Limit: 1, Least: least + 1e-6}), "%v", least)
	}
}
