package storeguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A storeFunc is a store of a host.
type storeFunc func(ctx context.Context, change func([]byte) ([]byte, error)) error

func (f storeFunc) Update(ctx context.Context, _ string, change func([]byte) ([]byte, error)) error {
	return f(ctx, change)
}

// What a store does wrong is an error, and never a second change or one that is late.
func TestTokens(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, Tokens((*login.Memory)(nil), "it").Update(t.Context(), "k", nil), "it: panic: runtime error: invalid memory address or nil pointer dereference")
	assert.Error(t, Tokens(store.FileTokens("\x00"), "it").Update(t.Context(), "k", nil))
	for name, test := range map[string]struct {
		host  storeFunc
		calls int
		want  string
	}{
		"right":  {func(_ context.Context, change func([]byte) ([]byte, error)) error { _, err := change(nil); return err }, 1, ""},
		"fails":  {func(context.Context, func([]byte) ([]byte, error)) error { return errors.New("no disk") }, 0, "no disk"},
		"forgot": {func(context.Context, func([]byte) ([]byte, error)) error { return nil }, 0, "it returned without a call of change"},
		"panics": {func(_ context.Context, change func([]byte) ([]byte, error)) error { _, _ = change(nil); panic("oops") }, 1, "it: panic: oops"},
		"exits":  {func(context.Context, func([]byte) ([]byte, error)) error { runtime.Goexit(); return nil }, 0, "it: it ended its goroutine"},
		"tries again": {func(_ context.Context, change func([]byte) ([]byte, error)) error {
			_, _ = change(nil)
			_, err := change(nil)
			return err
		}, 1, errCalledLate.Error()},
	} {
		calls := 0
		err := Tokens(test.host, "it").Update(t.Context(), "k", func([]byte) ([]byte, error) { calls++; return nil, nil })
		assert.Equal(t, test.calls, calls, name)
		if test.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, test.want, name)
		}
	}
	swallows := storeFunc(func(_ context.Context, change func([]byte) ([]byte, error)) error { _, _ = change(nil); return nil })
	err := Tokens(swallows, "it").Update(t.Context(), "k", func([]byte) ([]byte, error) { return nil, errors.New("no change") })
	assert.EqualError(t, err, "no change")
	panics := func([]byte) ([]byte, error) { panic("oops") }
	assert.Error(t, Tokens(new(login.Memory), "it").Update(t.Context(), "k", panics))
}

// A store that ignores its context is not waited for. It can't change anything later,
// and until it returns, its key is left alone.
func TestTokensGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs, late := make(chan struct{}), make(chan error)
		calls := 0
		change := func([]byte) ([]byte, error) { calls++; return nil, nil }
		g := Tokens(storeFunc(func(_ context.Context, change func([]byte) ([]byte, error)) error {
			<-hangs
			_, err := change(nil)
			late <- err
			return err
		}), "it")
		begun := time.Now()
		for i, want := range []string{"it: context deadline exceeded", "waiting for it: context deadline exceeded"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := g.Update(ctx, "k", change)
			cancel()
			assert.EqualError(t, err, want)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, time.Duration(i+1)*time.Second, time.Since(begun))
		}
		close(hangs)
		assert.Equal(t, errCalledLate, <-late)
		go func() { assert.NoError(t, <-late) }()
		assert.NoError(t, g.Update(t.Context(), "k", change))
		synctest.Wait()
		assert.Equal(t, 1, calls)
	})
}

// What a change has got may be had only once, so a store may still save it when the
// context ends, for a time.
func TestTokensAreSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := time.Duration(0)
		g := Tokens(storeFunc(func(ctx context.Context, change func([]byte) ([]byte, error)) error {
			if _, err := change(nil); err != nil {
				return err
			}
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return fmt.Errorf("saving: %w", ctx.Err())
			}
		}), "it")
		for _, test := range []struct {
			saves  time.Duration
			change error
			lasts  time.Duration
			want   string
		}{
			{time.Second + saveGrace/2, nil, time.Second + saveGrace/2, ""},
			{time.Hour, nil, time.Second + saveGrace, "it: context deadline exceeded"},
			{time.Hour, errors.New("no change"), 0, "no change"},
		} {
			takes = test.saves
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun := time.Now()
			err := g.Update(ctx, "k", func([]byte) ([]byte, error) { return nil, test.change })
			assert.Equal(t, test.lasts, time.Since(begun))
			cancel()
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, test.want)
			}
			synctest.Wait()
		}

		// A change that runs is waited for: it heeds the context itself.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := g.Update(ctx, "k", func([]byte) ([]byte, error) { <-ctx.Done(); return nil, errors.New("given up") })
		assert.EqualError(t, err, "given up")
	})
}

// Many users of a store that hangs now and then: each change runs once at most, and
// those that were reported are in the document.
func TestTokensRace(t *testing.T) {
	t.Parallel()
	memory, hang := new(login.Memory), make(chan struct{})
	var mu sync.Mutex
	updates := 0
	g := Tokens(storeFunc(func(_ context.Context, change func([]byte) ([]byte, error)) error {
		mu.Lock()
		updates++
		n := updates
		mu.Unlock()
		if n%7 == 0 {
			<-hang
		}
		return memory.Update(context.Background(), "k", change)
	}), "it")
	reported, called := 0, make(map[int]int)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%5)*time.Millisecond)
			defer cancel()
			err := g.Update(ctx, fmt.Sprint(i%20), func(document []byte) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				called[i]++
				return append(bytes.Clone(document), 'x'), nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				reported++
			}
		})
	}
	wg.Wait()
	close(hang)
	mu.Lock()
	defer mu.Unlock()
	require.Positive(t, reported)
	for i, n := range called {
		assert.Equal(t, 1, n, i)
	}
	assert.NoError(t, memory.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
		assert.GreaterOrEqual(t, len(document), reported)
		assert.Len(t, document, len(called))
		return document, nil
	}))
}
