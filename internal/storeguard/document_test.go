package storeguard

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type broken struct{}

func (broken) Load() ([]byte, error) { panic("no driver") }
func (broken) Save([]byte) error     { panic("no disk") }

type brokenParts struct{ broken }

func (brokenParts) Get(string) ([]byte, error) { panic("no part") }
func (brokenParts) Put(string, []byte) error   { panic("no part") }

func TestDocument(t *testing.T) {
	assert.Nil(t, Document(nil, "x", 0))
	d := Document(broken{}, "Options.Cache", time.Hour)
	_, err := d.Load()
	assert.EqualError(t, err, "Options.Cache: panic: no driver")
	assert.EqualError(t, d.Save(nil), "Options.Cache: panic: no disk")
	assert.EqualError(t, Update(t.Context(), d, nil), "Options.Cache: panic: no driver", "which is not shared")

	_, split := d.(store.Parts)
	assert.False(t, split)
	parts := Document(brokenParts{}, "Options.Cache", 0).(store.Parts)
	_, err = parts.Get("a")
	assert.EqualError(t, err, "Options.Cache: panic: no part")
	assert.EqualError(t, parts.Put("a", nil), "Options.Cache: panic: no part")

	assert.Nil(t, Parts(nil, "x"))
	parts = Parts(brokenParts{}, "Options.StateParts")
	_, err = parts.Get("a")
	assert.EqualError(t, err, "Options.StateParts: panic: no part")
	assert.EqualError(t, parts.Put("a", nil), "Options.StateParts: panic: no part")

	file := store.File(filepath.Join(t.TempDir(), "known.json"))
	assert.NoError(t, Update(t.Context(), Document(file, "x", time.Hour), func([]byte) ([]byte, error) { return []byte("a"), nil }))
	assert.FileExists(t, string(file)+".lock", "which is")
}

// A document is called by its path if it is a file, else by the option that has it.
func TestName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a.json", Name(store.File("a.json")))
	assert.Equal(t, "a.json", Name(Document(store.File("a.json"), "Options.Cache", 0)))
	assert.Equal(t, "Options.Cache", Name(Document(broken{}, "Options.Cache", 0)))
	assert.Equal(t, "Options.Cache", Name(Document(brokenParts{}, "Options.Cache", 0)))
	assert.Equal(t, "the store", Name(broken{}))
}

// A call of a store that hangs is left behind, and what hangs is not called again. When it goes
// on, it changes nothing, and the store can be used again.
func TestStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := &hangs{release: make(chan struct{})}
		s := Document(hanging, "Options.Cache", time.Minute).(*split)
		changes := 0
		update := func() error {
			return Update(t.Context(), s, func([]byte) ([]byte, error) { changes++; return []byte("new"), nil })
		}
		calls := []func() error{
			update,
			func() error { return s.Save([]byte("old")) },
			func() error { _, err := s.Load(); return err },
			func() error { return s.Put("a", nil) },
			func() error { _, err := s.Get("a"); return err },
		}
		for i := range calls {
			begun, before := time.Now(), hanging.calls.Load()
			assert.EqualError(t, calls[i](), "Options.Cache: no answer within 1m0s")
			for _, call := range calls {
				assert.EqualError(t, call(), "Options.Cache: a call before has not returned")
			}
			assert.Equal(t, time.Minute, time.Since(begun))
			assert.EqualValues(t, 1, hanging.calls.Load()-before)
			hanging.release <- struct{}{}
			synctest.Wait()
		}
		assert.Zero(t, changes, "nobody waited any more")
		close(hanging.release)
		for _, call := range calls {
			assert.NoError(t, call())
		}
		assert.Equal(t, 1, changes)
	})
}

// hangs is a store that waits for release.
type hangs struct {
	release chan struct{}
	calls   atomic.Int32
}

func (h *hangs) wait() error {
	h.calls.Add(1)
	<-h.release
	return nil
}

func (h *hangs) Load() ([]byte, error)      { return nil, h.wait() }
func (h *hangs) Save([]byte) error          { return h.wait() }
func (h *hangs) Put(string, []byte) error   { return h.wait() }
func (h *hangs) Get(string) ([]byte, error) { return nil, h.wait() }

// unshared is a document that is not shared.
type unshared struct{ store.Document }

func TestUpdate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, s := range []store.Document{
		store.File(filepath.Join(folder, "shared.json")), unshared{store.File(filepath.Join(folder, "plain.json"))}, new(mcptest.Store),
	} {
		for _, want := range []string{"", "a", "b"} {
			require.NoError(t, Update(t.Context(), s, func(document []byte) ([]byte, error) {
				assert.Equal(t, want, string(document), "%T", s)
				assert.Equal(t, want == "", document == nil, "%T", s)
				return map[string][]byte{"": []byte("a"), "a": []byte("b"), "b": []byte("c")}[want], nil
			}))
		}
		failed := errors.New("it is not to be read")
		assert.ErrorIs(t, Update(t.Context(), s, func([]byte) ([]byte, error) { return []byte("x"), failed }), failed)
		document, err := s.Load()
		require.NoError(t, err)
		assert.Equal(t, "c", string(document), "%T", s)
	}
	assert.FileExists(t, filepath.Join(folder, "shared.json.lock"))
	assert.NoFileExists(t, filepath.Join(folder, "plain.json.lock"))

	broken := &mcptest.Store{Err: errors.New("no disk")}
	assert.EqualError(t, Update(t.Context(), broken, nil), "no disk", "what can't be read is not changed")
}
