package mcphybrid

import (
	"context"
	"errors"
	"log/slog"
	"math/bits"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// tellChanges tells the host of the changed definitions among the problems.
func (m *Manager) tellChanges(problems []error) {
	for _, err := range problems {
		if change := new(ChangedError); errors.As(err, &change) {
			e := Event{Kind: EventChanged, Server: change.Server, Err: err}
			if change.Name != "" {
				e.Tools = []string{change.Name}
			}
			m.emitDetached(m.life, e)
		}
	}
}

// tellResources calls the host's code. No server waits for it, and Close does not.
func (m *Manager) tellResources() {
	m.resourcesTask.Do(func() {
		if m.life.Err() != nil {
			return
		}
		_, _ = hostcode.Detached(m.life, "Options.OnResources", func() (struct{}, error) {
			m.opts.OnResources(m.user.id)
			return struct{}{}, nil
		})
	})
}

// statusOf returns the status of the server of src.
func (m *Manager) statusOf(src *source) ServerStatus {
	st := src.server.Status() // read before the tools: a ready server has its tools
	status := ServerStatus{Name: src.name, State: State(st.State), Since: st.Since, Took: st.Took, Err: st.Err, Failures: st.Failures, Retry: st.Retry}
	m.mu.Lock()
	defer m.mu.Unlock()
	status.Tools = len(src.listed)
	status.Instructions = text.Lines(src.instructions)
	of := resources.Count(src.resources)
	status.Resources, status.Templates, status.Prompts, status.Skills = of[resources.Resource], of[resources.Template], of[resources.Prompt], of[resources.Skill]
	return status
}

// followStatus logs the states that the server of src enters and tells the host of each. Of
// attempts in vain, the first, the fourth, the sixteenth and so on are logged as warnings.
func (m *Manager) followStatus(src *source) {
	failed, told := false, false // the one before was a failure; there was one
	src.server.OnStatus(func(ctx context.Context, st upstream.Status) {
		m.mu.Lock()
		isHere := slices.Contains(m.sources, src)
		m.mu.Unlock()
		if !isHere { // it was removed, or all are being closed: no failure
			return
		}
		if st.State == upstream.Connecting {
			st.Err = nil // it was told when the server went down
		}
		e := Event{Kind: EventServer, Server: src.name, State: State(st.State), Err: st.Err}
		args, level := []any{"server", e.Server}, slog.LevelDebug
		switch st.State {
		case upstream.Ready, upstream.Down, upstream.Unauthorized:
			e.Took = st.Took
		}
		begins := st.State == upstream.Cached && !told // else it rests
		told = true
		if st.State == upstream.Ready || begins {
			args = append(args, "tools", m.statusOf(src).Tools)
		}
		if st.State == upstream.Ready {
			args = append(args, "took", st.Took.Round(time.Millisecond))
		}
		if st.State == upstream.Ready || begins || failed && st.State != upstream.Connecting {
			level = slog.LevelInfo
		}
		if st.Err != nil {
			failed, args = true, append(args, "error", st.Err)
			if level = slog.LevelWarn; st.Failures > 1 && !isPowerOfFour(st.Failures) {
				level = slog.LevelDebug
			}
		} else if st.State != upstream.Connecting {
			failed = false
		}
		if st.Failures > 1 {
			args = append(args, "failures", st.Failures)
		}
		if !st.Retry.IsZero() {
			args = append(args, "retry", st.Retry)
		}
		m.opts.Logger.Log(ctx, level, "mcphybrid: a server is "+string(st.State), args...)
		m.emitDetached(ctx, e)
	})
}

func isPowerOfFour(n int) bool { return n&(n-1) == 0 && bits.TrailingZeros(uint(n))%2 == 0 }

// emitDetached tells the host of an event. Nobody waits for its code once ctx has ended:
// the code may have closed the Manager or removed the server.
func (m *Manager) emitDetached(ctx context.Context, e Event) {
	_, _ = hostcode.Detached(ctx, "Options.OnEvent", func() (struct{}, error) {
		m.emit(e)
		return struct{}{}, nil
	})
}

// Servers returns the status of each server, in registration order. It does not
// include tools of [Manager.AddTools].
func (m *Manager) Servers() []ServerStatus {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	var list []ServerStatus
	for _, src := range sources {
		if src.server != nil {
			list = append(list, m.statusOf(src))
		}
	}
	m.usageMu.Lock()
	defer m.usageMu.Unlock()
	for i := range list {
		if u := m.serverUsage[list[i].Name]; u != nil {
			list[i].Usage = *u
		}
	}
	return list
}
