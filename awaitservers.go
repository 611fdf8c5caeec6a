package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// AwaitServers waits until each server of the tools in a saved state has listed
// its tools, so that [Manager.RestoreSession] finds them. It waits for servers
// that are not configured, too: they may be added meanwhile. If ctx ends first,
// the error names the servers that are missing and wraps the error of ctx. The
// state can be restored nevertheless.
func (m *Manager) AwaitServers(ctx context.Context, state json.RawMessage) error {
	parsed, err := m.parseState(state)
	if err == nil {
		err = parsed.Whole(m.parts)
	}
	if err != nil {
		return err
	}
	for {
		missing, news := m.missing(parsed.Tools, m.system != nil)
		var more <-chan struct{} // nil without a system
		if m.system != nil {
			var names []string
			names, more = m.system.missing(parsed.Tools, false)
			missing = append(names, missing...)
		}
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-news:
		case <-more:
		case <-m.life.Done():
			return fmt.Errorf("mcphybrid: %w", ErrClosed)
		case <-ctx.Done():
			return fmt.Errorf("mcphybrid: servers that are not ready: %s: %w", text.Names(missing), ctx.Err())
		}
	}
}

// missing returns the servers, of the user or else of the system, that have not
// listed their tools, and a channel that is closed at the next change.
func (m *Manager) missing(tools []saved.Tool, ofUser bool) (names []string, news <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[string]bool)
	for _, t := range tools {
		if t.OfUser != ofUser || seen[t.Server] {
			continue
		}
		seen[t.Server] = true
		if src := m.sourceNamed(t.Server); src == nil || src.isUnlisted() {
			names = append(names, t.Server)
		}
	}
	return names, m.changed
}
