package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RunDocuments runs all tests of documents, each with a name of its own. open opens one
// with its current content, as another process does. broken opens one whose engine can't
// be reached.
func RunDocuments(t *testing.T, open, broken func(t *testing.T, name string) store.Watched) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T) store.Watched)
	}{
		{"Save", saveDocument}, {"Update", updateDocument}, {"UpdatesAtOnce", updatesAtOnce}, {"Whole", whole}, {"Parts", documentParts}, {"Watch", watch},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := fmt.Sprintf("%s/%d", test.name, rand.Uint64())
			test.run(t, func(t *testing.T) store.Watched { return open(t, name) })
		})
	}
	t.Run("Apart", func(t *testing.T) { apart(t, open) })
	t.Run("Broken", func(t *testing.T) {
		d := broken(t, "x")
		_, err := d.Load()
		assert.Error(t, err)
		assert.Error(t, d.Save([]byte("x")))
		assert.Error(t, d.Put(partKey("x"), []byte("x")))
		_, err = d.Get(partKey("x"))
		assert.Error(t, err)
		assert.Error(t, d.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("x"), nil }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, d.Watch(ctx, func() { t.Error("nothing has changed") }), context.DeadlineExceeded)
	})
}

// holds asserts what another process loads. want may be nil.
func holds(t *testing.T, d store.Watched, want []byte) {
	t.Helper()
	data, err := d.Load()
	require.NoError(t, err)
	require.Equal(t, want == nil, data == nil)
	require.True(t, bytes.Equal(want, data), "%.100q, want %.100q", data, want)
}

// someBytes returns bytes that can't be compressed.
func someBytes(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data) // it never fails
	return data
}

func saveDocument(t *testing.T, open func(t *testing.T) store.Watched) {
	d := open(t)
	holds(t, d, nil)
	for _, data := range [][]byte{
		[]byte("one"), {}, []byte("a longer one"), someBytes(3 << 20), []byte("\x1f\x8b"), someBytes(256 << 10), bytes.Repeat([]byte("tool "), 2<<20), []byte("short"),
	} {
		require.NoError(t, d.Save(data))
		holds(t, open(t), data)
	}
	require.NoError(t, d.Save(nil))
	holds(t, open(t), []byte{})
}

func updateDocument(t *testing.T, open func(t *testing.T) store.Watched) {
	d := open(t)
	update := func(want, next []byte) error {
		return d.Update(t.Context(), func(data []byte) ([]byte, error) {
			assert.Equal(t, want == nil, data == nil)
			assert.Equal(t, string(want), string(data))
			return next, nil
		})
	}
	require.NoError(t, update(nil, nil))
	holds(t, open(t), nil)
	require.NoError(t, update(nil, []byte("one")))
	require.NoError(t, update([]byte("one"), []byte("two")))
	require.NoError(t, update([]byte("two"), []byte("two")))
	holds(t, open(t), []byte("two"))
	oops := errors.New("oops")
	assert.ErrorIs(t, d.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("three"), oops }), oops)
	holds(t, open(t), []byte("two"))
	require.NoError(t, update([]byte("two"), nil))
	holds(t, open(t), nil)
	require.NoError(t, update(nil, []byte{}))
	holds(t, open(t), []byte{})
	require.NoError(t, d.Save([]byte("four")))
	holds(t, open(t), []byte("four"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, d.Update(ctx, func([]byte) ([]byte, error) { return []byte("five"), nil }), context.Canceled)
	holds(t, open(t), []byte("four"))
}

// Each of several processes adds something at once, and all of it is there.
func updatesAtOnce(t *testing.T, open func(t *testing.T) store.Watched) {
	const n, times = 4, 20
	var calls atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		d := open(t)
		wg.Go(func() {
			for j := range times {
				assert.NoError(t, d.Update(t.Context(), func(data []byte) ([]byte, error) {
					calls.Add(1)
					return fmt.Appendf(bytes.Clone(data), "%d.%d,", i, j), nil
				}))
			}
		})
	}
	wg.Wait()
	data, err := open(t).Load()
	require.NoError(t, err)
	assert.Len(t, strings.Split(string(data), ","), n*times+1)
	for i := range n {
		for j := range times {
			assert.Equal(t, 1, strings.Count(","+string(data), fmt.Sprintf(",%d.%d,", i, j)))
		}
	}
	t.Logf("%d updates took %d calls", n*times, calls.Load())
}

// Who reads while others write sees one version or another, never parts of two.
func whole(t *testing.T, open func(t *testing.T) store.Watched) {
	version := func(n byte) []byte { return bytes.Repeat(append(someBytes(9000+int(n)), n), 70) }
	require.NoError(t, open(t).Save(version(0)))
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 2 {
		d := open(t)
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				data, err := d.Load()
				if !assert.NoError(t, err) || !assert.NotEmpty(t, data) || !assert.True(t, bytes.Equal(version(data[len(data)-1]), data), "parts of several versions") {
					return
				}
			}
		})
	}
	for i := range 2 {
		d := open(t)
		writers.Go(func() {
			for n := range 15 {
				assert.NoError(t, d.Save(version(byte(2*n+i))))
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// partKey returns the key of a part.
func partKey(part string) string { return store.KeyOf([]byte(part)) }

// documentParts asserts that each document has parts of its own, that are no documents.
func documentParts(t *testing.T, open func(t *testing.T) store.Watched) {
	RunParts(t, func(t *testing.T) store.Parts { return open(t) })
	holds(t, open(t), nil)
}

// RunParts runs all tests of parts. open opens it with its current content,
// as another process does.
func RunParts(t *testing.T, open func(t *testing.T) store.Parts) {
	p := open(t)
	get := func(part string) []byte {
		t.Helper()
		data, err := open(t).Get(partKey(part))
		require.NoError(t, err)
		return data
	}
	list := []string{"", "x", "\x1f\x8b", strings.Repeat("tool ", 2<<20), string(someBytes(256 << 10)), string(someBytes(3 << 20))}
	for _, part := range list {
		require.Nil(t, get(part))
		require.NoError(t, p.Put(partKey(part), nil), "there is none already")
		require.NoError(t, p.Put(partKey(part), []byte(part)))
	}
	require.NoError(t, p.Put(partKey("x"), []byte("damaged")))
	require.Equal(t, "damaged", string(get("x")))
	for _, part := range list {
		require.NoError(t, open(t).Put(partKey(part), []byte(part)), "once more")
		data := get(part)
		require.NotNil(t, data)
		require.True(t, part == string(data), "%d bytes, want %d", len(data), len(part))
	}
	for i, part := range list {
		require.NoError(t, p.Put(partKey(part), nil))
		require.Nil(t, get(part))
		if i+1 < len(list) {
			require.NotNil(t, get(list[i+1]), "another one")
		}
	}
	for _, key := range []string{"", "*", "a.b", strings.Repeat(">", 43), strings.Repeat("x", 44)} {
		assert.Error(t, p.Put(key, []byte("x")))
		_, err := p.Get(key)
		assert.Error(t, err)
	}
}

// watching watches d until the test ends. The channel has one value after changes.
func watching(t *testing.T, d store.Watched) (changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	c, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- d.Watch(ctx, func() {
			select {
			case c <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
	return c
}

// within asserts that changed gets a value within a second, and returns after how long.
func within(t *testing.T, changed <-chan struct{}, what ...any) time.Duration {
	t.Helper()
	begun := time.Now()
	select {
	case <-changed:
	case <-time.After(time.Second):
		require.Fail(t, "no change was announced within a second", what...)
	}
	return time.Since(begun)
}

func watch(t *testing.T, open func(t *testing.T) store.Watched) {
	d := open(t)
	var watchers []<-chan struct{}
	for i := range 3 {
		watchers = append(watchers, watching(t, open(t)))
		within(t, watchers[i], "at the beginning")
	}
	var longest time.Duration
	for i := range 10 {
		data := fmt.Appendf(nil, "version %d", i)
		if i%2 == 0 {
			require.NoError(t, d.Save(data))
		} else {
			require.NoError(t, open(t).Update(t.Context(), func([]byte) ([]byte, error) { return data, nil }))
		}
		for _, changed := range watchers {
			longest = max(longest, within(t, changed, i))
		}
		holds(t, d, data)
	}
	t.Logf("at most %v from a save to the last watcher", longest)
}

// Documents of different names know nothing of each other.
func apart(t *testing.T, open func(t *testing.T, name string) store.Watched) {
	names := []string{"a", "a.b", "a.>", "*", "A", "a/b", "日本語", strings.Repeat("x", store.MaxID)}
	other := watching(t, open(t, "other"))
	within(t, other)
	for _, name := range names {
		require.NoError(t, open(t, name).Save([]byte(name)))
	}
	for _, name := range names {
		holds(t, open(t, name), []byte(name))
	}
	silent := func() {
		select {
		case <-other:
			assert.Fail(t, "another document has changed")
		default:
		}
	}
	silent()
	require.NoError(t, open(t, "other").Save([]byte("x")))
	within(t, other)
	silent()
	for _, name := range []string{"", "\xff", strings.Repeat("x", store.MaxID+1)} {
		d := open(t, name)
		_, err := d.Load()
		assert.Error(t, err)
		assert.Error(t, d.Save(nil))
		assert.Error(t, d.Update(t.Context(), func([]byte) ([]byte, error) { return nil, nil }))
		assert.Error(t, d.Watch(t.Context(), func() {}))
	}
}
