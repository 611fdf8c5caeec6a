package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flaky is an engine whose calls take a second and return err.
type flaky struct {
	err  error
	held context.Context
}

func (f *flaky) wait() error { time.Sleep(time.Second); return f.err }

func (f *flaky) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, f.wait() }
func (f *flaky) Put(context.Context, string, []byte, uint64) (uint64, error) {
	return 7, f.wait()
}
func (f *flaky) Delete(context.Context, string, uint64) error { return f.wait() }
func (f *flaky) List(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}
func (f *flaky) Lease(context.Context, string) (context.Context, func(), error) {
	return f.held, func() {}, f.wait()
}
func (f *flaky) Load() ([]byte, error) { return nil, f.wait() }
func (f *flaky) Save([]byte) error     { return f.wait() }

// Each call of a store is counted. An outage, its end, and each conflict is one event.
func TestStoreFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		held, lose := context.WithCancelCause(context.Background())
		engine := &flaky{held: held}
		m := NewManager(&Options{Cache: engine, OnEvent: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == EventStore {
				told = append(told, fmt.Sprint(e.Store, ": ", e.Err, " ", e.Took))
			}
		}})
		defer m.Close()
		sessions, leases := m.ObserveSessions(engine), m.ObserveLeases(engine)
		ctx := t.Context()
		away := fmt.Errorf("engine: %w", store.ErrUnavailable)
		for _, err := range []error{nil, away, away, store.ErrNotFound, store.ErrConflict, errors.New("denied"), context.Canceled} {
			engine.err = err
			_, _, got := sessions.Get(ctx, "x")
			assert.Equal(t, err, got)
		}
		engine.err = nil
		revision, err := sessions.Put(ctx, "x", nil, 0)
		require.NoError(t, err)
		assert.Equal(t, uint64(7), revision)
		require.NoError(t, sessions.Delete(ctx, "x", 0))
		for range sessions.List(ctx) {
		}
		_, _, err = leases.Lease(ctx, "x")
		require.NoError(t, err)
		lose(store.ErrLeaseLost)
		synctest.Wait()
		engine.err = away
		require.NoError(t, m.Start(ctx)) // reads the cache
		engine.err = nil

		snap, err := m.Snapshot(0)
		require.NoError(t, err)
		stores := map[string]snapshot.Store{}
		for _, s := range snap.Stores() {
			stores[s.Name] = s
		}
		assert.Len(t, stores, 3)
		s := stores["Sessions"]
		assert.Equal(t, []int{9, 1, 2, 1}, []int{s.Calls, s.Conflicts, s.Unavailable, s.Failures})
		assert.Equal(t, []time.Duration{9 * time.Second, time.Second}, []time.Duration{s.Latency, s.Longest})
		assert.True(t, s.Away.IsZero())
		assert.Equal(t, []int{1, 1}, []int{stores["Leases"].Calls, stores["Leases"].Conflicts})
		assert.False(t, stores["Cache"].Away.IsZero())
		assert.Contains(t, stores["Cache"].Err.String(), "the store can't be reached")
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []string{
			"Sessions: engine: the store can't be reached 0s", "Sessions: <nil> 2s", "Sessions: another process has put or deleted the session meanwhile 0s",
			"Leases: the lease is lost 0s", "Cache: engine: the store can't be reached 0s",
		}, told)
	})
}
