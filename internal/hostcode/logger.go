package hostcode

import (
	"context"
	"log/slog"
)

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
	of, _ := Call("the logger", func() (slog.Handler, error) { return derive(), nil })
	if of == nil { // also after a panic
		return h
	}
	return handler{of}
}
