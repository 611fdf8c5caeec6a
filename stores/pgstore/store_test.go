package pgstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var queries = flag.Int("queries", 3000, "how many searches TestSpecD3UsersAreSeparate makes")

func TestStore(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema := e.schema(t)
		broken := func(t *testing.T, breakIt func(*line)) vector.Store {
			far, line := e.through(t)
			s := far.open(t, Options{Schema: schema})
			t.Cleanup(line.cut) // otherwise closing the pool waits
			breakIt(line)
			return s
		}
		storetest.Run(t, storetest.Subject{
			Open:   func(t *testing.T) vector.Store { return e.open(t, Options{Schema: schema}) },
			Broken: func(t *testing.T) vector.Store { return broken(t, (*line).cut) },
			Slow:   func(t *testing.T) vector.Store { return broken(t, (*line).hush) },
		})
	})
}

// The same with indexes from the first tool on.
func TestIndexedStore(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.canIndex(t) {
			t.Skip("its type vector is not that of pgvector")
		}
		schema := e.schema(t)
		storetest.Run(t, storetest.Subject{
			Open:        func(t *testing.T) vector.Store { return e.open(t, Options{Schema: schema, IndexAbove: 1}) },
			Approximate: true,
		})
	})
}

// canIndex reports whether there are HNSW indexes.
func (e *engine) canIndex(t *testing.T) (there bool) {
	_ = e.open(t, Options{Schema: e.schema(t)}) // makes the extension
	require.NoError(t, e.pool(t).QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_am WHERE amname = 'hnsw')").Scan(&there))
	return there
}

// randomTools returns n tools of few words and few servers, with vectors of
// dims elements around some centres.
func randomTools(random *rand.Rand, n, dims int, prefix string) []vector.Record {
	tools := make([]vector.Record, n)
	for i := range tools {
		tools[i] = vector.Record{
			ID: fmt.Sprintf("%s%05d", prefix, i), Sum: fmt.Sprint(i), Server: fmt.Sprint("server ", i%7),
			Text: randomText(random, 8), Vector: randomVector(random, dims),
		}
	}
	return tools
}

var words = strings.Fields("create list delete update search issue branch commit message channel invoice customer file folder calendar event weather alert dashboard query")

func randomText(random *rand.Rand, n int) string {
	var list []string
	for range n {
		list = append(list, words[random.IntN(len(words))])
	}
	return strings.Join(list, " ")
}

func randomVector(random *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	v[random.IntN(dims)] += 4
	return v
}

// One statement gives the same answer as Fuse gives for the two sides.
func TestSpecC2StatementIsFuse(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		s := e.open(t, Options{Schema: e.schema(t)})
		random := rand.New(rand.NewPCG(1, 1))
		tools := randomTools(random, 400, 16, "tool")
		for i := range tools {
			if i%5 == 0 {
				tools[i].Vector = nil
			}
		}
		require.NoError(t, s.Upsert(t.Context(), "scope", tools))
		memory := new(vector.MemoryStore)
		require.NoError(t, memory.Upsert(t.Context(), "scope", tools))
		for i := range 100 {
			q := vector.Query{
				Words: randomText(random, 2), Vector: randomVector(random, 16), Alpha: random.Float64(),
				Limit: 1 + random.IntN(30), Candidates: random.IntN(40), Least: random.Float64() / 2,
			}
			if i%3 == 0 {
				q.Servers = []string{"server 1", "server 5", "none"}
			}
			if i%7 == 0 {
				q.Alpha = float64(i % 2)
			}
			candidates, err := q.Check()
			require.NoError(t, err)
			side := q
			side.Limit, side.Words = candidates, ""
			similar, err := s.Search(t.Context(), "scope", side)
			require.NoError(t, err)
			want, err := memory.Search(t.Context(), "scope", side)
			require.NoError(t, err)
			requireMatches(t, want, similar)
			side.Words, side.Vector = q.Words, nil
			byWords, err := s.Search(t.Context(), "scope", side)
			require.NoError(t, err)
			both, err := s.Search(t.Context(), "scope", q)
			require.NoError(t, err)
			requireMatches(t, vector.Fuse(byWords, similar, q.Alpha, q.Limit), both)
		}
	})
}

func requireMatches(t *testing.T, want, got []vector.Match) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].ID, got[i].ID, "place %d", i)
		require.Equal(t, want[i].Server, got[i].Server)
		require.InDelta(t, want[i].Score, got[i].Score, 1e-5)
		require.InDelta(t, want[i].Words, got[i].Words, 1e-5)
		require.InDelta(t, want[i].Similarity, got[i].Similarity, 1e-5)
	}
}

// With an index, searches limited to servers are exact, and others nearly so.
func TestIndex(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.canIndex(t) {
			t.Skip("its type vector is not that of pgvector")
		}
		schema := e.schema(t)
		s := e.open(t, Options{Schema: schema, IndexAbove: 500})
		random := rand.New(rand.NewPCG(2, 2))
		tools := randomTools(random, 2000, 32, "tool")
		for i := range tools {
			if i%200 == 0 {
				tools[i].Server = "rare"
			}
		}
		exact := e.open(t, Options{Schema: schema, IndexAbove: -1})
		require.NoError(t, exact.Upsert(t.Context(), "exact", tools))
		require.NoError(t, s.Upsert(t.Context(), "scope", tools[:500]))
		st, err := s.state(t.Context(), s.table("scope"))
		require.NoError(t, err)
		require.Equal(t, tableState{table: true}, st)
		require.NoError(t, s.Upsert(t.Context(), "scope", tools[500:]))
		st, err = s.state(t.Context(), s.table("scope"))
		require.NoError(t, err)
		require.Equal(t, tableState{table: true, words: true, near: true}, st)

		var plan strings.Builder
		q := vector.Query{Words: "issue", Vector: randomVector(random, 32), Alpha: 0.6, Limit: 10}
		sql, args := s.statement(s.table("scope"), &q, anyOf(q.Words), 50, true)
		rows, err := s.pool.Query(t.Context(), "EXPLAIN "+sql, append([]any{s.mode}, args...)...)
		require.NoError(t, err)
		for rows.Next() {
			var l string
			require.NoError(t, rows.Scan(&l))
			plan.WriteString(l + "\n")
		}
		require.NoError(t, rows.Err())
		assert.Contains(t, plan.String(), "_near")

		found, all := 0, 0
		for i := range 200 {
			q := vector.Query{Vector: randomVector(random, 32), Limit: 50}
			switch i % 4 {
			case 0:
				q.Servers = []string{"rare"}
			case 1:
				q.Servers = []string{"server 3", "rare"}
			case 2:
				q.Limit = 1001 // more than an index gives
			}
			want, err := exact.Search(t.Context(), "exact", q)
			require.NoError(t, err)
			got, err := s.Search(t.Context(), "scope", q)
			require.NoError(t, err)
			if i%4 != 3 {
				require.Equal(t, want, got)
				continue
			}
			require.Len(t, got, len(want))
			for _, m := range want {
				all++
				if slices.ContainsFunc(got, func(g vector.Match) bool { return g.ID == m.ID }) {
					found++
				}
			}
		}
		t.Logf("%d of the %d nearest are found by the index", found, all)
		assert.Greater(t, float64(found), 0.9*float64(all))

		// Changed tools are found as well as unchanged ones: the index has each
		// tool several times.
		for range 2 {
			require.NoError(t, s.Upsert(t.Context(), "scope", randomTools(random, len(tools), 32, "tool")))
		}
		for range 10 {
			got, err := s.Search(t.Context(), "scope", vector.Query{Vector: randomVector(random, 32), Limit: 100})
			require.NoError(t, err)
			require.Len(t, got, 100)
		}

		// After all tools are gone, vectors may have another length: the index
		// is made anew.
		var ids []string
		for _, tool := range tools {
			ids = append(ids, tool.ID)
		}
		require.NoError(t, s.Delete(t.Context(), "scope", ids))
		require.NoError(t, s.Upsert(t.Context(), "scope", randomTools(random, 600, 8, "other")))
		got, err := s.Search(t.Context(), "scope", vector.Query{Vector: randomVector(random, 8), Limit: 5})
		require.NoError(t, err)
		assert.Len(t, got, 5)
	})
}

// Concurrent migrations and creations of a scope all succeed.
func TestConcurrentStarts(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema := e.schema(t)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				s, err := New(t.Context(), e.pool(t), &Options{Schema: schema})
				if !assert.NoError(t, err) {
					return
				}
				random := rand.New(rand.NewPCG(3, uint64(i)))
				for round := range 5 {
					scope := fmt.Sprint("scope ", round)
					assert.NoError(t, s.Upsert(t.Context(), scope, randomTools(random, 20, 8, fmt.Sprint("of ", i))))
					_, err := s.Search(t.Context(), scope, vector.Query{Vector: randomVector(random, 8), Words: "issue", Limit: 3})
					assert.NoError(t, err)
				}
			})
		}
		wg.Wait()
		s := e.open(t, Options{Schema: schema})
		for round := range 5 {
			sums, err := s.Sums(t.Context(), fmt.Sprint("scope ", round))
			require.NoError(t, err)
			assert.Len(t, sums, 8*20)
		}
	})
}

// Scopes can be dropped, made, written, searched and indexed concurrently. The
// only possible error is another length of vectors.
func TestConcurrentDrops(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		opts := Options{Schema: e.schema(t), IndexAbove: 60}
		if !e.canIndex(t) {
			opts.IndexAbove = -1
		}
		var wg sync.WaitGroup
		var done atomic.Int64
		for i := range 6 {
			s := e.open(t, opts)
			wg.Go(func() {
				random := rand.New(rand.NewPCG(4, uint64(i)))
				for round := range 15 {
					err := s.Upsert(t.Context(), "scope", randomTools(random, 70, 8+round%2, "tool"))
					if !errors.Is(err, vector.ErrDimensions) {
						assert.NoError(t, err)
						done.Add(1)
					}
					_, err = s.Search(t.Context(), "scope", vector.Query{Vector: randomVector(random, 8), Limit: 3})
					if !errors.Is(err, vector.ErrDimensions) {
						assert.NoError(t, err)
					}
					assert.NoError(t, s.Delete(t.Context(), "scope", []string{"tool00003", "tool00001", "tool00002"}))
					if (round+i)%3 == 0 {
						assert.NoError(t, s.Drop(t.Context(), "scope"))
					}
				}
			})
		}
		wg.Wait()
		assert.Positive(t, done.Load())
	})
}

// Transactions that block each other are retried; others are not.
func TestAgain(t *testing.T) {
	tries := 0
	fail := func(code string, times int) error {
		tries = 0
		return retryAborted(t.Context(), func(context.Context) error {
			if tries++; tries <= times {
				return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})
			}
			return nil
		})
	}
	assert.NoError(t, fail("40P01", 2))
	assert.Equal(t, 3, tries)
	assert.NoError(t, fail("40001", 1))
	assert.Error(t, fail("23505", 1))
	assert.Equal(t, 1, tries)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := retryAborted(ctx, func(context.Context) error { return &pgconn.PgError{Code: "40P01"} })
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, "40P01", codeOf(err))
}

// A table that an earlier version made gets the columns for readers when it is read or
// written. A program of that version goes on with it.
func TestWiden(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for _, first := range []string{"get", "upsert"} {
			s := e.open(t, Options{Schema: e.schema(t)})
			ctx := t.Context()
			exec := func(sql string) {
				_, err := s.pool.Exec(ctx, fmt.Sprintf(sql, s.table("scope")), s.mode)
				require.NoError(t, err)
			}
			a := vector.Record{ID: "a", Sum: "1", Server: "s", Text: "first", Vector: []float32{0, 1}, Description: "x", Schema: "{}"}
			require.NoError(t, s.Upsert(ctx, "scope", []vector.Record{a}))
			exec("ALTER TABLE %s DROP COLUMN description, DROP COLUMN schema_json")
			want := vector.Record{ID: "a", Sum: "1", Server: "s", Vector: []float32{0, 1}}
			if first == "upsert" {
				require.NoError(t, s.Upsert(ctx, "scope", []vector.Record{a}))
				want.Description, want.Schema = "x", "{}"
			}
			got, err := s.Get(ctx, "scope", []string{"a"})
			require.NoError(t, err)
			assert.Equal(t, []vector.Record{want}, got, first)
			exec("INSERT INTO %s (id, sum, server, words, embedding) VALUES ('b', '2', 's', 'x', NULL)")
			got, err = s.Get(ctx, "scope", []string{"b"})
			require.NoError(t, err)
			assert.Equal(t, []vector.Record{{ID: "b", Sum: "2", Server: "s"}}, got)
		}
	})
}

func TestUpsertTwice(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		s := e.open(t, Options{Schema: e.schema(t)})
		ctx := t.Context()
		require.NoError(t, s.Upsert(ctx, "scope", []vector.Record{{ID: "a", Sum: "1", Text: "first"}, {ID: "a", Sum: "2", Text: "second"}}))
		sums, err := s.Sums(ctx, "scope")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"a": "2"}, sums)

		assert.ErrorContains(t, s.Upsert(ctx, "scope", []vector.Record{{ID: "zero\x00"}}), `scope "scope": tool "zero\x00"`)
		assert.Error(t, s.Upsert(ctx, "scope", []vector.Record{{ID: "b", Server: "\xff"}}))
		require.NoError(t, s.Upsert(ctx, "nul \x00 \xff", []vector.Record{{ID: "b", Text: "nul \x00 createIssue \xff it's"}}))
		for _, q := range []string{"issue", "IT'S create", "\x00issue\xff", `"create" -nul`, strings.Repeat("x y ", 5000) + "issue"} {
			found, err := s.Search(ctx, "nul \x00 \xff", vector.Query{Words: q, Limit: 1, Servers: []string{"", "\xff", "\x00"}})
			require.NoError(t, err)
			assert.Len(t, found, 1, "%.50q", q)
		}
		found, err := s.Search(ctx, "nul \x00 \xfe", vector.Query{Words: "issue", Limit: 1})
		require.NoError(t, err)
		assert.Empty(t, found)
		require.NoError(t, s.Delete(ctx, "nul \x00 \xff", []string{"b", "\x00"}))

		// Only the beginning of a text that is too long counts.
		var text strings.Builder
		for i := range 300_000 {
			fmt.Fprintf(&text, "ünique%d ", i)
		}
		require.NoError(t, s.Upsert(ctx, "text", []vector.Record{{ID: "a", Text: text.String()}}))
		found, err = s.Search(ctx, "text", vector.Query{Words: "ünique7", Limit: 1})
		require.NoError(t, err)
		assert.Len(t, found, 1)

		// Only the direction of a vector counts, however long it is.
		for i, by := range []float32{1e-30, 1, 1e30} {
			id := fmt.Sprint("v", i)
			require.NoError(t, s.Upsert(ctx, "long", []vector.Record{{ID: id, Vector: []float32{by, 2 * by}}}))
		}
		found, err = s.Search(ctx, "long", vector.Query{Vector: []float32{1e-30, 2e-30}, Limit: 5})
		require.NoError(t, err)
		require.Len(t, found, 3)
		for i, m := range found {
			assert.Equal(t, fmt.Sprint("v", i), m.ID)
			assert.InDelta(t, 1, m.Similarity, 1e-6)
		}
	})
}

func TestOptions(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema := e.schema(t)
		german := e.open(t, Options{Schema: schema, Config: "german"})
		require.NoError(t, german.Upsert(t.Context(), "s", []vector.Record{{ID: "a", Text: "die Häuser anzeigen"}}))
		found, err := german.Search(t.Context(), "s", vector.Query{Words: "ein Haus", Limit: 1})
		require.NoError(t, err)
		assert.Len(t, found, 1)
		_, err = New(t.Context(), e.pool(t), &Options{Schema: schema})
		assert.ErrorContains(t, err, "german")
		_, err = New(t.Context(), e.pool(t), &Options{Schema: e.schema(t), Config: "klingon'; DROP TABLE x; --"})
		assert.ErrorContains(t, err, "klingon")
		e.open(t, Options{Schema: schema, Config: "german"}) // again
		_, err = german.pool.Exec(t.Context(), "UPDATE "+german.schema+".version SET version = 99")
		require.NoError(t, err)
		_, err = New(t.Context(), e.pool(t), &Options{Schema: schema, Config: "german"})
		assert.ErrorContains(t, err, "version 99")
	})
}

// Errors name the scope and not the password.
func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		far, line := e.through(t)
		s := far.open(t, Options{Schema: e.schema(t)})
		line.cut()
		_, err := s.Search(t.Context(), "my scope", vector.Query{Words: "x", Limit: 1})
		require.Error(t, err)
		assert.ErrorContains(t, err, `"my scope"`)
		assert.NotContains(t, err.Error(), "hush")
		_, err = New(t.Context(), s.pool, nil)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hush")
	})
}

// There are 1,000 users with 50 tools each, and a system with 1,000 tools. No
// search of a user finds a tool of another user or of the system.
func TestSpecD3UsersAreSeparate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const users, private, shared, dims = 1000, 50, 1000, 16
	each(t, func(t *testing.T, e *engine) {
		s := e.open(t, Options{Schema: e.schema(t)})
		scope := func(u int) string {
			if u == users {
				return "system"
			}
			return fmt.Sprint("user ", u)
		}
		prefix := func(u int) string { return fmt.Sprintf("%s: tool ", scope(u)) }
		begun := time.Now()
		next := make(chan int)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(5, uint64(i)))
				for u := range next {
					n := private
					if u == users {
						n = shared
					}
					assert.NoError(t, s.Upsert(t.Context(), scope(u), randomTools(random, n, dims, prefix(u))))
				}
			})
		}
		for u := range users + 1 {
			next <- u
		}
		close(next)
		wg.Wait()
		t.Logf("%d scopes are made in %v", users+1, time.Since(begun))

		begun = time.Now()
		var left, results, foreign atomic.Int64
		left.Store(int64(*queries))
		for i := range 4 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(6, uint64(i)))
				for left.Add(-1) >= 0 {
					u := random.IntN(users + 1)
					if random.IntN(10) == 0 {
						u = users
					}
					q := vector.Query{Words: randomText(random, 3), Vector: randomVector(random, dims), Alpha: 0.6, Limit: 10}
					switch random.IntN(4) {
					case 0:
						q.Words = ""
					case 1:
						q.Vector = nil
					case 2:
						q.Servers = []string{"server 1", "server 2"}
					}
					found, err := s.Search(t.Context(), scope(u), q)
					if !assert.NoError(t, err) {
						return
					}
					results.Add(int64(len(found)))
					for _, m := range found {
						if !strings.HasPrefix(m.ID, prefix(u)) {
							foreign.Add(1)
							t.Errorf("%s finds %q", scope(u), m.ID)
						}
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d searches in %v: %d results, %d of others", *queries, time.Since(begun), results.Load(), foreign.Load())
		assert.Zero(t, foreign.Load())
		assert.Greater(t, results.Load(), int64(*queries))
	})
}

// A deadlock that others cause with our rows is resolved.
func TestDeadlock(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.native {
			t.Skip("PGlite does one thing at a time")
		}
		s := e.open(t, Options{Schema: e.schema(t)})
		tools := []vector.Record{{ID: "a", Sum: "1"}, {ID: "b", Sum: "1"}}
		require.NoError(t, s.Upsert(t.Context(), "scope", tools))
		other, err := e.pool(t).Begin(t.Context())
		require.NoError(t, err)
		defer other.Rollback(context.Background())
		if _, err := other.Exec(t.Context(), "SET LOCAL deadlock_timeout = '1min'"); err != nil {
			t.Skipf("who is stopped can't be chosen: %v", err)
		}
		lock := func(id string) {
			_, err := other.Exec(t.Context(), "SELECT FROM "+s.table("scope")+" WHERE id = $1 FOR UPDATE", id)
			require.NoError(t, err)
		}
		lock("b")
		done := make(chan error, 1)
		go func() {
			done <- s.Upsert(t.Context(), "scope", []vector.Record{{ID: "a", Sum: "2"}, {ID: "b", Sum: "2"}})
		}()
		require.Eventually(t, func() bool { // it has a and waits for b
			var waiting bool
			err := s.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO ' || $1 || '%')", s.mode, s.table("scope")).Scan(&waiting)
			return assert.NoError(t, err) && waiting
		}, 10*time.Second, 10*time.Millisecond)
		lock("a") // this stops it
		require.NoError(t, other.Commit(t.Context()))
		require.NoError(t, <-done)
		sums, err := s.Sums(t.Context(), "scope")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"a": "2", "b": "2"}, sums)
	})
}
