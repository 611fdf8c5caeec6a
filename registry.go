package mcphybrid

// The host's table of callable tools (servers: addserver.go): the interface, and a table for hosts that have none.
// registrar.go keeps a table in step with what a session offers, its groups too; activation.go reports no tool as
// active before the table has it.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Tool is something that the model can call. Its dynamic type must be
// comparable, for example a pointer.
type Tool interface {
	// Name returns the name by which the model calls the tool.
	Name() string

	// Description returns the full description for the model.
	Description() string

	// InputSchema returns the JSON Schema of the arguments, a JSON object. It is
	// shared and must not be changed.
	InputSchema() json.RawMessage

	// Call runs the tool. args is a JSON object; nil or empty means {}.
	Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)
}

// The names of the tool groups that a session keeps in its [Registry]. The group
// GroupAll holds the session's inline and active tools. The group GroupServer
// followed by a server's name holds those of that server.
const (
	GroupAll    = "mcp"
	GroupServer = "mcp:"
)

// A Registry is a host's table of callable tools. A session with a registry keeps
// its callable tools registered there: the inline tools, the active tools and
// the meta tools that it offers, such as the search tool. It also maintains the
// groups [GroupAll] and [GroupServer].
//
// Sessions call the methods concurrently, and never while they hold a lock that
// a method of this package waits for. So a method may take a lock of its own and
// call back into this package, except for Close. Register must have stored a
// tool before it calls back to activate the same tool. A panic in a method fails
// only that call.
type Registry interface {
	// Register makes t callable under its name and replaces the tool that had
	// the name.
	Register(t Tool)

	// Unregister removes t if t itself is registered under its name. Any other
	// tool under that name, even another copy of t, must stay: two goroutines
	// may register the one and unregister the other at the same time.
	Unregister(t Tool)

	// Get returns the tool registered under a name and reports whether there is
	// one.
	Get(name string) (Tool, bool)

	// RegisterToolGroup sets the members of a group. Without names it removes
	// the group.
	RegisterToolGroup(group string, names []string)

	// SetDeferredActivator sets the function that the registry calls when it
	// is asked for a tool that it does not have. The function registers the
	// deferred tool with that name in this registry and reports whether it did.
	// A nil function removes the activator.
	SetDeferredActivator(activate func(name string) bool)
}

// A ToolRegistry is the default [Registry]. Its methods may be called
// concurrently.
type ToolRegistry struct {
	mu       sync.RWMutex
	tools    map[string]Tool
	order    []string // names, in registration order
	groups   map[string][]string
	activate func(name string) bool // or nil
}

// NewRegistry returns an empty registry.
func NewRegistry() *ToolRegistry {
	return &ToolRegistry{tools: make(map[string]Tool), groups: make(map[string][]string)}
}

// Register implements [Registry].
func (r *ToolRegistry) Register(t Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.tools[t.Name()]; !ok {
		r.order = append(r.order, t.Name())
	}
	r.tools[t.Name()] = t
}

// Unregister implements [Registry].
func (r *ToolRegistry) Unregister(t Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools[t.Name()] == t {
		delete(r.tools, t.Name())
		r.order = slices.DeleteFunc(r.order, func(name string) bool { return name == t.Name() })
	}
}

// Get implements [Registry]. It does not activate anything.
func (r *ToolRegistry) Get(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	return t, ok
}

// List returns the registered tools in registration order. The caller owns the
// slice.
func (r *ToolRegistry) List() []Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Tool, len(r.order))
	for i, name := range r.order {
		list[i] = r.tools[name]
	}
	return list
}

// RegisterToolGroup implements [Registry].
func (r *ToolRegistry) RegisterToolGroup(group string, names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(names) == 0 {
		delete(r.groups, group)
		return
	}
	r.groups[group] = slices.Clone(names)
}

// ToolGroup returns the names in a group, in the order of RegisterToolGroup, or
// nil if there is no such group.
func (r *ToolRegistry) ToolGroup(group string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.groups[group])
}

// SetDeferredActivator implements [Registry].
func (r *ToolRegistry) SetDeferredActivator(activate func(name string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.activate = activate
}

// TryActivateDeferred makes the deferred tool with that name callable and reports
// whether it did. It reports false if there is no such tool or the session may
// not use it.
func (r *ToolRegistry) TryActivateDeferred(name string) bool {
	r.mu.RLock()
	activate := r.activate
	r.mu.RUnlock()
	return activate != nil && activate(name)
}

// Execute calls the tool with that name. It activates a deferred tool first. The
// error is [ErrUnknownTool] if there is no such tool, and otherwise that of
// [Tool.Call].
func (r *ToolRegistry) Execute(ctx context.Context, name string, args json.RawMessage) (*mcp.CallToolResult, error) {
	t, ok := r.Get(name)
	if !ok && r.TryActivateDeferred(name) {
		t, ok = r.Get(name)
	}
	if !ok {
		return nil, fmt.Errorf("mcphybrid: %w: %q", ErrUnknownTool, name)
	}
	return t.Call(ctx, args)
}
