package eino

import (
	"net/url"
	"slices"
	"strings"

	"github.com/cloudwego/eino/schema"
)

// A node of Eino has the tools that it was made with. A model calls others too: those of
// a server that connected later, those that it may not use, names that it misspells. Eino
// has a handler for them, but its results can't have images, and neither react's message
// future nor the events of adk tell of them. So within the agent such a call has the name
// unlisted, and its id ends with the real name. The model sees neither.
const (
	unlisted = "mcp_unlisted_tool"
	between  = "#"
)

// names are the names of tools.
type names map[string]bool

func namesOf(tools []*schema.ToolInfo) names {
	n := make(names)
	for _, t := range tools {
		if t != nil && t.Name != unlisted {
			n[t.Name] = true
		}
	}
	return n
}

// answer returns a function that gives the calls of other tools the name unlisted. It
// is for one answer, whose pieces come in order.
func (n names) answer() func(*schema.Message) (*schema.Message, error) {
	began := make(map[int]string) // by index, the names of calls whose first piece was here
	return func(m *schema.Message) (*schema.Message, error) {
		return withCalls(m, func(c *schema.ToolCall) {
			// A call may have no name. The later pieces of one have no id.
			if c.Function.Name == "" && (c.Index == nil || c.ID != "" && began[*c.Index] == "") {
				c.Function.Name = unlisted
			}
			name := c.Function.Name
			if c.Index != nil && name != "" {
				began[*c.Index] = name
			} else if c.Index != nil {
				name = began[*c.Index]
			}
			if name == "" || n[name] {
				return
			}
			if c.Function.Name != "" {
				c.Function.Name = unlisted
			}
			if c.ID != "" || c.Function.Name != "" {
				c.ID += between + url.PathEscape(name) // without another between
			}
		}), nil
	}
}

// realName returns the id of an unlisted call and the name of its tool. The id, which is
// the provider's, may have a between of its own.
func realName(within string) (id, name string) {
	i := strings.LastIndex(within, between)
	if i < 0 {
		return within, unlisted
	}
	id, name = within[:i], within[i+len(between):]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return id, name
}

// realNames returns messages as the model knows them.
func realNames(in []*schema.Message) []*schema.Message {
	out := slices.Clone(in)
	for i, m := range out {
		out[i] = withCalls(m, func(c *schema.ToolCall) {
			if c.Function.Name == unlisted {
				c.ID, c.Function.Name = realName(c.ID)
			}
		})
		if m.Role == schema.Tool && m.ToolName == unlisted {
			result := *m
			result.ToolCallID, result.ToolName = realName(m.ToolCallID)
			out[i] = &result
		}
	}
	return out
}

// withCalls returns m with its calls changed. It does not change m.
func withCalls(m *schema.Message, change func(*schema.ToolCall)) *schema.Message {
	if m == nil || len(m.ToolCalls) == 0 {
		return m
	}
	changed := *m
	changed.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range changed.ToolCalls {
		change(&changed.ToolCalls[i])
	}
	return &changed
}
