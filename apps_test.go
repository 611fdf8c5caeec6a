package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A secretTool is for apps only. Its name and its description have a word that no other tool
// has, and it counts its calls.
func secretTool(t *testing.T, calls *atomic.Int32, meta string) mcpserver.ServerTool {
	tool := mcpserver.ServerTool{
		Tool: mcp.NewTool("zanzibar", mcp.WithDescription("Zanzibar polls"), mcp.WithString("s", mcp.Required())),
		Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls.Add(1)
			return mcp.NewToolResultText("polled " + r.GetString("s", "")), nil
		},
	}
	require.NoError(t, json.Unmarshal([]byte(meta), &tool.Tool.Meta))
	return tool
}

const appOnly = `{"ui":{"visibility":["app"],"resourceUri":"ui://s/page"},"anthropic/alwaysLoad":true}`

// pageTool is for both.
func pageTool() mcpserver.ServerTool {
	t := withMeta("page", []string{"zanzibar"})
	t.Tool.Meta.AdditionalFields["ui"] = map[string]any{"resourceUri": "ui://s/page"}
	return t
}

// A model can't reach a tool that is for apps only.
func TestSpecH5ModelHasNoAppTool(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	call := func(name, args string) func(s *Session) any {
		return func(s *Session) any {
			r, err := s.Call(ctx, name, args)
			if err != nil {
				assert.NotErrorIs(t, err, ErrQuarantined)
			}
			return []any{r, fmt.Sprint(err)}
		}
	}
	turns := func(s *Session) (all []any) {
		for f, model := range map[provider.Format]string{provider.Anthropic: "claude-opus-5-5", provider.OpenAIResponses: "gpt-5.6", provider.OpenAIChat: "gpt-5.6", provider.Gemini: "gemini-3"} {
			child := s.NewChild(nil)
			turn, err := child.Turn(f, model)
			list, exportErr := child.Export(f)
			all = append(all, turn, fmt.Sprint(err), list, fmt.Sprint(exportErr))
		}
		return all
	}
	ways := map[string]func(s *Session) any{
		"the list":               func(s *Session) any { return textOfTools(s.Tools()) },
		"inline":                 func(s *Session) any { return toolNames(s.InlineTools()) },
		"deferred":               func(s *Session) any { return toolNames(s.DeferredTools()) },
		"the sections":           func(s *Session) any { return s.PromptSections(PromptFull) + s.InlineSection() + s.SearchSection() },
		"a search":               func(s *Session) any { return s.Search("poll", 100) },
		"a search by its name":   func(s *Session) any { return s.Search("select:mcp_s__zanzibar,zanz*", 100) },
		"a search in a server":   func(s *Session) any { return s.Find(ctx, "poll", SearchOptions{}).Hits },
		"the model's search":     call(SearchToolName, `{"query":"poll"}`),
		"its selection":          call(SearchToolName, `{"query":"select:mcp_s__page"}`),
		"a description":          call(DescribeToolName, `{"names":["mcp_s__page"]}`),
		"a call":                 call("mcp_s__zanzibar", `{"s":"x"}`),
		"a call by its own name": call("zanzibar", `{"s":"x"}`),
		"a call by its server":   call("s/zanzibar", `{"s":"x"}`),
		"the bridge":             call(CallToolName, `{"name":"mcp_s__zanzibar","arguments":{"s":"x"}}`),
		"the bridge that reads":  call(ReadOnlyCallToolName, `{"name":"mcp_s__zanzibar","arguments":{"s":"x"}}`),
		"an activation":          func(s *Session) any { return s.ActivateTools([]string{"mcp_s__zanzibar", "zanzibar"}) },
		"a tool that needs it": func(s *Session) any {
			return append(s.ActivateTools([]string{"mcp_s__page"}), toolNames(s.ActiveTools())...)
		},
		"a skill":     call(SkillLoadToolName, `{"name":"poll"}`),
		"the message": func(s *Session) any { return toolNames(s.SelectFor(ctx, "poll it")) },
		"requests":    func(s *Session) any { return turns(s) },
		"a provider's search": func(s *Session) any {
			child := s.NewChild(&SessionOptions{Disclosure: ByProvider})
			_, err := child.Turn(provider.OpenAIResponses, "gpt-5.6")
			found, searchErr := child.AnswerToolSearch(ctx, json.RawMessage(`{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"query":"poll"}}`))
			return []any{found, fmt.Sprint(err, searchErr)}
		},
		"a restore": func(s *Session) any {
			restored, _, err := s.tenant.manager.(*Manager).RestoreSession(s.Save(), nil)
			return []any{textOfTools(restored.Tools()), restored.PromptSections(PromptFull), fmt.Sprint(err)}
		},
		"what is saved": func(s *Session) any { return s.Save() },
		"placements":    func(s *Session) any { return s.Placements() },
	}
	for _, disclosure := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		for _, trust := range []TrustPolicy{TrustOff, TrustQuarantine, TrustApprove} {
			for name, way := range ways {
				var calls atomic.Int32
				server := mcptest.Server("s", slices.Concat([]mcpserver.ServerTool{pageTool(), secretTool(t, &calls, appOnly)}, mcptest.Chores("s", 50))...)
				reg := NewRegistry()
				opts := &Options{
					Servers: []ServerConfig{{Name: "s", InProcess: server}, inProcess("t", 3)}, Trust: trust, Registry: reg,
					Pins: []string{"mcp_s__zanzibar", "*zanz*"}, Needs: map[string][]string{"mcp_t__*": {"mcp_s__zanzibar"}},
					Skills: []Skill{{Name: "poll", Description: "Polls", Tools: []string{"mcp_s__zanzibar", "mcp_s__page"}}},
				}
				m, _ := newTestManager(t, opts)
				for _, s := range []*Session{m.Default(), m.NewSession(&SessionOptions{Disclosure: disclosure}), m.Default().NewChild(nil)} {
					said, err := json.Marshal(way(s))
					require.NoError(t, err)
					// What the model asked for may come back to it, but nothing of the definition.
					assert.NotContains(t, string(said), "Zanzibar polls", "%s: %s, %s", disclosure, trust, name)
					if !strings.Contains(name, "call") && !strings.Contains(name, "bridge") {
						assert.NotContains(t, string(said), "mcp_s__zanzibar", "%s: %s, %s", disclosure, trust, name)
					}
					assert.NoError(t, check(m, s))
				}
				for _, tool := range reg.List() {
					assert.NotContains(t, tool.Name(), "zanzibar")
				}
				assert.Zero(t, calls.Load(), name)

				r, err := m.Default().CallFromApp(ctx, "s", "zanzibar", `{"s":"x"}`)
				require.NoError(t, err)
				assert.Equal(t, "polled x", resultText(t, r))
			}
		}
	}
}

func textOfTools(tools []Tool) (list []string) {
	for _, t := range tools {
		list = append(list, t.Name(), t.Description(), string(t.InputSchema()))
	}
	return list
}

// What a server says of who may call a tool is read as the extension defines it. If it can't
// be told, the tool is left out, with a problem.
func TestParseAppMeta(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]appMeta{
		``: forBoth, `null`: forBoth, `{}`: forBoth, `{"ui":null}`: forBoth, `{"ui":{}}`: forBoth, `{"ui":{"visibility":null}}`: forBoth,
		`{"ui":{"visibility":["model","app"]}}`: forBoth, `{"ui":{"visibility":["app"]}}`: {app: true}, `{"ui":{"visibility":["model"]}}`: {model: true},
		`{"ui":{"visibility":[]}}`: {}, `{"ui":{"visibility":["Model","APP","x"]}}`: {}, `{"UI":{"Visibility":["app"]}}`: {app: true},
		`{"\u0075i":{"\u0076isibility":["\u0061pp"]}}`:                  {app: true},
		`{"ui":{"resourceUri":"ui://s/a"},"ui/resourceUri":"ui://s/b"}`: {model: true, app: true, page: "ui://s/a"},
		`{"ui":{"resourceUri":5,"visibility":["app"]}}`:                 {app: true},
		`{"ui/resourceUri":"ui://s/b"}`:                                 {model: true, app: true, page: "ui://s/b"},
	} {
		got, err := parseAppMeta(json.RawMessage(meta))
		assert.NoError(t, err, meta)
		assert.Equal(t, want, got, meta)
	}
	for meta, want := range map[string]string{
		`{"ui":[{"visibility":["app"]}]}`:                      `its _meta.ui is not an object`,
		`{"ui":"{\"visibility\":[\"app\"]}"}`:                  `its _meta.ui is not an object`,
		`{"ui":false}`:                                         `its _meta.ui is not an object`,
		`{"ui":{"visibility":{"app":true}}}`:                   `its _meta.ui.visibility is not a list of "model" and "app"`,
		`{"ui":{"visibility":"app"}}`:                          `its _meta.ui.visibility is not a list of "model" and "app"`,
		`{"ui":{"visibility":["app",1]}}`:                      `its _meta.ui.visibility is not a list`,
		`{"ui":{"visibility":["app"],"Visibility":["model"]}}`: `its _meta has the member "visibility" more than once`,
		`{"ui":{"visibility":["app"]},"ui":{}}`:                `its _meta has the member "ui" more than once`,
	} {
		_, err := parseAppMeta(json.RawMessage(meta))
		assert.ErrorContains(t, err, want, meta)
		_, err = parseDefinition("s", json.RawMessage(`{"name":"a","_meta":`+meta+`}`), 1<<20)
		assert.ErrorContains(t, err, want, meta)
	}
}

// An app calls the tools of its own server that are for apps, within the session's rights,
// by the steps of all calls.
func TestSpecH5CallFromApp(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	forModel := echoTool("inner", "For the model")
	forModel.Tool.Meta = mcp.NewMetaFromMap(map[string]any{"ui": map[string]any{"visibility": []string{"model"}}})
	var seen []string
	var events []Event
	m, _ := newTestManager(t, &Options{
		Servers: []ServerConfig{serving("s", pageTool(), secretTool(t, &calls, appOnly), forModel), inProcess("t", 1)},
		Middleware: []Middleware{func(next Handler) Handler {
			return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
				seen = append(seen, fmt.Sprint(c.Tool.OriginalName(), c.FromApp))
				return next(ctx, c)
			}
		}},
		OnEvent: ofSessions(func(e Event) { events = append(events, e) }), Rules: []Rule{{Name: "no t", Patterns: []string{"mcp_t__*"}, Action: RuleExclude}},
	})
	s := m.Default()
	var names []string
	for _, tool := range s.AppTools("s") {
		names = append(names, tool.OriginalName())
		assert.Equal(t, "ui://s/page", tool.AppURI())
	}
	assert.Equal(t, []string{"page", "zanzibar"}, names)
	assert.Empty(t, s.AppTools("x"))
	assert.Empty(t, s.AppTools("t"), "a rule excludes them")

	r, err := s.CallFromApp(t.Context(), "s", "zanzibar", map[string]any{"s": strings.Repeat("x", 1<<20)})
	require.NoError(t, err)
	assert.Len(t, resultText(t, r), len("polled ")+1<<20, "it is not cut")
	_, err = s.CallFromApp(t.Context(), "s", "page", nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"zanzibartrue", "pagetrue"}, seen)
	require.Len(t, events, 2)
	assert.Equal(t, []any{EventCall, []string{"mcp_s__zanzibar"}, "s", true}, []any{events[0].Kind, events[0].Tools, events[0].Server, events[0].FromApp})
	assert.Zero(t, s.Stats().Usage.Calls)
	assert.Empty(t, s.ActiveTools())

	for _, test := range []struct {
		server, tool, args string
		want               error
	}{
		{"s", "inner", `{}`, ErrUnknownTool}, {"s", "mcp_s__zanzibar", `{"s":"x"}`, ErrUnknownTool}, {"x", "zanzibar", `{"s":"x"}`, ErrUnknownTool},
		{"t", "zanzibar", `{"s":"x"}`, ErrUnknownTool}, {"", "zanzibar", `{"s":"x"}`, ErrUnknownTool}, {"t", "tool_000", `{}`, ErrNotPermitted},
		{"s", "zanzibar", `{}`, ErrBadArguments}, {"s", "zanzibar", `{"s":1}`, ErrBadArguments}, {"s", "zanzibar", `[`, ErrBadArguments},
	} {
		r, err := s.CallFromApp(t.Context(), test.server, test.tool, test.args)
		assert.ErrorIs(t, err, test.want, test)
		assert.Nil(t, r)
	}
	denied := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"mcp_s__zanzibar"}}})
	_, err = denied.CallFromApp(t.Context(), "s", "zanzibar", `{"s":"x"}`)
	assert.ErrorIs(t, err, ErrNotPermitted)
	assert.Len(t, denied.AppTools("s"), 1)
	assert.EqualValues(t, 1, calls.Load())
	assert.NoError(t, check(m, denied))
}

// Who may call a tool is part of its definition: a change is held back, and a model that was
// shown the tool loses it.
func TestSpecH5VisibilityIsTrusted(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	both := `{"ui":{"resourceUri":"ui://s/page"}}`
	for _, c := range []struct {
		trust       TrustPolicy
		first, then string
		model, app  error // of calls after the change
	}{
		{TrustOff, both, appOnly, ErrUnknownTool, nil},
		{TrustOff, appOnly, both, nil, nil},
		{TrustWarn, both, appOnly, ErrUnknownTool, nil},
		{TrustQuarantine, both, appOnly, ErrUnknownTool, ErrQuarantined},
		{TrustQuarantine, appOnly, both, ErrQuarantined, ErrQuarantined},
		{TrustQuarantine, both, `{"ui":{"resourceUri":"ui://s/other"}}`, ErrQuarantined, ErrQuarantined},
	} {
		server := mcptest.Server("s", secretTool(t, &calls, c.first))
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "s", InProcess: server}}, Trust: c.trust, TrustStore: new(mcptest.Store)})
		s := m.NewSession(nil)
		turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
		old := s.AppTools("s")[0]
		server.SetTools(secretTool(t, &calls, c.then))
		soon(t, func() bool {
			apps := s.AppTools("s")
			return len(changedTools(m)) == 1 || len(apps) == 1 && apps[0].def != old.def
		})
		before := calls.Load()
		_, err := s.Call(t.Context(), "mcp_s__zanzibar", `{"s":"x"}`)
		assert.ErrorIs(t, err, c.model, c)
		_, err = old.Call(t.Context(), json.RawMessage(`{"s":"x"}`))
		if c.trust == TrustQuarantine {
			assert.ErrorIs(t, err, ErrQuarantined, c)
		} else {
			assert.ErrorIs(t, err, ErrChanged, c)
		}
		_, err = s.CallFromApp(t.Context(), "s", "zanzibar", `{"s":"x"}`)
		assert.ErrorIs(t, err, c.app, c)
		want := before
		for _, err := range []error{c.model, c.app} {
			if err == nil {
				want++
			}
		}
		assert.Equal(t, want, calls.Load(), c)
		assert.NoError(t, check(m, s))
		for _, e := range changedTools(m) {
			require.NoError(t, m.Accept("s", "zanzibar", e.Is))
		}
		_, err = s.CallFromApp(t.Context(), "s", "zanzibar", `{"s":"x"}`)
		assert.NoError(t, err)
	}
}

// A state that shows a tool which is for apps only, as no session saves one, does not bring it
// before the model.
func TestSpecH5ForgedState(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	store := new(mcptest.Store)
	shown, _ := newTestManager(t, &Options{Servers: []ServerConfig{serving("s", secretTool(t, &calls, `{}`))}, TrustStore: store, Trust: TrustWarn})
	s := shown.NewSession(nil)
	turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
	state := strings.Replace(string(s.Save()), `\"_meta\":{}`, `\"_meta\":`+strings.ReplaceAll(appOnly, `"`, `\"`), 1)
	for _, servers := range [][]ServerConfig{nil, {serving("s", secretTool(t, &calls, appOnly))}} {
		m, _ := newTestManager(t, &Options{Servers: servers, TrustStore: store, Trust: TrustWarn})
		restored, changed, err := m.RestoreSession(json.RawMessage(state), nil)
		require.NoError(t, err)
		assert.Contains(t, changed, "mcp_s__zanzibar")
		assert.NotContains(t, strings.Join(toolNamesOf(restored.Tools()), " "), "zanzibar")
		_, err = restored.Call(t.Context(), "mcp_s__zanzibar", `{"s":"x"}`)
		assert.Error(t, err)
	}
	assert.Zero(t, calls.Load())
}

// A call after the end says so, of the model's and of an app's, of the session's, the user's
// and the Manager's.
func TestCallsAfterClose(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("shop", 1)}})
	u, err := m.NewUser("ann", nil)
	require.NoError(t, err)
	own, closed, open := u.NewSession(nil), m.NewSession(nil), m.NewSession(nil)
	ended := func(s *Session) {
		for _, name := range []string{"mcp_shop__tool_000", "none", SearchToolName, CallToolName} {
			r, err := s.Call(t.Context(), name, nil)
			assert.ErrorIs(t, err, ErrClosed, name)
			assert.NotErrorIs(t, err, ErrUnknownTool, name)
			assert.True(t, r.IsError)
		}
		_, err := s.CallFromApp(t.Context(), "shop", "tool_000", nil)
		assert.ErrorIs(t, err, ErrClosed)
	}
	closed.Close()
	ended(closed)
	require.NoError(t, u.Close())
	ended(own)
	_, err = open.CallFromApp(t.Context(), "shop", "tool_000", nil)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	ended(open)
}

// Whatever a server says in _meta, a tool is either in reach of the model, or not: and if what
// it says has a visibility without "model", it is not.
func FuzzAppOnly(f *testing.F) {
	for _, seed := range []string{
		appOnly, ``, `{}`, `null`, `[]`, `{"ui":{"visibility":["app"]},"anthropic/alwaysLoad":true}`, `{"UI":{"visibility":["app","model"]}}`,
		`{"ui":{"visibility":"app"}}`, `{"ui":{"visibility":[]},"mcphybrid/needs":["a"]}`, "{\"ui\":{\"visibility\":[\"\xff\"]}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, meta []byte) {
		if !json.Valid(meta) {
			return
		}
		raw := json.RawMessage(`{"name":"zanzibar","_meta":` + string(meta) + `}`)
		d, err := parseDefinition("s", raw, 1<<20)
		var read struct {
			UI struct{ Visibility []string }
		}
		names := json.Unmarshal(meta, &read) == nil && read.UI.Visibility != nil
		if err != nil {
			return // it is in no catalog
		}
		if names {
			require.Equal(t, slices.Contains(read.UI.Visibility, "model"), d.Apps.model)
			require.Equal(t, slices.Contains(read.UI.Visibility, "app"), d.Apps.app)
		}
		m := NewManager(nil)
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		d.call = func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("called"), nil
		}
		src := &source{name: "s"}
		require.NoError(t, m.publishChange(func() error {
			require.NoError(t, src.claimNames(m.names))
			require.NoError(t, src.nameTool(m.names, d))
			src.defs = []*definition{d}
			m.stageSource(src)
			return nil
		}))
		for _, s := range []*Session{m.Default(), m.NewSession(&SessionOptions{Disclosure: ByBridge})} {
			_, err = s.Call(t.Context(), "mcp_s__zanzibar", nil)
			require.Equal(t, d.Apps.model, err == nil)
			_, err = s.CallFromApp(t.Context(), "s", "zanzibar", nil)
			require.Equal(t, d.Apps.app, err == nil)
			require.Equal(t, d.Apps.model, strings.Contains(s.PromptSections(PromptFull)+fmt.Sprint(textOfTools(s.Tools()), s.Search("zanzibar", 5)), "mcp_s__zanzibar"))
		}
		require.NoError(t, check(m))
	})
}

// Servers are told of the host's extensions, over each transport and in both generations of
// the protocol.
func TestExtensions(t *testing.T) {
	t.Parallel()
	const ui = "io.modelcontextprotocol/ui"
	extensions := map[string]any{ui: map[string][]string{"mimeTypes": {"text/html;profile=mcp-app"}}}
	for _, protocol := range []string{"", "2025-11-25"} {
		var told atomic.Int32
		web := mcpserver.NewStreamableHTTPServer(mcptest.Server("h", echoTool("a", "Echoes")))
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			if strings.Contains(string(body), `"extensions":{"io.modelcontextprotocol/skills":{},"`+ui+`":{"mimeTypes":["text/html;profile=mcp-app"]}}`) {
				told.Add(1)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			web.ServeHTTP(w, r)
		})
		hooks := new(mcpserver.Hooks)
		hooks.AddAfterInitialize(func(_ context.Context, _ any, r *mcp.InitializeRequest, _ *mcp.InitializeResult) {
			assert.Contains(t, r.Params.Capabilities.Extensions, ui)
			told.Add(1)
		})
		near := mcpserver.NewMCPServer("p", "1", mcpserver.WithHooks(hooks), mcpserver.WithToolCapabilities(true))
		m, _ := newTestManager(t, &Options{Extensions: extensions, Servers: []ServerConfig{
			{Name: "h", URL: serveHTTP(t, handler, "127.0.0.1:0"), Protocol: protocol}, {Name: "p", InProcess: near, Protocol: "2025-11-25"},
		}})
		extensions[ui] = "changed"
		_, err := m.Call(t.Context(), "mcp_h__a", nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, told.Load(), int32(2))
		extensions[ui] = map[string][]string{"mimeTypes": {"text/html;profile=mcp-app"}}
	}
	assert.NotEqual(t, cacheKey(&ServerConfig{}, nil, public), cacheKey(&ServerConfig{}, extensions, public), "a server may list other tools")
	assert.PanicsWithValue(t, "mcphybrid: Options.Extensions: json: unsupported type: func()", func() {
		NewManager(&Options{Extensions: map[string]any{"x": func() {}}})
	})
}

// The pages of a user's server that has not listed its tools yet don't call the system's.
func TestSpecH5AppOfAUsersServerThatStarts(t *testing.T) {
	var system, own atomic.Int32
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{serving("s", secretTool(t, &system, appOnly))}})
	release := make(chan struct{})
	hooks := &mcpserver.Hooks{}
	hooks.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest) {
		select {
		case <-release:
		case <-ctx.Done():
		}
	})
	slow := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithHooks(hooks))
	slow.AddTools(secretTool(t, &own, appOnly))
	u, err := m.NewUser("ann", &UserOptions{Servers: []ServerConfig{{Name: "s", InProcess: slow}}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = u.Start(ctx)
	s := u.NewSession(nil)
	_, err = s.CallFromApp(t.Context(), "s", "zanzibar", `{"s":"x"}`)
	assert.Zero(t, system.Load(), "the app of the user's server called the system's: %v", err)
	close(release)
	mcptest.Soon(t, func() bool {
		_, err := s.CallFromApp(t.Context(), "s", "zanzibar", `{"s":"x"}`)
		return err == nil && own.Load() > 0
	})
}
