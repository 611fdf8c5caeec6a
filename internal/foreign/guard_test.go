package foreign

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/document"
	"github.com/stretchr/testify/assert"
)

type broken struct{}

func (broken) Load() ([]byte, error)                     { panic("no driver") }
func (broken) Save([]byte) error                         { panic("no disk") }
func (broken) Enabled(context.Context, slog.Level) bool  { return true }
func (broken) Handle(context.Context, slog.Record) error { panic("no terminal") }
func (broken) WithAttrs([]slog.Attr) slog.Handler        { panic("no attributes") }
func (broken) WithGroup(string) slog.Handler             { return nil }

type brokenParts struct{ broken }

func (brokenParts) Get(string) ([]byte, error) { panic("no part") }
func (brokenParts) Put(string, []byte) error   { panic("no part") }

func TestGuarded(t *testing.T) {
	assert.Nil(t, Guarded(nil, "x", 0))
	d := Guarded(broken{}, "Options.Cache", time.Hour)
	_, err := d.Load()
	assert.EqualError(t, err, "Options.Cache: panic: no driver")
	assert.EqualError(t, d.Save(nil), "Options.Cache: panic: no disk")
	assert.EqualError(t, document.Update(t.Context(), d, nil), "Options.Cache: panic: no driver", "which is not shared")

	_, split := d.(document.Parts)
	assert.False(t, split)
	parts := Guarded(brokenParts{}, "Options.Cache", 0).(document.Parts)
	_, err = parts.Get("a")
	assert.EqualError(t, err, "Options.Cache: panic: no part")
	assert.EqualError(t, parts.Put("a", nil), "Options.Cache: panic: no part")

	file := document.File(filepath.Join(t.TempDir(), "known.json"))
	assert.NoError(t, document.Update(t.Context(), Guarded(file, "x", time.Hour), func([]byte) ([]byte, error) { return []byte("a"), nil }))
	assert.FileExists(t, string(file)+".lock", "which is")
}

// A call of a store that hangs is left behind, and what hangs is not called again. When it goes
// on, it changes nothing, and the store can be used again.
func TestStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := &hangs{release: make(chan struct{})}
		s := Guarded(hanging, "Options.Cache", time.Minute).(*split)
		changes := 0
		update := func() error {
			return document.Update(t.Context(), s, func([]byte) ([]byte, error) { changes++; return []byte("new"), nil })
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

func TestLogger(t *testing.T) {
	log := Logger(slog.New(broken{}))
	log.With("a", 1).WithGroup("b").Error("nobody hears it")
	assert.Same(t, log, Logger(log), "once is enough")
	discard := slog.New(slog.DiscardHandler)
	assert.Same(t, discard, Logger(discard))

	var b bytes.Buffer
	Logger(slog.New(slog.NewTextHandler(&b, nil))).With("a", 1).WithGroup("g").Info("hello", "b", 2)
	assert.Contains(t, b.String(), "msg=hello a=1 g.b=2")
}

// A counter that panics at each of a thousand texts fills no log.
func TestCounter(t *testing.T) {
	var b bytes.Buffer
	c := &Counter{What: "Options.Tokens", Log: slog.New(slog.NewTextHandler(&b, nil)), Estimate: func(text string) int { return len(text) / 4 },
		Of: func(text string) int {
			if text == "fine" {
				return 7
			}
			if text == "less" {
				return -1
			}
			panic(errors.New("no vocabulary"))
		}}
	for range 1000 {
		assert.Equal(t, 2, c.Count("12345678"))
	}
	assert.Equal(t, 7, c.Count("fine"))
	assert.Zero(t, c.Count("less"))
	assert.Equal(t, 1, strings.Count(b.String(), "Options.Tokens: panic: no vocabulary"))
}
