package qdrantstore

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/qdrant/go-client/qdrant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// open returns a store with its own client for the engine at addr.
func open(t testing.TB, addr, apiKey string, opts *Options) *Store {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	client, err := qdrant.NewClient(&qdrant.Config{Host: host, Port: n, APIKey: apiKey, SkipCompatibilityCheck: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return New(client, opts)
}

func newStore(t testing.TB) (*fakeEngine, *Store) {
	f, addr := newFake(t)
	return f, open(t, addr, "", nil)
}

func subject(addr, apiKey string, opts *Options) storetest.Subject {
	return storetest.Subject{
		Open: func(t *testing.T) vector.Store { return open(t, addr, apiKey, opts) },
		Broken: func(t *testing.T) vector.Store {
			return open(t, "127.0.0.1:1", apiKey, opts) // nobody listens there
		},
		Slow: func(t *testing.T) vector.Store {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
			return open(t, l.Addr().String(), apiKey, opts)
		},
		NoWords: true,
	}
}

func TestStoreFake(t *testing.T) {
	f, addr := newFake(t)
	storetest.Run(t, subject(addr, "", nil))
	assert.Empty(t, f.names(), "dropped scopes leave nothing")
}

// Older servers send vectors in another field.
func TestOlderServer(t *testing.T) {
	f, addr := newFake(t)
	f.older = true
	s := open(t, addr, "", nil)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 3, 4)}))
	got, err := s.Get(t.Context(), "u", []string{"a"})
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.InDeltaSlice(t, []float32{0.6, 0.8}, got[0].Vector, 1e-6)
}

func TestStoreQdrant(t *testing.T) {
	addr := os.Getenv("QDRANT_ADDR")
	if addr == "" {
		t.Skip("QDRANT_ADDR is not set: nothing here is tested against a real Qdrant")
	}
	own := fmt.Sprintf("mcphybrid_test_%d_", time.Now().UnixNano()) // Run drops its scopes
	storetest.Run(t, subject(addr, os.Getenv("QDRANT_API_KEY"), &Options{
		Collection: func(scope string) string { return own + CollectionName(scope) },
	}))
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

// The collections hold what the package comment says.
func TestPoints(t *testing.T) {
	f, addr := newFake(t)
	s := open(t, addr, "", &Options{Model: "m-1"})
	a := tool("a", 3, 4)
	a.Description, a.Schema = "Does a.\nAnd more.", `{"type":"object"}`
	require.NoError(t, s.Upsert(t.Context(), "system", []vector.Record{a}))
	require.NoError(t, s.Upsert(t.Context(), "user:4f1c", []vector.Record{{ID: "b", Sum: "1", Server: "s", Text: "bad \xff", Vector: []float32{0, 1, 0}}}))
	assert.Equal(t, []string{"kb_user_4f1c_tools", "sys_tool_index"}, f.names())

	c := f.collections["sys_tool_index"]
	assert.Equal(t, uint64(2), c.params.GetSize())
	assert.Equal(t, qdrant.Distance_Cosine, c.params.GetDistance())
	assert.Equal(t, map[string]bool{"origin": true}, c.indexed)
	payload := func(p *fakePoint) map[string]string {
		m := make(map[string]string)
		for k, v := range p.payload {
			m[k] = v.GetStringValue()
		}
		return m
	}
	p := c.points["ca978112-ca1b-8dca-bac2-31b39a23dc4d"] // sha256("a") is ca978112ca1bbdcafac231b39a23dc4d…
	require.NotNil(t, p)
	assert.InDeltaSlice(t, []float32{0.6, 0.8}, p.vector, 1e-6)
	assert.Equal(t, map[string]string{
		"tool_name": "a", "origin": "s", "plugin_id": "s", "description": "Does a.\nAnd more.", "schema_json": `{"type":"object"}`,
		"text": "text of a", "sum": "sum of a", "embedding_model": "m-1", "scope": "system",
	}, payload(p))
	assert.Equal(t, map[string]string{
		"tool_name": "b", "origin": "s", "plugin_id": "user_mcp", "text": "bad \uFFFD", "sum": "1", "embedding_model": "m-1", "scope": "user", "user_id": "4f1c",
	}, payload(f.collections["kb_user_4f1c_tools"].points[pointID("b")]))
}

// Tools come and go with and without vectors, in a scope that begins without
// vectors.
func TestWithoutVectors(t *testing.T) {
	f, s := newStore(t)
	bare := tool("a")
	bare.Vector = nil
	sums := func(want ...string) {
		t.Helper()
		got, err := s.Sums(t.Context(), "u")
		require.NoError(t, err)
		assert.Len(t, got, len(want))
		for _, id := range want {
			assert.Equal(t, "sum of "+id, got[id])
		}
	}
	q := vector.Query{Vector: []float32{1, 0}, Limit: 10}
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{bare}))
	assert.Equal(t, []string{"kb_scope_u_tools_without_vectors"}, f.names())
	sums("a")
	assert.Empty(t, search(t, s, "u", q))

	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0), tool("b", 1, 1)}))
	sums("a", "b")
	assert.Empty(t, f.collections["kb_scope_u_tools_without_vectors"].points)
	assert.Equal(t, []string{"a", "b"}, search(t, s, "u", q))

	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{bare}))
	sums("a", "b")
	assert.Equal(t, []string{"b"}, search(t, s, "u", q))
	require.NoError(t, s.Delete(t.Context(), "u", []string{"a"}))
	sums("b")

	// If a batch has an ID twice, the last record counts.
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{bare, tool("a", 0, 1), tool("a", 1, 0)}))
	sums("a", "b")
	assert.Equal(t, []string{"a", "b"}, search(t, s, "u", q))
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0), bare}))
	assert.Equal(t, []string{"b"}, search(t, s, "u", q))

	require.NoError(t, s.Drop(t.Context(), "u"))
	assert.Empty(t, f.names())
}

// Of many equal tools, the first by ID are found, although the engine returns
// any.
func TestTiesBeyondTheLimit(t *testing.T) {
	_, s := newStore(t)
	var tools []vector.Record
	for i := range 500 {
		tools = append(tools, tool(fmt.Sprintf("t%03d", i), 1, 1))
	}
	tools = append(tools, tool("zz", 1, 0))
	require.NoError(t, s.Upsert(t.Context(), "u", tools))
	assert.Equal(t, []string{"zz", "t000", "t001"}, search(t, s, "u", vector.Query{Vector: []float32{1, 0}, Limit: 3, Candidates: 3}))
}

// A tool whose similarity equals Least counts.
func TestLeastCounts(t *testing.T) {
	_, s := newStore(t)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("same", 0, 2)}))
	more := float64(math.Nextafter32(1, 2)) // than any similarity
	for range 20 {                          // however the engine treats similarities equal to the threshold
		assert.Equal(t, []string{"same"}, search(t, s, "u", vector.Query{Vector: []float32{0, 7}, Limit: 3, Least: 1}))
		assert.Empty(t, search(t, s, "u", vector.Query{Vector: []float32{0, 7}, Limit: 3, Least: more}))
		assert.Empty(t, search(t, s, "u", vector.Query{Vector: []float32{1, 0}, Limit: 3}), "0 is not positive")
	}
	// Lengths whose squares don't fit float32.
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("same", 1e-30, 0), tool("great", 1e30, 0)}))
	assert.Equal(t, []string{"great", "same"}, search(t, s, "u", vector.Query{Vector: []float32{3e-35, 0}, Limit: 3, Least: 0.999}))
	assert.Empty(t, search(t, s, "u", vector.Query{Words: "text of same", Limit: 3}), "words find nothing")
	assert.Len(t, search(t, s, "u", vector.Query{Vector: []float32{1, 0}, Words: "x", Limit: math.MaxInt, Candidates: math.MaxInt}), 2)
}

// Requests stay below the limit of gRPC servers; answers may be larger.
func TestBatches(t *testing.T) {
	f, s := newStore(t)
	var tools []vector.Record
	for i := range 600 {
		u := tool(fmt.Sprintf("%s%d", strings.Repeat("long", 2500), i), 1, float32(i))
		u.Text = strings.Repeat("x", 20_000)
		tools = append(tools, u)
	}
	tools[7].Text = strings.Repeat("x", 3<<20) // alone as large as a request may be
	require.NoError(t, s.Upsert(t.Context(), "u", tools))
	n := f.asked()["Points/Upsert"]
	assert.True(t, n >= 7 && n < 20, "%d requests", n)
	assert.Less(t, f.largest, 4<<20)
	sums, err := s.Sums(t.Context(), "u")
	require.NoError(t, err)
	assert.Len(t, sums, 600)
	assert.Len(t, search(t, s, "u", vector.Query{Vector: []float32{1, 1}, Limit: 1000}), 600)

	many := make([]vector.Record, 2500)
	for i := range many {
		many[i] = tool(fmt.Sprint(i), 1, float32(i))
	}
	f.asked()
	require.NoError(t, s.Upsert(t.Context(), "v", many))
	assert.Equal(t, 10, f.asked()["Points/Upsert"], "of 256 points each")
	sums, err = s.Sums(t.Context(), "v")
	require.NoError(t, err)
	assert.Len(t, sums, 2500)
	assert.Equal(t, 3+1, f.asked()["Points/Scroll"], "three pages, and no second collection")
}

// Once a scope is ready, Upsert makes no further requests.
func TestRequests(t *testing.T) {
	f, addr := newFake(t)
	first, second := open(t, addr, "", nil), open(t, addr, "", nil)
	put := func(s *Store) map[string]int {
		require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
		return f.asked()
	}
	assert.Equal(t, map[string]int{
		"Collections/Get": 2, "Collections/Create": 1, "Points/CreateFieldIndex": 1, "Points/Upsert": 1, "Points/Delete": 1,
	}, put(first))
	assert.Equal(t, map[string]int{"Points/Upsert": 1, "Points/Delete": 1}, put(first))
	assert.Equal(t, map[string]int{"Collections/Get": 1, "Points/Upsert": 1, "Points/Delete": 1}, put(second))

	assert.Equal(t, []string{"a"}, search(t, first, "u", vector.Query{Vector: []float32{1, 0}, Limit: 1, Candidates: 1}))
	assert.Equal(t, map[string]int{"Points/Query": 1}, f.asked())
	_, err := first.Get(t.Context(), "u", []string{"a", "b"})
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"Points/Get": 2}, f.asked())

	// Another process drops the scope.
	require.NoError(t, second.Drop(t.Context(), "u"))
	f.asked()
	put(first)
	assert.Equal(t, []string{"a"}, search(t, second, "u", vector.Query{Vector: []float32{1, 0}, Limit: 1}))

	// The scope comes back with other dimensions.
	require.NoError(t, second.Drop(t.Context(), "u"))
	require.NoError(t, second.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0, 0)}))
	assert.ErrorIs(t, first.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}), vector.ErrDimensions)
	require.NoError(t, first.Upsert(t.Context(), "u", []vector.Record{tool("b", 1, 0, 1)}))

	// Empty calls make no requests.
	f.asked()
	require.NoError(t, first.Upsert(t.Context(), "u", nil))
	require.NoError(t, first.Delete(t.Context(), "u", nil))
	_, err = first.Get(t.Context(), "u", nil)
	require.NoError(t, err)
	assert.Empty(t, search(t, first, "u", vector.Query{Vector: []float32{1, 0}, Limit: 5, Servers: []string{}}))
	assert.Empty(t, f.asked())
}

// Processes that make the same scopes concurrently all succeed.
func TestManyMakeTheSame(t *testing.T) {
	f, addr := newFake(t)
	var wg sync.WaitGroup
	for w := range 6 {
		s := open(t, addr, "", nil)
		wg.Go(func() {
			for round := range 10 {
				scope := fmt.Sprint("u", round%3)
				assert.NoError(t, s.Upsert(t.Context(), scope, []vector.Record{tool(fmt.Sprint("w", w), 1, 1), {ID: fmt.Sprint("bare", w)}}))
			}
		})
	}
	wg.Wait()
	assert.Len(t, f.names(), 6)
	for _, scope := range []string{"u0", "u1", "u2"} {
		sums, err := open(t, addr, "", nil).Sums(t.Context(), scope)
		require.NoError(t, err)
		assert.Len(t, sums, 12)
	}

	// Two processes find no collection, and one makes it first.
	f, s := newStore(t)
	f.setBefore(func(_ string, r proto.Message) error {
		if create, ok := r.(*qdrant.CreateCollection); ok {
			f.mu.Lock()
			defer f.mu.Unlock()
			_, err := fakeCollections{fakeEngine: f}.Create(t.Context(), create)
			assert.NoError(t, err)
		}
		return nil
	})
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1)}))

	// One process drops a collection that another has just made.
	dropped := false
	f.setBefore(func(method string, _ proto.Message) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if method == "Points/CreateFieldIndex" && !dropped {
			dropped = true
			clear(f.collections)
		}
		return nil
	})
	require.NoError(t, s.Upsert(t.Context(), "v", []vector.Record{tool("a", 1)}))
	assert.True(t, dropped)
	assert.Equal(t, []string{"kb_scope_v_tools"}, f.names())
}

// A collection of another program is reported before anything is written.
// Points of other programs in it are skipped.
func TestForeignCollections(t *testing.T) {
	f, s := newStore(t)
	params := func(size uint64, d qdrant.Distance) *fakeCollection {
		return &fakeCollection{params: &qdrant.VectorParams{Size: size, Distance: d}, points: make(map[string]*fakePoint), indexed: make(map[string]bool)}
	}
	f.collections["kb_scope_dot_tools"] = params(2, qdrant.Distance_Dot)
	f.collections["kb_scope_long_tools"] = params(3, qdrant.Distance_Cosine)
	f.collections["kb_scope_named_tools"] = &fakeCollection{points: make(map[string]*fakePoint)}
	shared := params(2, qdrant.Distance_Cosine)
	f.collections["kb_scope_shared_tools"] = shared
	shared.points[pointID("other")] = &fakePoint{[]float32{1, 0}, map[string]*qdrant.Value{"tool_name": qdrant.NewValueString("mine")}}
	shared.points[pointID("note")] = &fakePoint{[]float32{1, 0}, nil}

	put := func(scope string) error {
		return s.Upsert(t.Context(), scope, []vector.Record{tool("a", 1, 0)})
	}
	assert.EqualError(t, put("dot"), `qdrantstore: scope "dot": storing: collection "kb_scope_dot_tools" has the distance Dot, not cosine`)
	assert.ErrorIs(t, put("long"), vector.ErrDimensions)
	assert.EqualError(t, put("named"), `qdrantstore: scope "named": storing: collection "kb_scope_named_tools" has not one vector without a name`)
	require.NoError(t, put("shared"))
	assert.True(t, shared.indexed["origin"])
	assert.Equal(t, []string{"a"}, search(t, s, "shared", vector.Query{Vector: []float32{1, 0}, Limit: 5}))
	sums, err := s.Sums(t.Context(), "shared")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "sum of a"}, sums)
	got, err := s.Get(t.Context(), "shared", []string{"a", "other", "mine", "note"})
	require.NoError(t, err)
	assert.Equal(t, []vector.Record{{ID: "a", Sum: "sum of a", Server: "s", Vector: []float32{1, 0}}}, got)
}

// Errors name the scope and the operation, and never the API key.
func TestErrors(t *testing.T) {
	f, addr := newFake(t)
	f.apiKey = "the-secret"
	right, wrong := open(t, addr, "the-secret", nil), open(t, addr, "another-secret", nil)
	ctx := t.Context()
	tools := []vector.Record{tool("a", 1, 0)}
	require.NoError(t, right.Upsert(ctx, "u", tools))
	all := func(s *Store, ctx context.Context) []error {
		_, searchErr := s.Search(ctx, "u", vector.Query{Vector: []float32{1, 0}, Limit: 1})
		_, sumsErr := s.Sums(ctx, "u")
		_, getErr := s.Get(ctx, "u", []string{"a"})
		return []error{searchErr, sumsErr, getErr, s.Upsert(ctx, "u", tools), s.Delete(ctx, "u", []string{"a"}), s.Drop(ctx, "u")}
	}
	for i, err := range all(wrong, ctx) {
		assert.Equal(t, codes.Unauthenticated, status.Code(err))
		assert.ErrorContains(t, err, `qdrantstore: scope "u": `+[]string{"searching", "listing", "reading", "storing", "deleting", "dropping"}[i])
		assert.NotContains(t, err.Error(), "secret")
		assert.NotErrorIs(t, err, vector.ErrDimensions)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, none := right.Get(canceled, "u", nil)
	for _, err := range append(all(right, canceled), right.Upsert(canceled, "u", nil), none) {
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, `qdrantstore: scope "u": `)
	}
	late, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	for _, err := range all(right, late) {
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}

	// A refusal for another reason is not reported as an error of dimensions.
	f.setBefore(func(method string, _ proto.Message) error {
		if method == "Points/Upsert" || method == "Points/Query" {
			return invalid("Wrong input: no")
		}
		return nil
	})
	for _, err := range []error{all(right, ctx)[0], right.Upsert(ctx, "u", tools)} {
		assert.Equal(t, codes.InvalidArgument, status.Code(err))
		assert.NotErrorIs(t, err, vector.ErrDimensions)
	}
	f.setBefore(nil)

	for _, bad := range []vector.Record{
		{ID: "a\xff"}, {ID: "a", Sum: "\xff"}, {ID: "a", Server: "\xff"}, tool("a", []float32{}...), tool("a", 0, 0),
		tool("a", float32(math.NaN()), 1), tool("a", float32(math.Inf(-1)), 1),
	} {
		assert.ErrorContains(t, right.Upsert(ctx, "u", []vector.Record{bad}), "qdrantstore: scope \"u\": tool \"a", "%+v", bad)
	}
	err := right.Upsert(ctx, "new", []vector.Record{tool("a", 1, 0), tool("b", 1)})
	assert.ErrorIs(t, err, vector.ErrDimensions)
	assert.EqualError(t, err, `qdrantstore: scope "new": tool "b": the vector has the wrong number of dimensions: 1, not the 2 of the others`)
	assert.NotContains(t, f.names(), CollectionName("new"))
}

// A change that may not be visible is an error.
func TestNotApplied(t *testing.T) {
	for _, st := range []qdrant.UpdateStatus{qdrant.UpdateStatus_UnknownUpdateStatus, qdrant.UpdateStatus_Acknowledged, qdrant.UpdateStatus_WaitTimeout} {
		assert.ErrorContains(t, applied(&qdrant.PointsOperationResponse{Result: &qdrant.UpdateResult{Status: st}}, nil), st.String())
	}
	assert.Error(t, applied(&qdrant.PointsOperationResponse{}, nil))
}

func TestOptions(t *testing.T) {
	f, addr := newFake(t)
	var made []string
	s := open(t, addr, "", &Options{
		Collection: func(scope string) string { return "team_" + scope },
		Create:     func(r *qdrant.CreateCollection) { made = append(made, r.GetCollectionName()) },
	})
	require.NoError(t, s.Upsert(t.Context(), "system", []vector.Record{tool("a", 1), {ID: "b"}}))
	assert.Equal(t, []string{"team_system", "team_system_without_vectors"}, f.names())
	assert.Equal(t, f.names(), made)
	assert.PanicsWithValue(t, "qdrantstore: the client is nil", func() { New(nil, nil) })
}

// The fake refuses everything that it would have to ignore, so that the store
// can't rely on it.
func TestFakeIsStrict(t *testing.T) {
	_, s := newStore(t)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
	name := CollectionName("u")
	points := s.client.GetPointsClient()
	query := func(change func(*qdrant.QueryPoints)) error {
		q := &qdrant.QueryPoints{CollectionName: name, Query: qdrant.NewQuery(1, 0), Params: &qdrant.SearchParams{Exact: qdrant.PtrOf(true)}}
		change(q)
		_, err := points.Query(t.Context(), q)
		return err
	}
	require.NoError(t, query(func(*qdrant.QueryPoints) {}))
	for _, test := range []struct {
		want codes.Code
		err  error
	}{
		{codes.Unimplemented, query(func(q *qdrant.QueryPoints) { q.Offset = qdrant.PtrOf(uint64(1)) })},
		{codes.Unimplemented, query(func(q *qdrant.QueryPoints) { q.Using = qdrant.PtrOf("") })},
		{codes.Unimplemented, query(func(q *qdrant.QueryPoints) { q.Params.HnswEf = qdrant.PtrOf(uint64(1)) })},
		{codes.Unimplemented, query(func(q *qdrant.QueryPoints) {
			q.Filter = &qdrant.Filter{MustNot: []*qdrant.Condition{qdrant.NewMatch("origin", "x")}}
		})},
		{codes.Unimplemented, query(func(q *qdrant.QueryPoints) { q.WithPayload = qdrant.NewWithPayload(true) })},
		{codes.InvalidArgument, query(func(q *qdrant.QueryPoints) { q.Query = qdrant.NewQuery(1) })},
		{codes.InvalidArgument, query(func(q *qdrant.QueryPoints) { q.Limit = qdrant.PtrOf(uint64(0)) })},
		{codes.InvalidArgument, query(func(q *qdrant.QueryPoints) {
			q.Filter = &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchKeywords("tool_name", "x")}}
		})},
		{codes.NotFound, query(func(q *qdrant.QueryPoints) { q.CollectionName = "none" })},
	} {
		assert.Equal(t, test.want, status.Code(test.err), "%v", test.err)
	}
	upsert := func(id *qdrant.PointId, wait *bool) error {
		_, err := points.Upsert(t.Context(), &qdrant.UpsertPoints{CollectionName: name, Wait: wait, Points: []*qdrant.PointStruct{{Id: id, Vectors: qdrant.NewVectors(1, 0)}}})
		return err
	}
	assert.Equal(t, codes.InvalidArgument, status.Code(upsert(qdrant.NewIDUUID("not a uuid"), qdrant.PtrOf(true))))
	assert.Equal(t, codes.Unimplemented, status.Code(upsert(qdrant.NewIDUUID(pointID("x")), nil)))
	assert.Equal(t, codes.Unimplemented, status.Code(upsert(qdrant.NewIDNum(7), qdrant.PtrOf(true))))
	_, err := points.Count(t.Context(), &qdrant.CountPoints{CollectionName: name})
	assert.Equal(t, codes.Unimplemented, status.Code(err))
	for _, bad := range []string{"", "a/b", strings.Repeat("x", 256)} {
		assert.Error(t, s.client.CreateCollection(t.Context(), &qdrant.CreateCollection{
			CollectionName: bad, VectorsConfig: qdrant.NewVectorsConfig(&qdrant.VectorParams{Size: 1, Distance: qdrant.Distance_Cosine}),
		}))
	}
}

// hostileScopes are names that have caused trouble somewhere.
func hostileScopes() []string {
	list := []string{
		"", "system", "System", "SYSTEM", "system ", "sys_tool_index", "u", "U", "ü", "u\x00", "a/b", `a\b`, "..", ".", "a.b", "*", "?", "\xff", "\xfe",
		"4f1c2d3e-0000-4000-8000-000000000000", "4F1C2D3E-0000-4000-8000-000000000000", "_", "-", "tools", "u_tools", "u_tools_without_vectors", "user:u", "user:U", "user:", "user:user:u", "system/user:u", "scope_u",
		"x\n", "人", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 1000), "kb_scope_u_tools", "K", "\u212a", "con", "nul",
	}
	for _, s := range slices.Clone(list) { // names that look like those of others
		name := CollectionName(s)
		list = append(list, name, strings.TrimSuffix(strings.TrimPrefix(name, "kb_user_"), "_tools"), strings.TrimSuffix(strings.TrimPrefix(name, "kb_scope_"), "_tools"))
	}
	return list
}

// No two scopes share a collection on any file system, and Qdrant accepts each
// name.
func TestCollectionNames(t *testing.T) {
	scopes := hostileScopes()
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "A", "_", "-", ".", "sha256", "tools", "_tools", "kb_user_", "kb_scope_", "user:", "system", "/", "\x00", "人", "0", "\xff"}
	for range 20_000 {
		s := ""
		for range random.IntN(6) {
			s += pieces[random.IntN(len(pieces))]
		}
		scopes = append(scopes, s)
	}
	owners := make(map[string]string)
	taken := regexp.MustCompile(`\A[a-z0-9_.-]{1,200}\z`)
	for _, scope := range scopes {
		for _, name := range []string{CollectionName(scope), CollectionName(scope) + bareSuffix} {
			if !taken.MatchString(name) {
				t.Fatalf("scope %q: collection %q", scope, name)
			}
			if owner, ok := owners[name]; ok && owner != scope {
				t.Fatalf("scopes %q and %q share collection %q", owner, scope, name)
			}
			owners[name] = scope
		}
	}
	assert.Equal(t, "sys_tool_index", CollectionName("system"))
	assert.Equal(t, "kb_user_4f1c2d3e-0000-4000-8000-000000000000_tools", CollectionName("user:4f1c2d3e-0000-4000-8000-000000000000"))
	assert.Equal(t, "kb_scope_4f1c_tools", CollectionName("4f1c"))
	assert.Equal(t, "kb_scope_sha256.e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855_tools", CollectionName(""))
}

func FuzzCollectionName(f *testing.F) {
	for _, s := range hostileScopes() {
		f.Add(s, "u")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := CollectionName(a), CollectionName(b)
		assert.Equal(t, a == b, x == y, "%q %q", a, b)
		assert.NotEqual(t, x, y+bareSuffix)
		assert.Equal(t, a == b, pointID(a) == pointID(b))
		assert.LessOrEqual(t, len(x)+len(bareSuffix), 255)
	})
}
