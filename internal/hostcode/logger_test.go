package hostcode

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

type broken struct{}

func (broken) Enabled(context.Context, slog.Level) bool  { return true }
func (broken) Handle(context.Context, slog.Record) error { panic("no terminal") }
func (broken) WithAttrs([]slog.Attr) slog.Handler        { panic("no attributes") }
func (broken) WithGroup(string) slog.Handler             { return nil }

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

// A moody handler is asked which levels it takes, and may panic then.
type moody struct{ slog.Handler }

func (m moody) Enabled(ctx context.Context, level slog.Level) bool {
	if level == slog.LevelWarn {
		panic("not warnings")
	}
	return m.Handler.Enabled(ctx, level)
}

// What a handler takes is up to it. One that panics takes nothing.
func TestLoggerAsksForLevels(t *testing.T) {
	var b bytes.Buffer
	log := Logger(slog.New(moody{slog.NewTextHandler(&b, nil)}))
	for level, want := range map[slog.Level]bool{slog.LevelDebug: false, slog.LevelInfo: true, slog.LevelWarn: false, slog.LevelError: true} {
		assert.Equal(t, want, log.Enabled(t.Context(), level), level)
	}
	log = Logger(slog.New(broken{})).With("a", 1)
	assert.True(t, log.Enabled(t.Context(), slog.LevelInfo), "one that can't derive goes on as it was")
}

// A modest handler has no groups.
type modest struct{ slog.Handler }

func (modest) WithGroup(string) slog.Handler { return nil }

// What a handler can't derive is logged without.
func TestLoggerWithoutGroups(t *testing.T) {
	var b bytes.Buffer
	Logger(slog.New(modest{slog.NewTextHandler(&b, nil)})).WithGroup("g").Info("said", "a", 1)
	assert.Contains(t, b.String(), "msg=said a=1\n")
}

// A panic that nobody waits for is logged.
func TestLogged(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	Logged(log, "the hook", func() {})
	assert.Empty(t, b.String())
	Logged(log, "the hook", func() { panic("oops") })
	assert.Contains(t, b.String(), `level=ERROR msg="mcphybrid: the host's code panicked" error="the hook: panic: oops"`)
}
