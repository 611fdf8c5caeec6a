package mcphybrid

import (
	"context"
	"errors"
	"log/slog"
)

// LogEvents returns a function for [Options.OnEvent] that logs each event: at
// level, or as a warning if it has an error or is an [EventCacheLost] or an
// [EventWaiting]. It does not log what tools answer.
func LogEvents(log *slog.Logger, level slog.Level) func(Event) {
	return func(e Event) {
		level := level
		var attrs []slog.Attr
		if e.Kind != EventServer && e.Kind != EventStore && e.Kind != EventCacheLost {
			attrs = append(attrs, slog.Any("tools", e.Tools))
		}
		for _, of := range [][2]string{{"server", e.Server}, {"state", string(e.State)}, {"session", e.Label}, {"user", e.User}, {"store", e.Store}} {
			if of[1] != "" {
				attrs = append(attrs, slog.String(of[0], of[1]))
			}
		}
		if e.Kind == EventSearch || e.Kind == EventRead {
			attrs = append(attrs, slog.String("query", e.Query))
		}
		if e.Kind == EventBegin {
			attrs = append(attrs, slog.String("disclosure", e.Disclosure.String()), slog.String("why", e.Why))
		}
		if e.Kind == EventCacheLost {
			level = slog.LevelWarn
			attrs = append(attrs, slog.Int("tokens", e.Loss.Tokens), slog.String("cause", string(e.Loss.Cause)))
			if e.Loss.Miss != "" {
				attrs = append(attrs, slog.String("miss", e.Loss.Miss))
			}
		}
		if e.Kind == EventWaiting {
			level = slog.LevelWarn
		}
		if e.Took > 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.Err == nil && e.ToolError != "" {
			e.Err = errors.New("the tool answered with an error")
		}
		if e.Err != nil {
			level = slog.LevelWarn
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		log.LogAttrs(context.Background(), level, "mcphybrid: "+string(e.Kind), attrs...)
	}
}
