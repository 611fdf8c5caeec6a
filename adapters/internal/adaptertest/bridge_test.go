package adaptertest

import (
	"encoding/json"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
)

// A list of tools that is not the same in each request is found.
func TestMistakesByBridge(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(tools []json.RawMessage, n int) []json.RawMessage{
		"step 4: the list of tools has grown by": func(tools []json.RawMessage, n int) []json.RawMessage {
			if n == 4 {
				tools = append(tools, json.RawMessage(`{"function":{"name":"mcp_desk__day_of_week"}}`))
			}
			return tools
		},
		"step 2: tool 5 is not what it was": func(tools []json.RawMessage, n int) []json.RawMessage {
			if n == 2 {
				tools[4] = tools[3]
			}
			return tools
		},
		"step 4: of 6, a tool is gone": func(tools []json.RawMessage, n int) []json.RawMessage {
			if n == 4 {
				tools = tools[:5]
			}
			return tools
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := Runtime{Sequential: true, Disclosure: mcphybrid.ByBridge}
			s := newScript(r)
			n := 0
			p := &plain{url: serve(t, s), session: newDesk(true).manager(t).NewSession(r.options()), spoils: func(in object) {
				n++
				in["tools"] = spoil(in["tools"].([]json.RawMessage), n)
			}}
			for _, st := range s.Steps[:3] {
				if st.User != "" {
					_, _ = p.Run(t.Context(), st.User)
				}
			}
			assert.ErrorContains(t, s.Wrong(), want)
		})
	}
}

// The docs say how many requests there are.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, r := range []Runtime{{}, {Forgets: true}, {Disclosure: mcphybrid.ByBridge}} {
		assert.Len(t, steps(r), 24)
	}
}
