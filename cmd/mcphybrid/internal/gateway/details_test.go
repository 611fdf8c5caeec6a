package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The log says what a call by another tool asks for, if that can only be a name.
func TestTargetsOfCalls(t *testing.T) {
	t.Parallel()
	longest := "mcp_" + strings.Repeat("x", plain.MaxName-len("mcp_"))
	for _, test := range []struct {
		tool string
		args any
		want string
	}{
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"mcp_aZ09_-__b"}`), "mcp_aZ09_-__b"},
		{mcphybrid.ReadOnlyCallToolName, json.RawMessage(`{"name":"mcp_a__b"}`), "mcp_a__b"},
		{"mcp_a__b", json.RawMessage(`{"name":"mcp_a__b"}`), ""},
		{mcphybrid.CallToolName, map[string]any{"name": "mcp_a__b"}, ""},
		{mcphybrid.CallToolName, nil, ""},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"a__b"}`), ""},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"mcp_a b"}`), ""},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"mcp_é"}`), ""},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":5}`), ""},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"mcp_a__b"`), ""},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"` + longest + `"}`), longest},
		{mcphybrid.CallToolName, json.RawMessage(`{"name":"` + longest + `x"}`), ""},
	} {
		assert.Equal(t, test.want, request{name: test.tool, args: test.args}.target(), "%s %s", test.tool, test.args)
	}
}

// A call's queue keeps the last notifications for a client that is slow, and their order. What comes after
// the end is not for it.
func TestQueueOfACall(t *testing.T) {
	t.Parallel()
	for _, surplus := range []int{0, 1, 7} {
		synctest.Test(t, func(t *testing.T) {
			g := quiet(gatewayOptions{})
			defer g.close()
			slow := &slowSink{read: make(chan struct{})}
			g.direct = slow
			v := g.newClientCall(t.Context(), nil)
			for i := range 1 + maxQueued + surplus { // the first is being written
				v.tell("notifications/x", i)
				if i == 0 {
					synctest.Wait()
				}
			}
			ended := false
			go func() { v.end(); ended = true }()
			synctest.Wait()
			assert.False(t, ended, "the client has not all")
			v.tell("notifications/x", "late")
			close(slow.read)
			synctest.Wait()
			assert.True(t, ended)
			require.Len(t, slow.got, 1+maxQueued)
			assert.Equal(t, 0, slow.got[0])
			for i, got := range slow.got[1:] {
				require.Equal(t, 1+surplus+i, got)
			}
		})
	}
}

// A slowSink takes nothing until it is read.
type slowSink struct {
	read chan struct{}
	got  []any
}

func (s *slowSink) Notify(_ string, params any) bool {
	<-s.read
	s.got = append(s.got, params)
	return true
}

// A client's own error is told in our words, but for one that says that the question is over.
func TestErrorsOfAnswers(t *testing.T) {
	t.Parallel()
	answer := new(int)
	for err, want := range map[error]error{
		nil: nil, context.Canceled: context.Canceled, context.DeadlineExceeded: context.DeadlineExceeded, errors.New("hunter2"): errNoAnswer,
	} {
		for _, err := range []error{err, fmt.Errorf("hunter2: %w", err)} {
			if want == nil {
				err = nil
			}
			got, failed := ours(answer, err)
			assert.Equal(t, want, failed)
			assert.Equal(t, want == nil, got == answer)
		}
	}
}

// A start's error is logged unless the log has it as the state of its server.
func TestErrorsThatNoStateTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		book := new(mcptest.Log)
		answers := make(chan struct{})
		g := newGateway(gatewayOptions{logLevel: mcp.LoggingLevelInfo, servers: []mcphybrid.ServerConfig{{Name: "ready", InProcess: mcptest.Server("ready", mcptest.Echo("one", "The first"))}, slowServer("slow", answers), {Name: "gone", Command: "no-such-program-anywhere"}},
			log: slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key != slog.MessageKey {
					return slog.Attr{}
				}
				return a
			}}))})
		synctest.Wait()
		said := len(book.String())
		g.logUntold(nil)
		for _, name := range []string{"ready", "slow", "gone", "other"} {
			g.logUntold(fmt.Errorf("mcphybrid: server %q: no", name))
		}
		g.logUntold(errors.Join(errors.New(`mcphybrid: server "gone": one`), errors.New(`mcphybrid: server "slow": two`), errors.New("three")))
		assert.Equal(t, `msg="mcphybrid: server \"slow\": no"`+"\n"+`msg="mcphybrid: server \"other\": no"`+"\n"+`msg="mcphybrid: server \"slow\": two"`+"\nmsg=three\n", book.String()[said:])
		close(answers)
		<-g.all.Done()
		synctest.Wait()
		g.close()
	})
}

// Who operates the gateway learns where its servers and logins come from.
func TestGuideOfTheGateway(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, debug.Guide{Program: "the gateway", File: filepath.Join(here, "mcp.json"), Watched: true}, guideOf(servers.Sources{Config: "mcp.json"}))
	assert.Equal(t, debug.Guide{Program: "the gateway", File: "/etc/my mcp.json", Watched: true, Login: "mcphybrid login -config '/etc/my mcp.json' -tokens " + filepath.Join(here, "tokens")},
		guideOf(servers.Sources{Config: "/etc/my mcp.json", Logins: "tokens"}))
}

// A stream takes the notices of the client whose it is, if there is one.
func TestStreamsThatTakeNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{})
		defer g.close()
		c := g.open("there")
		c.Begin()
		for _, test := range []struct {
			method, id string
			events     bool
			says       string
		}{
			{http.MethodGet, "there", true, "notifications/x"}, {http.MethodGet, "gone", true, ""}, {http.MethodGet, "", true, ""},
			{http.MethodPost, "there", true, ""}, {http.MethodGet, "there", false, ""},
		} {
			h := g.withNotices(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", "text/event-stream")
				out.WriteHeader(http.StatusOK)
				c.Tell("notifications/x")
				synctest.Wait()
			}))
			if test.events {
				h = wire.WithEvents(time.Minute, h)
			}
			out, r := httptest.NewRecorder(), httptest.NewRequest(test.method, "/mcp", nil)
			r.Header.Set(server.HeaderKeySessionID, test.id)
			h.ServeHTTP(out, r)
			assert.Equal(t, test.says != "", strings.Contains(out.Body.String(), "notifications/x"), test)
		}
	})
}

// The folder of the cache must be one.
func TestCacheFolderThatIsNone(t *testing.T) {
	t.Parallel()
	blocked := writeSecret(t, "")
	_, err := cacheFile(filepath.Join(blocked, "mcphybrid"), "mcp.json")
	assert.ErrorContains(t, err, "mkdir ")
	folder := t.TempDir()
	relative, err := cacheFile(folder, "mcp.json")
	require.NoError(t, err)
	whole, err := cacheFile(folder, absolute("mcp.json"))
	require.NoError(t, err)
	assert.Equal(t, whole, relative, "it is one configuration")
}

// A gateway refuses itself, and no other that mentions it.
func TestGatewaysThatMentionAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{})
		defer g.close()
		for instance, refused := range map[string]bool{g.instance: true, "another": false, "": false} {
			c := newNewcomer(t, g, "one"+instance)
			hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"extensions":{%q:{"instance":%q}}},"clientInfo":{"name":%q,"version":"1"}}}`,
				upstream.GatewayExtension, instance, "a friend of "+g.instance)
			answer, err := json.Marshal(g.front.HandleMessage(c.ctx, json.RawMessage(hello)))
			require.NoError(t, err)
			assert.Equal(t, refused, bytes.Contains(answer, []byte(errItself.Error())), "%s", answer)
		}
	})
}

// Patterns of tokens that match nothing are told once the servers have started.
func TestIdlePatternsAreTold(t *testing.T) {
	t.Parallel()
	book := new(logBook)
	_, _, end := startHTTP(t, gatewayOptions{log: book.logger(), servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: mcptest.Server("s", mcptest.Echo("one", "The first"))}}},
		web.Options{TokenFile: writeSecret(t, `{"tokens": [{"name": "ann", "token": "a", "deny": ["mispelled"]}, {"name": "bob", "token": "b", "allow": ["s/*"]}]}`)})
	mcptest.Soon(t, func() bool { return strings.Contains(book.String(), "mispelled") })
	end()
	assert.Equal(t, 1, strings.Count(book.String(), "mispelled"))
	assert.Contains(t, book.String(), `"user":"ann"`)
	assert.NotContains(t, book.String(), `"user":"bob"`)
}

// A client that never lists again has no tools that search once all servers are ready.
func TestToolsOfAClientThatListsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{wait: defaultWait, servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: mcptest.Server("s", mcptest.Echo("one", "The first"))}}})
		defer g.close()
		<-g.all.Done()
		_, tools := greeted(t, g, listsOnce[0])
		assert.Equal(t, []string{"mcp_s__one", mcphybrid.PageToolName}, tools)
	})
}

// Schemas that are no objects stay as they are.
func TestSchemasThatAreNoObjects(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"null", "[]", "5", `"x"`, "", "{"} {
		assert.Equal(t, schema, string(objectSchema(json.RawMessage(schema))))
	}
	assert.Equal(t, `{"type":"object"}`, string(objectSchema(json.RawMessage("{}"))))
}

// A file without servers ends all.
func TestEmptiedFile(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteFile(t, "mcp.json", file(`"a": `+remote(t, mcptest.Echo("a", "A"))))
	g, book, look := reloading(t, path)
	require.Len(t, states(g), 1)
	commandtest.ReplaceFile(t, path, file(""))
	look()
	assert.Empty(t, states(g))
	assert.Contains(t, book.String(), "added=[] removed=[a] changed=[]")
}

// A change of a server whose turn has not come is overtaken by the next one, which does not wait for its start.
func TestChangesOvertakeEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nap := server.ServerTool{Tool: mcp.NewTool("nap"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(time.Second)
			return mcp.NewToolResultText("napped"), nil
		}}
		const slow = 20 * time.Second
		first, third := mcptest.Server("s", nap), mcptest.Server("s", saying("who", "the third"))
		g := quiet(gatewayOptions{wait: defaultWait, grace: time.Minute, servers: []mcphybrid.ServerConfig{{Name: "s", InProcess: first}}})
		defer time.Sleep(slow) // until the second has answered
		defer g.close()
		c := newNewcomer(t, g, "one")
		c.say(ping)
		c.say(initialized)
		from := &source{problems: make(map[string]bool), notes: make(map[string]bool), changes: make(map[string]*change)}
		begun := time.Now()
		said := make(chan string, 1)
		go func() {
			said <- c.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mcp_s__nap"}}`).text()
		}()
		synctest.Wait()
		for _, next := range []mcphybrid.ServerConfig{slowServer("s", after(slow), saying("who", "the second")), {Name: "s", InProcess: third}} {
			from.apply(g, []mcphybrid.ServerConfig{next})
			synctest.Wait()
		}
		assert.Equal(t, "napped", <-said)
		synctest.Wait()
		assert.Equal(t, "the third", c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"mcp_s__who"}}`).text())
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

// Who waits for a server that is replaced once more while it starts goes on to wait.
func TestCallsWaitForTheLastChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const soon, slow = 2 * time.Second, 20 * time.Second
		g := quiet(gatewayOptions{wait: defaultWait, grace: time.Minute})
		defer time.Sleep(slow) // until the second has answered
		defer g.close()
		c := newNewcomer(t, g, "one")
		c.say(ping)
		c.say(initialized)
		from := &source{problems: make(map[string]bool), notes: make(map[string]bool), changes: make(map[string]*change)}
		begun := time.Now()
		from.apply(g, []mcphybrid.ServerConfig{slowServer("s", after(slow), saying("who", "the second"))})
		synctest.Wait()
		said := make(chan string, 1)
		go func() {
			said <- c.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mcp_s__who"}}`).text()
		}()
		time.Sleep(soon)
		from.apply(g, []mcphybrid.ServerConfig{slowServer("s", after(soon), saying("who", "the third"))})
		assert.Equal(t, "the third", <-said)
		assert.Equal(t, 2*soon, time.Since(begun))
		for range 2 {
			assert.Contains(t, c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"mcp_s__none"}}`).text(), "There is no tool")
			from.apply(g, nil)
			synctest.Wait()
		}
		assert.Equal(t, 2*soon, time.Since(begun), "nothing comes any more")
		assert.Empty(t, g.starts.all())
	})
}

// Whom a server's messages may be about, after any calls, ends and departures: by the definition, those calls of the
// only client or holder that the server has ever worked for.
func TestAddresseesAgainstTheDefinition(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(5, 6))
	addressed := 0
	for range 400 {
		b := newCallBook([]mcphybrid.ServerConfig{{Name: "s"}})
		holder := &tokens.Holder{Name: "ann"}
		clients := []*conversation{{id: "1"}, {id: "2", of: &tokens.Holder{}}, {id: "3", of: holder}, {id: "4", of: holder}, {of: holder}, {}}
		clients = clients[dice.IntN(5):][:1+dice.IntN(2)]
		type call struct {
			*clientCall
			end  func()
			over bool
		}
		var all []*call
		gone := make(map[*conversation]bool)
		for range 12 {
			c := clients[dice.IntN(len(clients))]
			switch k := dice.IntN(5); {
			case k < 2 && !gone[c]:
				v := &clientCall{from: c}
				all = append(all, &call{clientCall: v, end: b.begin("s", v)})
			case k < 4 && len(all) > 0:
				one := all[dice.IntN(len(all))]
				if one.over = true; !gone[one.from] || one.from.id != "" {
					one.end()
				}
				gone[one.from] = gone[one.from] || one.from.id == ""
			case k == 4 && dice.IntN(3) == 0:
				b.gone(c)
				gone[c] = true
			}
			var want []*clientCall
			var last *conversation
			several := false
			for _, v := range all {
				several = several || principal(v.from) != principal(all[0].from) || principal(v.from) == any(v.from) && gone[v.from]
				if last = v.from; !v.over && !gone[v.from] && !slices.ContainsFunc(want, func(other *clientCall) bool { return other.from == v.from }) {
					want = append(want, v.clientCall)
				}
			}
			if gone[last] || several {
				last = nil
			}
			if several {
				want = nil
			}
			calls, to := b.addressees("s")
			require.Equal(t, want, calls)
			require.Same(t, last, to)
			addressed += len(calls)
		}
	}
	assert.Greater(t, addressed, 500)
}

// A client that listens by a request is told what it asked for, and nothing waits for one that reads no more.
func TestListenersAreToldWhatTheyAskedFor(t *testing.T) {
	t.Parallel()
	methods := []string{mcp.MethodNotificationToolsListChanged, mcp.MethodNotificationResourcesListChanged, mcp.MethodNotificationPromptsListChanged}
	for i, asked := range []mcp.SubscriptionFilter{{ToolsListChanged: true}, {ResourcesListChanged: true}, {PromptsListChanged: true}, {}} {
		l := &listening{ClientSession: server.NewInProcessSession("one", nil), filter: asked, told: make(chan mcp.JSONRPCNotification, 2)}
		for range 3 {
			for _, method := range methods {
				tellListener(l, method)
			}
		}
		if i == len(methods) {
			assert.Empty(t, l.told)
			continue
		}
		require.Len(t, l.told, 2, "as many as it can have")
		assert.Equal(t, methods[i], (<-l.told).Method)
		assert.Equal(t, methods[i], (<-l.told).Method)
	}
}

// A listening is a client that listens by a request.
type listening struct {
	server.ClientSession
	filter mcp.SubscriptionFilter
	told   chan mcp.JSONRPCNotification
}

func (l *listening) SetSubscriptionFilter(filter mcp.SubscriptionFilter) { l.filter = filter }
func (l *listening) SubscriptionFilter() (filter mcp.SubscriptionFilter, is bool) {
	return l.filter, true
}
func (l *listening) NotificationChannel() chan<- mcp.JSONRPCNotification { return l.told }

// A client of an older protocol is asked nothing until it says that it is ready.
func TestNobodyIsAskedTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := quiet(gatewayOptions{})
		defer g.close()
		c := newNewcomer(t, g, "one")
		c.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + hello + `}`)
		assert.Equal(t, mcp.ClientCapabilities{}, g.capabilities(c.ctx))
		c.say(initialized)
		can := g.capabilities(c.ctx)
		assert.True(t, can.Elicitation != nil && can.Sampling != nil && can.Roots != nil)
		assert.Equal(t, mcp.ClientCapabilities{}, g.capabilities(t.Context()), "of nobody")
	})
}

// A client that follows is told of its tools once until it lists them again. A tool that answers although it
// is told to end has its answer told.
func TestStoryOfAFollower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := begins(t, gatewayOptions{servers: []mcphybrid.ServerConfig{{Name: "chores", InProcess: mcptest.Server("chores", mcptest.Chores("chores", 45)...)}, libraryOf("library", library())}, logCalls: true, grace: time.Second, follow: []string{"dan", "ann"}})
		require.NoError(t, s.g.mgr.AddTools("mule", server.ServerTool{Tool: mcp.NewTool("stubborn", mcp.WithDescription("Ends late")), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return mcp.NewToolResultText("all the same"), nil
		}}))
		s.step("a tool comes")
		c := s.joins("ann", "", nil)
		search := func(id int, query string) {
			c.say(id, fmt.Sprintf(`tools/call {"name":"mcp_tool_search","arguments":{"query":%q}}`, query))
		}
		c.say(10, "tools/list {}")
		search(20, "chore 43")
		search(21, "chore 42")
		c.say(30, "tools/list {}")
		search(40, "chore 41")
		c.say(50, "tools/list {}", `tools/call {"name":"mcp_library__long","arguments":{}}`, `tools/call {"name":"mcp_library__long","arguments":{}}`, "tools/list {}", `tools/call {"name":"mcp_library__long","arguments":{}}`)
		c.say(60, `tools/call {"name":"mcp_mule__stubborn","arguments":{}}`, `resources/subscribe {"uri":"mem://none"}`, `resources/subscribe {"uri":"mem://none"}`)
		go s.g.drain()
		s.step("the gateway is told to end")
		time.Sleep(time.Second)
		s.step("the grace later")
		s.end("story-follower", "A client that follows is told of its tools once until it lists them again.")
	})
}
