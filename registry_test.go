package mcphybrid

import (
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
