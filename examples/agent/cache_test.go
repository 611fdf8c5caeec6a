package main

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// water is the tool of a server that comes late, in the call of get_note, and leaves in that
// of day_of_week.
const water = "mcp_greenhouse__water_plants"

type greenhouse struct {
	manager *mcphybrid.Manager
	session *mcphybrid.Session // of the calls
	left    bool
}

func (g *greenhouse) watch(next mcphybrid.Handler) mcphybrid.Handler {
	return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
		switch c.Tool.Name() {
		case "mcp_notes__get_note":
			if g.session != nil {
				break
			}
			g.session = c.Session
			tool := server.ServerTool{Tool: mcp.NewTool("water_plants", mcp.WithDescription("Waters the plants.")), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("They are wet."), nil
			}}
			if err := g.manager.AddTools("greenhouse", tool); err != nil {
				return nil, err
			}
		case "mcp_calendar__day_of_week":
			g.left = g.manager.RemoveServer("greenhouse")
		}
		return next(ctx, c)
	}
}

// gardening returns the demo with steps for the greenhouse. Where messages can take a tool
// back, they do.
func gardening(provider string) []modeltest.Step {
	call := modeltest.Call{Name: water, Arguments: `{}`}
	steps := slices.Clone(demo)
	steps[2].Told = []string{"greenhouse"}
	steps[5].Gone = []string{water} // day_of_week has ended
	steps = slices.Insert(steps, 7,
		modeltest.Step{User: "Water the plants again.", ByName: true, Calls: []modeltest.Call{call}},
		modeltest.Step{Results: []string{"!" + water + " is gone"}, Say: "I can't any more."},
	)
	steps = slices.Insert(steps, 3,
		modeltest.Step{User: "Water the plants.", Calls: []modeltest.Call{{Name: mcphybrid.SearchToolName, Arguments: `{"query":"water the plants","max_results":1}`}}},
		modeltest.Step{Results: []string{water}, Tools: []string{water}, Calls: []modeltest.Call{call}},
		modeltest.Step{Results: []string{"They are wet."}, Say: "Done."},
	)
	if provider == "openai" {
		steps = bridged(steps)
		for i := range steps {
			steps[i].Gone = nil
		}
	}
	return steps
}

// Each request begins with all bytes of the one before, but for the one after the summary: with
// searches, tools that are called in the turn in which they were found, and a server that
// comes and goes. So the provider's cache is never lost, and the session counts no loss.
func TestNoLossOfTheCache(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		s := newScript(gardening(name)...)
		const limit = 100_000
		long := false // the step makes the conversation too long
		caches := &modeltest.Caches{Next: func(got modeltest.Request, err error) (modeltest.Step, error) {
			st, err := s.Play(got, err)
			long = st.Tokens > 0
			return st, err
		}}
		prefix := &modeltest.Prefix{Script: s, Next: modeltest.Model(func(got modeltest.Request, err error) (modeltest.Step, error) {
			st, err := caches.Play(got, err)
			if long {
				st.Tokens += limit
			}
			return st, err
		})}

		var out bytes.Buffer
		set, err := parse(append([]string{"-provider", name, "-base-url", host(t, prefix), "--"}, messagesOf(s.Steps)...), &out)
		require.NoError(t, err)
		defer set.close()
		g := new(greenhouse)
		set.access, set.limit = demoAccess, limit
		set.options.Middleware = []mcphybrid.Middleware{g.watch}
		set.options.OnEvent = func(e mcphybrid.Event) {
			if e.Kind == mcphybrid.EventCacheLost {
				assert.Equal(t, snapshot.LossCompact, e.Loss.Cause, e.Loss.Why())
			}
		}
		g.manager = mcphybrid.NewManager(set.options)
		defer g.manager.Close()
		err = set.run(t.Context(), g.manager, &out, &out)
		require.NoError(t, prefix.Wrong())
		require.NoError(t, s.End())
		require.NoError(t, err)
		assert.Equal(t, len(s.Steps), prefix.Requests())
		assert.True(t, g.left)

		read, bills := 0, caches.Bills()
		for _, b := range bills {
			read += b.Read
		}
		assert.Zero(t, caches.Lost())
		assert.NotZero(t, read)
		assert.Equal(t, len(bills), g.session.Stats().Measured.Requests)
		assert.Equal(t, read, g.session.Stats().Measured.Cached)
	})
}
