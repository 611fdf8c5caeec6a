package mcpopenai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	mcpopenai "github.com/mcphybrid/mcphybrid/adapters/openai"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
)

// topics are what the tools of the tests are about.
var topics = []string{"invoices", "weather", "calendars", "parcels", "recipes", "trains", "plants", "stars"}

// tools returns tools of a server whose names end with n.
func tools(n int) (list []server.ServerTool) {
	for _, topic := range topics {
		list = append(list, server.ServerTool{
			Tool: mcp.NewTool(fmt.Sprintf("find_%s_%d", topic, n), mcp.WithDescription(fmt.Sprintf("Finds %s <%d>.", topic, n)), mcp.WithString("query")),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("Some " + topic), nil
			},
		})
	}
	return list
}

// ways has the two APIs, each with what its session becomes by itself, and OpenAI's search.
var ways = func() map[string]adaptertest.Runtime {
	searching := responding(false)
	searching.Disclosure, searching.Chosen = mcphybrid.ByProvider, mcphybrid.ByProvider
	return map[string]adaptertest.Runtime{"chat": chats(false), "responses": responding(false), "responses by provider": searching}
}()

// In a long conversation with searches, a server that comes late and tools that leave,
// every request begins with all bytes of the one before, so nothing of a cache is lost.
func TestNoLossOfTheCache(t *testing.T) {
	t.Parallel()
	const requests = 40 // two for each of 20 messages
	for api, r := range ways {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 3}})
			defer mgr.Close()
			require.NoError(t, mgr.AddTools("early", tools(1)...))
			news, added := false, 0
			model := &modeltest.Prefix{Next: modeltest.Model(func(got modeltest.Request, err error) (modeltest.Step, error) {
				last := got.Turns[len(got.Turns)-1]
				news = news || strings.Contains(string(got.Body), "MCP servers: late (8")
				added = max(added, len(got.Tools)-got.Listed)
				if err != nil || last.Results != nil {
					return modeltest.Step{Say: "Done."}, err
				}
				search := mcphybrid.SearchToolName
				if r.Disclosure == mcphybrid.ByProvider {
					search = modeltest.ToolSearch
				}
				query := topics[len(got.Turns)/4%len(topics)]
				return modeltest.Step{Calls: []modeltest.Call{{ID: fmt.Sprint("c", len(got.Turns)), Name: search, Arguments: fmt.Sprintf(`{"query":%q}`, query)}}}, nil
			})}
			host := r.Begin(t, serve(t, model), mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: r.Disclosure}), nil)
			for n := range requests / 2 {
				switch n {
				case 6:
					require.NoError(t, mgr.AddTools("late", tools(2)...))
				case 12:
					require.True(t, mgr.RemoveServer("early"))
				case 15:
					require.NoError(t, mgr.AddTools("early", tools(3)...))
				}
				_, err := host.Run(t.Context(), fmt.Sprint("Go on: ", n))
				require.NoError(t, err, n)
			}
			require.NoError(t, model.Wrong())
			require.Equal(t, requests, model.Requests())
			require.True(t, news, "the late server was not told of")
			require.Equal(t, r.Chosen != mcphybrid.ByBridge, added > 0)
		})
	}
}

// A run that is cancelled leaves no trace: the next request says again what that run was
// told first, also in a conversation that was stored before.
func TestCancelledRunIsToldAgain(t *testing.T) {
	t.Parallel()
	for api, r := range ways {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 3}})
			defer mgr.Close()
			require.NoError(t, mgr.AddTools("early", tools(1)...))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cancels := false
			var told [][]json.RawMessage
			model := &modeltest.Prefix{Next: modeltest.Model(func(got modeltest.Request, err error) (modeltest.Step, error) {
				told = append(told, got.Messages)
				if cancels {
					stop()
					return modeltest.Step{}, errors.Join(err, context.Canceled)
				}
				return modeltest.Step{Say: "Done."}, err
			})}
			url := serve(t, model)
			opts := &mcphybrid.SessionOptions{Disclosure: r.Disclosure}
			s := mgr.NewSession(opts)
			host := r.Begin(t, url, s, nil)
			_, err := host.Run(ctx, "Begin.")
			require.NoError(t, err)
			require.NoError(t, mgr.AddTools("late", tools(2)...))
			_, err = host.Run(ctx, "Go on.")
			require.NoError(t, err)

			s, _, err = mgr.RestoreSession(s.Save(), opts)
			require.NoError(t, err)
			host = r.Begin(t, url, s, host)
			require.NoError(t, mgr.AddTools("later", tools(3)...))
			cancels = true
			_, err = host.Run(ctx, "Stop.")
			require.Error(t, err)
			cancels = false
			model.Back()
			_, err = host.Run(t.Context(), "Stop.")
			require.NoError(t, err)
			require.NoError(t, model.Wrong())
			require.Len(t, told, 4)
			require.Equal(t, texts(told[2]), texts(told[3]))
			require.Greater(t, len(told[3]), len(told[1])+2, "nothing was told of the later server")
		})
	}
}

func texts(messages []json.RawMessage) (list []string) {
	for _, m := range messages {
		list = append(list, string(m))
	}
	return list
}

// The same conversation has the same bytes if what was appended went through a store.
func TestStoredNews(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 3}})
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("early", tools(1)...))
	var bodies []string
	url := serve(t, modeltest.Model(func(got modeltest.Request, err error) (modeltest.Step, error) {
		bodies = append(bodies, string(got.Body))
		return modeltest.Step{Say: "<b> & \u2028"}, err
	}))
	sessions := []*mcphybrid.Session{mgr.NewSession(nil), mgr.NewSession(nil)}
	c := mcpopenai.NewChat(client(url), sessions[0], openai.ChatCompletionNewParams{Model: "gpt-5.5"})
	r := mcpopenai.NewResponses(client(url), sessions[1], responses.ResponseNewParams{Model: "gpt-5.5"})
	run := func() {
		_, err := c.Run(t.Context(), openai.UserMessage("Hello."))
		require.NoError(t, err)
		_, err = r.Run(t.Context(), responses.ResponseInputItemParamOfMessage("Hello.", "user"))
		require.NoError(t, err)
	}
	run()
	require.NoError(t, mgr.AddTools("<late>", tools(2)...))
	sessions[1].ActivateTools([]string{"mcp_early__find_stars_1"})
	run()
	chatBefore, inputBefore := c.Params.Messages, r.Input
	run()
	c.Params.Messages, r.Input = again(t, chatBefore), again(t, inputBefore)
	run()
	require.Contains(t, bodies[4], "[Written by the program")
	require.Contains(t, bodies[5], `"additional_tools"`)
	require.Contains(t, bodies[5], `"role":"developer"`)
	require.Equal(t, bodies[4:6], bodies[6:8])
}

func serve(t *testing.T, model http.Handler) (url string) {
	srv := httptest.NewServer(model)
	t.Cleanup(srv.Close)
	return srv.URL
}
