package pgstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/mcphybrid/mcphybrid/storetest/replicas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func share(t *testing.T, pool *pgxpool.Pool, opts SharedOptions) *Shared {
	t.Helper()
	s, err := Share(t.Context(), pool, &opts)
	require.NoError(t, err)
	return s
}

// many returns a pool for all replicas of a test: with many connections, if the engine
// has them.
func (e *engine) many(t *testing.T) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(e.connection)
	require.NoError(t, err)
	if e.native {
		config.MaxConns = 30
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// cutOff returns what is shared in a database that can't be reached any more.
func (e *engine) cutOff(t *testing.T, schema string) *Shared {
	far, line := e.through(t)
	s := share(t, far.pool(t), SharedOptions{Schema: schema, Timeout: time.Second})
	line.cut()
	return s
}

// poll is short where an engine has one backend, which tells whoever asked last.
func (e *engine) poll() time.Duration {
	if e.native {
		return time.Minute
	}
	return 50 * time.Millisecond
}

func TestSessions(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema, pool := e.schema(t), e.many(t)
		storetest.RunSessions(t, storetest.SessionsSubject{
			Open: func(t *testing.T) store.Sessions { return share(t, pool, SharedOptions{Schema: schema}).Sessions() },
			Expiring: func(t *testing.T, after time.Duration) store.Sessions {
				return share(t, pool, SharedOptions{Schema: e.schema(t), Expiry: after}).Sessions()
			},
			Broken: func(t *testing.T) store.Sessions { return e.cutOff(t, schema).Sessions() },
			Stored: func(t *testing.T, id string) (n int) {
				s := share(t, pool, SharedOptions{Schema: schema})
				require.NoError(t, pool.QueryRow(t.Context(), "SELECT length(state) FROM "+s.schema+".shared_sessions WHERE id = $1::text", s.mode, id).Scan(&n))
				return n
			},
		})
	})
}

// What a state begins with can be lost: then it is an error that says so, and not as if there were no state. It comes
// back when somebody puts it.
func TestLostOpening(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		opts, pool := SharedOptions{Schema: e.schema(t)}, e.pool(t)
		s := share(t, pool, opts)
		began := `{"tools":[` + strings.Repeat(`"x",`, 1000) + `"x"]}`
		state := []byte(`{"version":5,"opening":"` + store.KeyOf([]byte(began)) + `","began":` + began + `}`)
		revision, err := s.Sessions().Put(t.Context(), "x", state, 0)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), "DELETE FROM "+s.schema+".shared_parts", s.mode)
		require.NoError(t, err)
		other := share(t, pool, opts)
		_, _, err = other.Sessions().Get(t.Context(), "x")
		require.ErrorContains(t, err, "what the conversation began with, its first tools and sections, is lost")
		require.NotErrorIs(t, err, store.ErrNotFound)
		_, err = other.Sessions().Put(t.Context(), "x", state, revision)
		require.NoError(t, err)
		got, _, err := share(t, pool, opts).Sessions().Get(t.Context(), "x")
		require.NoError(t, err)
		assert.Equal(t, string(state), string(got))
	})
}

// An opening is kept longer by more than the hour in which it is not put again than the sessions that have it.
func TestOpeningsOutliveSessions(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		pool := e.pool(t)
		s := share(t, pool, SharedOptions{Schema: e.schema(t), Expiry: time.Minute})
		p := &parts{of: s}
		key := store.KeyOf([]byte("opening"))
		require.NoError(t, p.PutOpening(t.Context(), key, []byte("opening")))
		for _, old := range []struct {
			age   string
			there bool
		}{{"62 minutes", true}, {"122 minutes", false}} {
			_, err := pool.Exec(t.Context(), "UPDATE "+s.schema+".shared_parts SET put = now() - interval '"+old.age+"'", s.mode)
			require.NoError(t, err)
			require.NoError(t, p.sweep(t.Context()))
			got, err := p.GetOpening(t.Context(), key)
			require.NoError(t, err)
			assert.Equal(t, old.there, got != nil, old.age)
		}
	})
}

// Sessions and documents can be put where transactions are isolated strictly, and then abort each other.
func TestSharedIsolation(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.native {
			t.Skip("it has one connection")
		}
		for _, level := range []string{"serializable", "repeatable%20read"} {
			strict := &engine{connection: e.connection + "&pool_max_conns=8&default_transaction_isolation=" + level, native: true}
			pool, opts := strict.pool(t), SharedOptions{Schema: e.schema(t)}
			var all sync.WaitGroup
			for i := range 6 {
				s := share(t, pool, opts)
				all.Go(func() {
					d := s.Document("x")
					for turn := range 10 {
						_, revision, err := s.Sessions().Get(t.Context(), "x")
						if err != nil && !assert.ErrorIs(t, err, store.ErrNotFound) {
							return
						}
						if _, err = s.Sessions().Put(t.Context(), "x", fmt.Appendf(nil, "%d %d", i, turn), revision); err != nil {
							assert.ErrorIs(t, err, store.ErrConflict)
						}
						assert.NoError(t, d.Save(fmt.Append(nil, i, turn)))
						assert.NoError(t, d.Update(t.Context(), func(old []byte) ([]byte, error) { return fmt.Appendf(nil, "%d %d", i, turn), nil }))
					}
				})
			}
			all.Wait()
		}
	})
}

func TestLeases(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema, pool := e.schema(t), e.many(t)
		opts := SharedOptions{Schema: schema, Timeout: time.Second, LeaseTime: time.Second}
		older := share(t, pool, opts) // had no leases
		_, err := pool.Exec(t.Context(), "DROP TABLE "+older.schema+".shared_leases", older.mode)
		require.NoError(t, err)
		storetest.RunLeases(t, storetest.LeasesSubject{
			Open: func(t *testing.T) store.Leases { return share(t, pool, opts).Leases() },
			Cut: func(t *testing.T) (store.Leases, func()) {
				far, line := e.through(t)
				return share(t, far.pool(t), opts).Leases(), line.cut
			},
		})
	})
}

func TestDocuments(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema, pool := e.schema(t), e.many(t)
		storetest.RunDocuments(t,
			func(t *testing.T, name string) store.Watched {
				return share(t, pool, SharedOptions{Schema: schema, Poll: e.poll(), Timeout: time.Minute}).Document(name)
			},
			func(t *testing.T, name string) store.Watched { return e.cutOff(t, schema).Document(name) })
	})
}

func TestParts(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema, pool := e.schema(t), e.many(t)
		storetest.RunParts(t, func(t *testing.T) store.Parts { return share(t, pool, SharedOptions{Schema: schema}).Parts() })
	})
}

// Four replicas watch four documents each, so this takes an engine with many connections.
func TestReplicas(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.native {
			t.Skip("it has one connection")
		}
		schemas := map[string]string{"Changes": e.schema(t), "AtOnce": e.schema(t), "LongResults": e.schema(t)}
		replicas.Run(t, func(t *testing.T, test string) replicas.Store {
			return share(t, e.many(t), SharedOptions{Schema: schemas[test]})
		})
	})
}

// All that watch share one connection, and the pool keeps its own.
func TestWatchesShareAConnection(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.native {
			t.Skip("it does not tell connections apart")
		}
		watching := &engine{connection: e.connection + "&pool_max_conns=4&application_name=sharing", native: true}
		pool := watching.pool(t)
		s := share(t, pool, SharedOptions{Schema: e.schema(t), Poll: time.Minute})
		count := func() (n int) {
			require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sharing' AND query LIKE 'LISTEN%'").Scan(&n))
			return n
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		changed := make(chan string, 100)
		const documents = 8
		for i := range documents {
			name := fmt.Sprint(i)
			all.Go(func() { assert.ErrorIs(t, s.Document(name).Watch(ctx, func() { changed <- name }), context.Canceled) })
			assert.Equal(t, name, <-changed)
		}
		require.Eventually(t, func() bool { return count() == 1 }, 20*time.Second, time.Millisecond)
		require.NoError(t, s.Document("3").Save([]byte("x")))
		assert.Equal(t, "3", <-changed, "and no other")
		require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 20*time.Second, time.Millisecond, "once all have looked")
		assert.Empty(t, changed)
		cancel()
		all.Wait()
		require.Eventually(t, func() bool { return count() == 0 }, 20*time.Second, time.Millisecond)
	})
}

// A watcher whose connection is lost gets another one, and learns of what it missed.
func TestWatchConnectsAgain(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if !e.native {
			t.Skip("its backends can't be ended one by one")
		}
		schema, pool := e.schema(t), e.many(t)
		watching := &engine{connection: e.connection + "&application_name=watching", native: true}
		d := share(t, watching.pool(t), SharedOptions{Schema: schema, Poll: time.Minute}).Document("x")
		ctx, cancel := context.WithCancel(t.Context())
		changed, ended := make(chan struct{}, 100), make(chan error, 1)
		go func() { ended <- d.Watch(ctx, func() { changed <- struct{}{} }) }()
		<-changed
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'watching'").Scan(&n))
		require.Positive(t, n)
		require.NoError(t, share(t, pool, SharedOptions{Schema: schema}).Document("x").Save([]byte("x")))
		begun := time.Now()
		<-changed
		assert.Less(t, time.Since(begun), 10*time.Second, "it does not wait until it polls")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// What has expired is removed.
func TestSweep(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema, pool := e.schema(t), e.many(t)
		kept := share(t, pool, SharedOptions{Schema: schema, Expiry: -1}).Sessions()
		expiring := share(t, pool, SharedOptions{Schema: schema, Expiry: time.Hour})
		for i := range 3 {
			_, err := kept.Put(t.Context(), fmt.Sprint(i), []byte("x"), 0)
			require.NoError(t, err)
		}
		_, err := pool.Exec(t.Context(), "UPDATE "+expiring.schema+".shared_sessions SET put = put - interval '2 hours' WHERE id <> '1'", expiring.mode)
		require.NoError(t, err)
		list := func() (n int) {
			for _, err := range kept.List(t.Context()) {
				require.NoError(t, err)
				n++
			}
			return n
		}
		require.Equal(t, 3, list())
		require.NoError(t, sessions{expiring}.sweep(t.Context()))
		assert.Equal(t, 1, list())
	})
}

func TestSharedOptions(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "host=127.0.0.1 port=1")
	require.NoError(t, err)
	defer pool.Close()
	for _, opts := range []SharedOptions{{Timeout: -1}, {Poll: -1}} {
		_, err := Share(t.Context(), pool, &opts)
		assert.ErrorContains(t, err, "pgstore: SharedOptions.Timeout is")
	}
	_, err = Share(t.Context(), pool, nil)
	assert.ErrorContains(t, err, `pgstore: schema "mcphybrid": `)
}

// Others may have written to the tables, too.
func TestWhatOthersWrote(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		schema, pool := e.schema(t), e.many(t)
		s := share(t, pool, SharedOptions{Schema: schema})
		_, err := pool.Exec(t.Context(), "INSERT INTO "+s.schema+".shared_documents VALUES ('below 0', -1, 'x')")
		require.NoError(t, err)
		d := s.Document("below 0")
		require.NoError(t, d.Update(t.Context(), func(old []byte) ([]byte, error) { return append(old, 'y'), nil }))
		data, err := d.Load()
		require.NoError(t, err)
		assert.Equal(t, "xy", string(data))

		// An opening that was damaged is whole again when a state that has it is put.
		state := []byte(`{"version":5,"opening":"x","began":{"a":"` + strings.Repeat("b", 2000) + `"}}`)
		_, err = s.Sessions().Put(t.Context(), "a", state, 0)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), "UPDATE "+s.schema+".shared_parts SET data = 'damaged'")
		require.NoError(t, err)
		other := func() store.Sessions { return share(t, pool, SharedOptions{Schema: schema}).Sessions() }
		_, _, err = other().Get(t.Context(), "a")
		require.ErrorContains(t, err, "it is not what was stored")
		_, err = other().Put(t.Context(), "b", state, 0)
		require.NoError(t, err)
		for _, id := range []string{"a", "b"} {
			got, _, err := other().Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, state, got)
		}
	})
}

// What is too large is not read.
func TestColumnsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for value, want := range map[string]any{"'abc'": []byte("abc"), "'abcd'": nil, "NULL": nil} {
			var data []byte
			var n int
			require.NoError(t, e.many(t).QueryRow(t.Context(), "SELECT "+atMost("v", 3)+" FROM (VALUES ("+value+"::bytea)) AS t (v)").Scan(&data, &n))
			if want == nil {
				assert.Nil(t, data)
			} else {
				assert.Equal(t, want, data)
			}
			assert.Equal(t, value == "'abcd'", tooLarge(n, 3) != nil, value)
		}
	})
}
