package mcphybrid

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// The default session, for a host with one conversation, and its methods.

// Default returns the default session. It exists from [NewManager] to
// [Manager.Close], and [Options.Registry] is its registry.
func (m *Manager) Default() *Session { return m.def }

// Search is [Session.Search] of the default session.
func (m *Manager) Search(query string, n int) []Hit { return m.def.Search(query, n) }

// ActivateTools is [Session.ActivateTools] of the default session.
func (m *Manager) ActivateTools(names []string) []string { return m.def.ActivateTools(names) }

// ActivateToolIfDeferred is [Session.ActivateToolIfDeferred] of the default
// session.
func (m *Manager) ActivateToolIfDeferred(name string) bool { return m.def.ActivateToolIfDeferred(name) }

// InlineTools is [Session.InlineTools] of the default session.
func (m *Manager) InlineTools() []*BridgeTool { return m.def.InlineTools() }

// DeferredTools is [Session.DeferredTools] of the default session.
func (m *Manager) DeferredTools() []*BridgeTool { return m.def.DeferredTools() }

// ActiveTools is [Session.ActiveTools] of the default session.
func (m *Manager) ActiveTools() []*BridgeTool { return m.def.ActiveTools() }

// IsSearchMode is [Session.IsSearchMode] of the default session.
func (m *Manager) IsSearchMode() bool { return m.def.IsSearchMode() }

// SearchTool is [Session.SearchTool] of the default session.
func (m *Manager) SearchTool() Tool { return m.def.SearchTool() }

// InlineSection is [Session.InlineSection] of the default session.
func (m *Manager) InlineSection() string { return m.def.InlineSection() }

// SearchSection is [Session.SearchSection] of the default session.
func (m *Manager) SearchSection() string { return m.def.SearchSection() }

// PromptSections is [Session.PromptSections] of the default session.
func (m *Manager) PromptSections(mode PromptMode) string { return m.def.PromptSections(mode) }

// Call is [Session.Call] of the default session.
func (m *Manager) Call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	return m.def.Call(ctx, name, args)
}

// Stats is [Session.Stats] of the default session.
func (m *Manager) Stats() snapshot.Stats { return m.def.Stats() }
