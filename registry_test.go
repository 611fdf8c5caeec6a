package mcphybrid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The default registry removes exactly the tool that it is given, not another
// one with the same name.
func TestUnregisterGoesByIdentity(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	first, second := &schemaTool{"a", "first", "{}"}, &schemaTool{"a", "second", "{}"}
	r.Register(first)
	r.Register(second)
	r.Unregister(first)
	got, ok := r.Get("a")
	require.True(t, ok)
	assert.Same(t, second, got)
	r.Unregister(second)
	_, ok = r.Get("a")
	assert.False(t, ok)
}

// The default registry shares no list of names with its callers.
func TestToolGroupsAreCopies(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	names := []string{"a", "b"}
	r.RegisterToolGroup("g", names)
	names[0] = "x"
	assert.Equal(t, []string{"a", "b"}, r.ToolGroup("g"))
	r.ToolGroup("g")[1] = "y"
	assert.Equal(t, []string{"a", "b"}, r.ToolGroup("g"))
}

// What the default registry does, call by call.
func TestRegistryTable(t *testing.T) {
	compareTable(t, "toolregistry", "Calls of a registry one after the other, what they return, and what it has then.", func(table *factTable) {
		r := NewRegistry()
		tool := func(name, text string) *schemaTool { return &schemaTool{name, text, "{}"} }
		a, other, b := tool("a", "first"), tool("a", "second"), tool("b", "b")
		var asked []string
		knows := ""
		activator := func(name string) bool {
			asked = append(asked, name)
			if name == knows {
				r.Register(tool(name, "activated"))
			}
			return name == knows || name == "lies"
		}
		tell := func(what string, values ...any) {
			var has []string
			for _, t := range r.List() {
				has = append(has, t.Name()+" "+t.Description())
			}
			table.row(what, append(values, fmt.Sprintf("has %q, group %q, was asked for %q", has, r.ToolGroup("g"), asked))...)
			asked = nil
		}
		executed := func(name string) error { return second(r.Execute(t.Context(), name, nil)) }
		tell("a new one", second(r.Get("a")), r.TryActivateDeferred("a"), executed("a"))
		r.Register(a)
		r.Register(b)
		tell("a and b", first(r.Get("a")) == Tool(a), executed("a"))
		r.SetDeferredActivator(activator)
		tell("what is there needs no activator", executed("b"))
		tell("it knows nothing", executed("c"), r.TryActivateDeferred("c"))
		tell("it says that it has one, and has not", executed("lies"))
		knows = "c"
		tell("it has one", executed("c"), r.TryActivateDeferred("c"))
		r.SetDeferredActivator(nil)
		tell("none any more", r.TryActivateDeferred("c"), executed("d"))
		r.Register(other)
		tell("another a keeps its place")
		r.Unregister(a)
		tell("the first a is not there")
		r.Unregister(other)
		r.Unregister(other)
		tell("the other leaves, twice")
		r.Unregister(tool("b", "b"))
		tell("one that is only like b leaves")
		list := r.List()
		list[0] = nil
		tell("the list is the caller's")
		r.RegisterToolGroup("g", []string{"b", "a"})
		tell("a group")
		r.RegisterToolGroup("g", []string{"c"})
		tell("another")
		r.RegisterToolGroup("g", []string{})
		tell("none", r.ToolGroup("g") == nil, len(r.groups))
	})
}
