package foreign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/document"
)

// Guarded returns s with its panics turned into errors that begin with what. It has parts
// if s has, and is shared if s is. It returns nil for nil.
//
// If wait is not 0, a call that takes longer fails and is left behind. Until it has returned,
// all others fail at once: what hangs is called no more, and nothing old is saved over what is
// newer.
func Guarded(s document.Store, what string, wait time.Duration) document.Store {
	if s == nil {
		return nil
	}
	guarded := &store{of: s, what: what, wait: wait}
	if parts, ok := s.(document.Parts); ok {
		return &split{guarded, parts}
	}
	return guarded
}

type store struct {
	of   document.Store
	what string
	wait time.Duration
	left atomic.Int32 // calls that were left behind and have not returned
}

// A visit is a call of a method of a store.
type visit struct {
	mu       sync.Mutex
	left     bool // behind
	returned bool
}

// call calls f within s.wait.
func (s *store) call(f func(v *visit) error) error {
	v := new(visit)
	if s.wait == 0 {
		return Try(s.what, func() error { return f(v) })
	}
	if s.left.Load() > 0 {
		return fmt.Errorf("%s: a call before has not returned", s.what)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	ended, err := detach(ctx, s.what, func() error {
		defer func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.returned = true; v.left {
				s.left.Add(-1)
			}
		}()
		return f(v)
	})
	if ended {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left = true; !v.returned {
		s.left.Add(1)
	}
	return fmt.Errorf("%s: no answer within %v", s.what, s.wait)
}

// get is call of a method that returns data.
func (s *store) get(f func() ([]byte, error)) ([]byte, error) {
	got := new([]byte)
	err := s.call(func(*visit) (err error) {
		*got, err = f()
		return err
	})
	if err != nil {
		return nil, err // the call may not have returned
	}
	return *got, nil
}

func (s *store) Load() ([]byte, error) { return s.get(s.of.Load) }

func (s *store) Save(data []byte) error {
	return s.call(func(*visit) error { return s.of.Save(data) })
}

// Update implements [document.Shared].
func (s *store) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	return s.call(func(v *visit) error {
		return document.Update(ctx, s.of, func(data []byte) ([]byte, error) {
			v.mu.Lock() // who leaves waits for change
			defer v.mu.Unlock()
			if v.left {
				return nil, errors.New("nobody waits for the update any more")
			}
			return change(data)
		})
	})
}

// A split is a store that has parts.
type split struct {
	*store
	of document.Parts
}

func (s *split) Get(key string) ([]byte, error) {
	return s.get(func() ([]byte, error) { return s.of.Get(key) })
}

func (s *split) Put(key string, part []byte) error {
	return s.call(func(*visit) error { return s.of.Put(key, part) })
}

// A Counter counts something in texts by a host's function. If that panics, the
// Counter takes an estimate instead and logs the first panic: there may be one for
// each text.
type Counter struct {
	What     string
	Of       func(text string) int
	Estimate func(text string) int
	Log      *slog.Logger

	told sync.Once
}

// MaxCount is the largest number for one text: sums of counts don't overflow.
const MaxCount = 1 << 30

// WithinCount returns the number from 0 to [MaxCount] that is nearest to n.
func WithinCount(n int) int { return min(max(n, 0), MaxCount) }

// Count returns the number for text, from 0 to [MaxCount].
func (c *Counter) Count(text string) int {
	n, err := Call(c.What, func() (int, error) { return c.Of(text), nil })
	if err != nil {
		c.told.Do(func() { c.Log.Error("mcphybrid: the host's code panicked, an estimate is used", "error", err) })
		return c.Estimate(text)
	}
	return WithinCount(n)
}

// Logger returns a logger like log that drops a record if the handler of log
// panics: there is no one to tell.
func Logger(log *slog.Logger) *slog.Logger {
	h := log.Handler()
	if _, ok := h.(handler); ok || h == slog.DiscardHandler {
		return log
	}
	return slog.New(handler{h})
}

type handler struct{ of slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	enabled, err := Call("the logger", func() (bool, error) { return h.of.Enabled(ctx, level), nil })
	return err == nil && enabled
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	return Try("the logger", func() error { return h.of.Handle(ctx, r) })
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func() slog.Handler { return h.of.WithAttrs(attrs) })
}

func (h handler) WithGroup(name string) slog.Handler {
	return h.with(func() slog.Handler { return h.of.WithGroup(name) })
}

func (h handler) with(derive func() slog.Handler) slog.Handler {
	of, err := Call("the logger", func() (slog.Handler, error) { return derive(), nil })
	if err != nil || of == nil {
		return h
	}
	return handler{of}
}
