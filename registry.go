package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Tool is something that the model can call. Its dynamic type must be
// comparable, such as a pointer.
type Tool interface {
	// Name is what the model calls it by.
	Name() string

	// Description is for the model, in full.
	Description() string

	// InputSchema is the JSON Schema of the arguments, a JSON object. It is
	// shared and must not be changed.
	InputSchema() json.RawMessage

	// Call runs the tool. args is a JSON object; empty means one without
	// members.
	Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)
}

// The tool groups that a session keeps in its [Registry]: GroupAll holds its
// inline and active tools, GroupServer and a server's name those of one server.
const (
	GroupAll    = "mcp"
	GroupServer = "mcp:"
)

// A Registry is a host's table of callable tools. A session that has one keeps
// its inline and active tools and, while there is something to search for, the
// search tool registered there; and the groups [GroupAll] and [GroupServer].
//
// Its methods are called concurrently, and never with a lock held that a
// method of this package waits for: they may use a lock of their own and call
// back, but not Close. (Register must have stored a tool before it calls back to
// activate the same one.) A panic in a method costs that call.
type Registry interface {
	// Register makes t callable under its name, in place of what was.
	Register(t Tool)

	// Unregister removes t, if it is t that is registered under its name. If
	// it is another tool by then, or another copy of t, it must stay: the two
	// may have been registered and given up by different goroutines.
	Unregister(t Tool)

	// Get returns what is registered under a name.
	Get(name string) (Tool, bool)

	// RegisterToolGroup sets the members of a group; without names the group
	// ceases to exist.
	RegisterToolGroup(group string, names []string)

	// SetDeferredActivator sets the function that the registry calls when it
	// is asked for a tool that it does not have. The function makes a deferred
	// tool of that name callable, in this registry, and reports whether it
	// did. Nil removes it.
	SetDeferredActivator(activate func(name string) bool)
}

// A ToolRegistry is the default [Registry]. It may be used concurrently.
type ToolRegistry struct {
	mu       sync.RWMutex
	tools    map[string]Tool
	order    []string // names, in the order of their registration
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

// List returns the registered tools in the order of their registration.
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

// ToolGroup returns the names in a group, in the order they were given, or nil
// if there is no such group.
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

// TryActivateDeferred makes the deferred tool of that name callable, if there
// is one that may be used, and reports whether it did.
func (r *ToolRegistry) TryActivateDeferred(name string) bool {
	r.mu.RLock()
	activate := r.activate
	r.mu.RUnlock()
	return activate != nil && activate(name)
}

// Execute calls the tool of that name, which it first activates if it is
// deferred. The error is [ErrUnknownTool] if there is no such tool.
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

// namesOf returns the names of tools, in their order.
func namesOf[T Tool](tools []T) []string {
	list := make([]string, len(tools))
	for i, t := range tools {
		list[i] = t.Name()
	}
	return list
}
