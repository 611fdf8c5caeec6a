package debug_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failing returns a tool that answers with an error.
func failing(name, says string) mcpserver.ServerTool {
	return mcpserver.ServerTool{Tool: mcp.NewTool(name), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError(says), nil
	}}
}

// What is wrong is on top, with since when and what mends it, and no tile says that all is
// well.
func TestPageAttention(t *testing.T) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Limits: config.Limits{Reconnect: -1}, Servers: []mcphybrid.ServerConfig{
		{Name: "one", Command: "no-such-program"}, inProcess("a", 2), {Name: "two", URL: "http://127.0.0.1:1/"},
	}, Pins: []string{"mcp_a__mistyped"}})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()))
	text := pageText(t, debug.Handler(mgr), "")
	assert.Regexp(t, `Needs attention Server one is down since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC , \S+\s\S+ ago program not found: no-such-program .*mgr.Restart\(ctx, "one"\) All it said exec: .* Server two is down since .*mistyped.* need attention 3 servers ready 1 of 3`, text)
	assert.NotContains(t, text, "Nothing.")
	assert.NotContains(t, ask(debug.Handler(mgr), "").Body.String(), "<button", "these pages only show")
	assert.NotContains(t, ask(debug.Handler(mgr), "").Body.String(), ">users</a>", "there are none")
	u, err := mgr.NewUser("ann", &mcphybrid.UserOptions{Servers: []mcphybrid.ServerConfig{{Name: "hers", Command: "no-such-program"}}})
	require.NoError(t, err)
	require.Error(t, u.Start(t.Context()))
	text = pageText(t, debug.Operator(mgr), "view=attention")
	assert.Contains(t, text, `Server hers of user ann is down since `)
	assert.Contains(t, text, `user.Restart(ctx, "hers")`)
	assert.Equal(t, 2, strings.Count(ask(debug.Operator(mgr), "view=attention").Body.String(), "<button"), "a user's servers are mended on the user's pages")
	assert.Contains(t, ask(debug.Handler(mgr), "").Body.String(), ">users</a>")
	assert.Contains(t, pageText(t, debug.Handler(mgr), "view=users"), "ann hers down ")
	hers := pageText(t, debug.Operator(u), "")
	assert.Contains(t, hers, "Server hers is down")
	assert.NotContains(t, hers, "Server one")
	well := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 2)}})
	assert.Contains(t, pageText(t, debug.Handler(well), ""), "Needs attention Nothing. need attention 0 ")
}

func TestPageAttentionIsBounded(t *testing.T) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Limits: config.Limits{Reconnect: -1}})
	defer mgr.Close()
	var servers []mcphybrid.ServerConfig
	for i := range 150 {
		servers = append(servers, mcphybrid.ServerConfig{Name: fmt.Sprintf("s%03d", i), Command: "no-such-program"})
	}
	u, err := mgr.NewUser("ann", &mcphybrid.UserOptions{Servers: servers})
	require.NoError(t, err)
	require.Error(t, u.Start(t.Context()))
	text := pageText(t, debug.Handler(mgr), "")
	assert.Contains(t, text, "and 142 more need attention 150 ")
	assert.NotContains(t, text, "s008")
	assert.Contains(t, pageText(t, debug.Handler(mgr), "view=attention&page=2"), "101 to 150 of 150")

	hers := debug.Operator(u)
	button := "do=restart&of=s120&page=2&view=attention"
	assert.Contains(t, ask(hers, "view=attention&page=2").Body.String(), `action="?`+strings.ReplaceAll(button, "&", "&amp;")+`"`)
	assert.Equal(t, "?page=2&view=attention", post(hers, button, nil).Header().Get("Location"), "back to this page")
}

// A tool that is new is not taken for one that exceeds a limit.
func TestPageNewTool(t *testing.T) {
	git := serving("git", echoTool("log", "Shows the history"))
	mgr := start(t, &mcphybrid.Options{Trust: mcphybrid.TrustApprove, Servers: []mcphybrid.ServerConfig{git}})
	h := debug.Handler(mgr)
	git.InProcess.(*mcpserver.MCPServer).AddTools(echoTool("push", "Sends commits"))
	soon(t, func() bool { return len(changedTools(mgr)) == 1 })
	assert.Contains(t, pageText(t, h, "view=tools"), "mcp_git__push git quarantined it is new, and nobody has accepted it")
	assert.Contains(t, pageText(t, h, "view=why&name=push"), "It is held back until somebody accepts it: it is new, and nobody has accepted it.")
	assert.Contains(t, pageText(t, h, "view=attention"), "New tool push of server git")
}

// Servers of the same name are told apart by whose they are, and what only a user can do
// is no button of the system's.
func TestPageWhoseServer(t *testing.T) {
	down := func(s *mcphybrid.Session, servers func() []mcphybrid.ServerStatus) {
		for _, tool := range s.Tools() {
			if strings.HasSuffix(tool.Name(), "exit") {
				_, err := s.Call(t.Context(), tool.Name(), nil)
				require.Error(t, err)
			}
		}
		soon(t, func() bool {
			return slices.ContainsFunc(servers(), func(st mcphybrid.ServerStatus) bool { return st.State == mcphybrid.StateDown })
		})
	}
	mgr := start(t, &mcphybrid.Options{
		Trust: mcphybrid.TrustQuarantine, Limits: config.Limits{Reconnect: -1},
		Servers: []mcphybrid.ServerConfig{child(t, "mortal", "exits"), serving("git", echoTool("log", "Shows the history"))},
	})
	down(mgr.Default(), mgr.Servers)
	h := debug.Operator(mgr)
	mine := serving("mine", echoTool("push", "Sends commits"))
	ann, err := mgr.NewUser("ann", &mcphybrid.UserOptions{Servers: []mcphybrid.ServerConfig{serving("mortal", echoTool("wake", "Wakes")), child(t, "git", "exits"), mine}})
	require.NoError(t, err)
	require.NoError(t, ann.Start(t.Context()))
	down(ann.Default(), ann.Servers)
	bob, err := mgr.NewUser("bob", &mcphybrid.UserOptions{Servers: []mcphybrid.ServerConfig{{Name: "his", Command: "no-such-program"}}})
	require.NoError(t, err)
	require.Error(t, bob.Start(t.Context()))
	hers, his := ann.NewSession(nil), bob.NewSession(nil)

	assert.NotContains(t, pageText(t, h, "view=why&name=nothing"), "Server his")
	assert.NotContains(t, pageText(t, h, "view=why&name=nothing&session=1"), "Server his")
	assert.Contains(t, pageText(t, h, "view=why&name=nothing&session=2"), "Server his of user bob is down and has not listed its tools")
	for _, c := range []struct {
		pages http.Handler
		name  string
		fails string
	}{
		{h, "wake&session=1", ""}, {h, "exit", "mortal is down"}, {h, "log&session=1", ""}, {h, "git__exit&session=1", "git of user ann is down"},
		{debug.Handler(ann), "log", ""}, {debug.Handler(ann), "git__exit", "git is down"},
	} {
		text := pageText(t, c.pages, "view=why&name="+c.name)
		if c.fails == "" {
			assert.NotContains(t, text, "A call will fail.", c.name)
		} else {
			assert.Contains(t, text, "A call will fail. Server "+c.fails, c.name)
		}
	}

	mine.InProcess.(*mcpserver.MCPServer).AddTools(echoTool("push", "Sends all files"))
	soon(t, func() bool { return len(ann.Problems()) == 1 })
	text := pageText(t, h, "view=attention&session=1")
	assert.Contains(t, text, "Changed tool push of server mine of user ann")
	assert.Contains(t, text, `user.Accept("mine", "push", `)
	const tool = "view=tool&name=mcp_mine__push"
	assert.Contains(t, pageText(t, h, tool+"&session=1"), `user.Accept("mine", "push", `)
	assert.NotContains(t, ask(h, tool+"&session=1").Body.String(), "do=accept", "the Manager can't")
	assert.Contains(t, ask(debug.Operator(ann), tool).Body.String(), "do=accept")
	runtime.KeepAlive([]any{hers, his})
}

// The last calls are there with their errors, conversations and users, also of sessions
// that are over.
func TestPageCalls(t *testing.T) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 3), serving("git", failing("push", "<b>denied</b>: no key\u202e"))}})
	defer mgr.Close()
	h := debug.Handler(mgr)
	require.NoError(t, mgr.Start(t.Context()))
	soon(t, func() bool { // else word of a server that is ready may come between the calls
		snap, err := mgr.Snapshot(0)
		require.NoError(t, err)
		ready := slices.DeleteFunc(snap.Events(), func(e snapshot.Event) bool { return e.State != string(mcphybrid.StateReady) })
		return len(ready) == 2
	})
	assert.NotContains(t, pageText(t, h, "view=calls"), "tool_001")
	s := mgr.NewSession(&mcphybrid.SessionOptions{Label: "ticket 7"})
	over := mgr.NewSession(&mcphybrid.SessionOptions{Label: "ticket 8"})
	u, err := mgr.NewUser("ann", nil)
	require.NoError(t, err)
	hers := u.NewSession(nil)
	for _, c := range []struct {
		s    *mcphybrid.Session
		name string
	}{{s, "mcp_a__tool_001"}, {s, "mcp_git__push"}, {over, "mcp_a__no_such"}, {hers, "mcp_a__tool_002"}} {
		_, _ = c.s.Call(t.Context(), c.name, nil)
	}
	over.Close()
	text := pageText(t, h, "view=calls")
	assert.Regexp(t, `call mcp_a__tool_002 session 3 user ann a .* call mcp_a__no_such session 2 ticket 8 \d.* unknown tool: "mcp_a__no_such" call mcp_git__push session 1 ticket 7 git .* <b>denied</b>: no key call mcp_a__tool_001 session 1 ticket 7 a `, text)
	of := pageText(t, h, "view=calls&session=2")
	assert.Contains(t, of, "mcp_a__no_such")
	assert.NotContains(t, of, "tool_001")
	failures := pageText(t, h, "view=calls&failed=1")
	assert.Contains(t, failures, "mcp_git__push")
	assert.NotContains(t, failures, "tool_001")
	assert.NotContains(t, pageText(t, h, "view=calls&server=git"), "tool_001")
	assert.Regexp(t, `None of the \d+ that are kept\.`, pageText(t, h, "view=calls&server=none"))
	assert.Regexp(t, `session 3 user ann .*session 1 ticket 7 `, pageText(t, h, "view=sessions"))
	assert.Contains(t, pageText(t, h, "view=session&session=3"), "User ann.")
	assert.NotContains(t, pageText(t, debug.Handler(u), "view=calls"), "tool_001", "a user's pages are of the user")
	runtime.KeepAlive([]any{s, hers})
}

// Each case of a tool that the model does not have is told apart.
func TestPageWhyNot(t *testing.T) {
	var many []mcpserver.ServerTool
	for i := range 40 {
		many = append(many, echoTool(fmt.Sprintf("update_record_%02d", i), fmt.Sprintf("Updates record %d, with all fields that are given", i)))
	}
	git := serving("git", echoTool("log", "Shows the history"), echoTool("push", "Sends commits"), echoTool("zebra", "Finds each zebra"))
	crm := serving("crm", many...)
	crm.Tools = mcphybrid.Access{Deny: []string{"*_39"}}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Inline: mcphybrid.InlineOptions{Max: 1}, Trust: mcphybrid.TrustQuarantine, Limits: config.Limits{Reconnect: -1}, Access: mcphybrid.Access{Deny: []string{"*_38"}},
		Servers: []mcphybrid.ServerConfig{crm, git, {Name: "gone", Command: "no-such-program"}},
		Rules:   []mcphybrid.Rule{{Name: "no logs", Patterns: []string{"log"}, Action: mcphybrid.RuleExclude}, {Name: "only zebras", Intent: "zoo", Patterns: []string{"zebra"}, Action: mcphybrid.RuleInclude}},
	})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()))
	h := debug.Handler(mgr)
	narrow := mgr.NewSession(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{"crm/*_05"}}})
	zoo := mgr.NewSession(&mcphybrid.SessionOptions{Intent: "zoo"})
	mgr.ActivateTools([]string{"mcp_crm__update_record_30"})
	git.InProcess.(*mcpserver.MCPServer).AddTools(echoTool("push", "Sends all files"))
	soon(t, func() bool { return len(changedTools(mgr)) == 1 })
	for _, c := range []struct{ name, query, session, want string }{
		{"mcp_crm__update_record_05", "", "1", `hidden The session can neither find nor call it: an access list does not permit it: it denies "crm/*_05".`},
		{"mcp_git__log", "", "", `hidden The session can neither find nor call it: rule "no logs" excludes it.`},
		{"mcp_crm__update_record_05", "", "2", `rules include only other tools: "only zebras".`},
		{"push", "", "", `quarantined It is held back until somebody accepts it: its definition has changed.`},
		{"mcp_crm__update_record_00", "update", "", "inline The model has it from the start, so a search leaves it out: there is room."},
		{"mcp_crm__update_record_30", "update", "", "active The model has it, so a search leaves it out: it is active, last used in turn 0."},
		{"mcp_crm__update_record_20", "zebra record", "", `deferred A search does not find it: its score of 0\.\d+ is below the threshold of 0\.\d+\. Words of the query score 0\.\d+ at least 0\.\d+ is found missing zebra field`},
		{"mcp_crm__update_record_20", "send a parcel", "", "A search does not find it: none of the query's words is in its texts. Words of the query score 0.000 .*missing send, parcel"},
		{"mcp_crm__update_record_20", "update a record", "", `A search does not find it: it finds 5 tools, and the last of them, mcp_crm__update_record_\d\d, scores \d`},
		{"mcp_crm__update_record_20", "the of", "", "the query has no word to search for"},
		{"zebra", "find a zebra", "", "A search finds it: it is number 1 of 1."},
		{"zebra", "", "", "deferred It is deferred, since 1 tool before it is inline: the model has it once a search finds it."},
		{"mcp_crm__update_record_39", "", "", `The catalog has no such tool. ServerConfig.Tools of server "crm" does not permit it: it denies "*_39".`},
		{"mcp_crm__update_record_38", "", "", `Options.Access does not permit it: it denies "*_38".`},
		{"mcp_gone__query", "", "", `The catalog has no such tool. Server gone is down and has not listed its tools: program not found: no-such-program`},
		{"mcp_crm__update_rekord", "", "", `Unknown tool: "mcp_crm__update_rekord"`},
		{"update_record", "", "", "38 tools have that in their names. Which one do you mean?"},
	} {
		want := c.want
		if !strings.Contains(want, `\`) && !strings.Contains(want, ".*") {
			want = regexp.QuoteMeta(want)
		}
		query := url.Values{"view": {"why"}, "name": {c.name}, "q": {c.query}, "session": {c.session}}
		assert.Regexp(t, want, pageText(t, h, query.Encode()), c.name+" "+c.query)
	}
	runtime.KeepAlive([]any{narrow, zoo})
}

// A limit of hits from one server is told apart from better hits.
func TestPageWhyNotOfOneServer(t *testing.T) {
	var many []mcpserver.ServerTool
	for i := range 9 {
		many = append(many, echoTool(fmt.Sprintf("update_record_%02d", i), "Updates a record"))
	}
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Search: mcphybrid.RankingOptions{Results: 4, ServerLimit: 2}, Servers: []mcphybrid.ServerConfig{serving("crm", many...)}})
	assert.Contains(t, pageText(t, debug.Handler(mgr), "view=why&name=mcp_crm__update_record_03&q=update+a+record"), "other tools of its server match better, and the number of hits from one server is limited.")
}

// post presses a button.
func post(h http.Handler, query string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/debug?"+query, nil)
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Buttons act for the page's own site only, lead back, and say what came of it.
func TestPageButtons(t *testing.T) {
	git := serving("git", echoTool("push", "Sends commits"))
	mgr := start(t, &mcphybrid.Options{Trust: mcphybrid.TrustQuarantine, Limits: config.Limits{Reconnect: -1}, Servers: []mcphybrid.ServerConfig{child(t, "mortal", "exits"), git}})
	h := debug.Operator(mgr)
	_, err := mgr.Call(t.Context(), "mcp_mortal__exit", nil)
	require.Error(t, err)
	soon(t, func() bool { return mgr.Servers()[0].State == mcphybrid.StateDown })
	restart := "do=restart&of=mortal&view=attention"
	assert.Contains(t, ask(h, "view=attention").Body.String(), `action="?do=restart&amp;of=mortal&amp;view=attention"`)
	for _, foreign := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example"}}, {"Origin": {"null"}}} {
		assert.Equal(t, http.StatusForbidden, post(h, restart, foreign).Code, foreign)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, post(debug.Handler(mgr), restart, nil).Code, "those pages only show")
	assert.Equal(t, http.StatusOK, ask(h, restart).Code, "a GET does nothing")
	assert.Equal(t, mcphybrid.StateDown, mgr.Servers()[0].State)

	own := http.Header{"Sec-Fetch-Site": {"same-origin"}}
	w := post(h, restart+"&session=0", own)
	assert.Equal(t, http.StatusSeeOther, w.Code)
	assert.Equal(t, "?view=attention", w.Header().Get("Location"), "a reload does not do it again")
	soon(t, func() bool { return strings.Contains(pageText(t, h, ""), "Restart of server mortal is done") }) // the answer does not wait for a slow child
	assert.Equal(t, mcphybrid.StateReady, mgr.Servers()[0].State)

	git.InProcess.(*mcpserver.MCPServer).AddTools(echoTool("push", "Sends all files"))
	soon(t, func() bool { return len(changedTools(mgr)) == 1 })
	body := ask(h, "view=tool&name=mcp_git__push").Body.String()
	action := regexp.MustCompile(`action="\?(do=accept[^"]*)"`).FindStringSubmatch(body)
	require.NotNil(t, action, "its button is below what it says")
	assert.Less(t, strings.Index(body, "Sends all files"), strings.Index(body, "Accept this definition"))
	accept := strings.ReplaceAll(action[1], "&amp;", "&")
	post(h, strings.Replace(accept, "hash=", "hash=0", 1), own)
	assert.Len(t, changedTools(mgr), 1, "that is not the one that was read")
	assert.Contains(t, pageText(t, h, ""), "Accepting push of server git failed: the definition of tool ")
	post(h, accept, own)
	assert.Empty(t, changedTools(mgr))
	assert.Len(t, mgr.InlineTools(), 2)

	post(h, "do=login&of=git", own)
	assert.Contains(t, pageText(t, h, ""), "Login to server git failed: it has no URL")
	for i := range 20 {
		post(h, fmt.Sprintf("do=restart&of=none%02d", i), own)
	}
	text := pageText(t, h, "")
	assert.Equal(t, 5, strings.Count(text, "failed: "), "the last ones")
	for _, query := range []string{"", "do=remove&of=git", "do=", "view=calls"} {
		assert.Equal(t, http.StatusBadRequest, post(h, query, own).Code, query)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "http://localhost/?"+restart, nil))
		return w.Code
	}())
}

// An open page is sent whenever it has changed, and the stream ends with the reader or
// the Manager.
func TestPageIsLive(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 3)}})
	srv := httptest.NewServer(debug.Handler(mgr))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func() *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/?view=calls&live=1", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		return resp
	}
	resp := open()
	defer resp.Body.Close()
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	assert.Equal(t, "no", resp.Header.Get("X-Accel-Buffering"), "proxies pass each page on at once")
	assert.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'none'")
	lines := bufio.NewReader(resp.Body)
	next := func() string {
		var page strings.Builder
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			switch text, ok := strings.CutPrefix(line, "data: "); {
			case ok:
				page.WriteString(text)
			case line == "\n" && page.Len() > 0:
				text, err := readPage(page.String())
				require.NoError(t, err)
				return text
			}
		}
	}
	assert.NotContains(t, next(), "tool_001")
	_, err := mgr.Call(t.Context(), "mcp_a__tool_001", json.RawMessage(`{"text":"x"}`))
	require.NoError(t, err)
	for !strings.Contains(next(), "mcp_a__tool_001") {
	}

	var others []*http.Response
	for range 40 {
		others = append(others, open())
	}
	refused := 0
	for _, other := range others {
		if other.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	assert.Equal(t, 9, refused, "32 are live")
	cancel()
	for _, other := range others {
		other.Body.Close()
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	soon(t, func() bool { // the streams of readers who have gone end
		resp := open()
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	last := open()
	defer last.Body.Close()
	require.NoError(t, mgr.Close())
	lines = bufio.NewReader(last.Body)
	for {
		if _, err := lines.ReadString('\n'); err != nil {
			assert.Equal(t, "EOF", err.Error(), "the stream ends")
			break
		}
	}
}

// The stream of a page that is gone ends with the Manager too.
func TestPageIsLiveUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr := mcphybrid.NewManager(nil)
		h := debug.Handler(mgr)
		s := mgr.NewSession(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := false
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/?view=session&session=1&live=1", nil))
			ended = true
		}()
		synctest.Wait()
		s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.False(t, ended, "a page that says why is live too")
		require.NoError(t, mgr.Close())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.True(t, ended)
	})
}

// A page stays live while nothing happens, and a reader who stops reading loses it.
func TestPageIsLiveForReaders(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { liveForReaders(t, version) })
		})
	}
}

func liveForReaders(t *testing.T, version int) {
	mgr := mcphybrid.NewManager(nil)
	h := debug.Handler(mgr)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == 1)
	protocols.SetUnencryptedHTTP2(version == 2)
	var ended atomic.Bool
	srv := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended.Store(true)
	})}
	conns := make(pipes)
	go func() { _ = srv.Serve(conns) }()
	client := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		conns <- there
		return here, nil
	}}
	resp, err := (&http.Client{Transport: client}).Get("http://localhost/?view=tools&live=1")
	require.NoError(t, err)
	assert.Equal(t, version, resp.ProtoMajor)
	lines := bufio.NewReader(resp.Body)
	for idle := 0; idle < 5; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if line == ":\n" {
			idle++
		}
	}
	assert.False(t, ended.Load())
	if version == 1 { // a client of HTTP/2 reads 4 MB ahead
		for i := range 20 {
			require.NoError(t, mgr.AddTools(fmt.Sprintf("group%d", i), echoTool("tool", "Does a chore")))
			time.Sleep(2 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.True(t, ended.Load())
	}
	_ = resp.Body.Close()
	client.CloseIdleConnections()
	require.NoError(t, srv.Close())
	require.NoError(t, mgr.Close())
}

// pipes is a listener for connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// What happens while pages are read is not lost, and buttons may be pressed at once.
func TestPageConcurrently(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 10), inProcess("b", 3)}})
	h := debug.Operator(mgr)
	var calls, pages atomic.Int64
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			s := mgr.NewSession(&mcphybrid.SessionOptions{Label: fmt.Sprint("worker ", g)})
			for i := range 100 {
				if _, err := s.Call(context.Background(), fmt.Sprintf("mcp_a__tool_%03d", i%10), nil); err == nil {
					calls.Add(1)
				}
			}
		})
	}
	for range 2 {
		work.Go(func() {
			for i := range 30 {
				if w := ask(h, []string{"view=calls", "view=why&name=tool_001&q=chore", "", "view=sessions"}[i%4]); w.Code == http.StatusOK {
					pages.Add(1)
				}
			}
		})
	}
	work.Go(func() {
		for range 5 {
			post(h, "do=restart&of=b", nil)
		}
	})
	work.Wait()
	assert.EqualValues(t, 400, calls.Load())
	assert.EqualValues(t, 60, pages.Load())
	snap, err := mgr.Snapshot(0)
	require.NoError(t, err)
	events := slices.DeleteFunc(snap.Events(), func(e snapshot.Event) bool { return e.Number < 0 })
	assert.Len(t, events, 200)
	for _, e := range events {
		assert.Empty(t, e.Err)
		assert.Regexp(t, "^worker [0-3]$", e.Label)
	}
	assert.Empty(t, ask(h, "view=attention").Header().Get("Allow"))
}

// Secrets of one server are not in what another one answers to.
func TestPageCallsShowNoSecrets(t *testing.T) {
	const secret = "sk-Live7x-quiteunlikely"
	keeper := child(t, "keeper", "raw")
	keeper.Env["API_TOKEN"], keeper.Env["LIST"] = secret, `{"tools":[]}`
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{keeper, serving("a", failing("echo", "not allowed with "+secret))}})
	h := debug.Operator(mgr)
	s := mgr.NewSession(&mcphybrid.SessionOptions{Label: "with " + secret})
	_, _ = s.Call(t.Context(), "mcp_a__echo", nil)
	_, _ = s.Call(t.Context(), "mcp_a__"+secret, nil)
	post(h, "do=restart&of="+secret, nil)
	for _, query := range []string{"view=calls", "view=calls&failed=1", "view=calls&server=" + secret, "view=why&name=" + secret, "view=sessions", ""} {
		assert.NotContains(t, pageText(t, h, query), secret, query)
	}
	assert.Contains(t, pageText(t, h, "view=calls"), "not allowed with [hidden]")
	runtime.KeepAlive(s)
}

// A session's page has what the provider counted, apart from estimates, and why its cache
// was lost.
func TestPageUsage(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 2}, Servers: []mcphybrid.ServerConfig{inProcess("a", 30)}})
	h := debug.Handler(mgr)
	assert.Contains(t, pageText(t, h, "view=session"), "Tokens that the provider counted None: the host does not call Session.CountUsage.")
	assert.NotContains(t, pageText(t, debug.Operator(mgr), "view=session"), "provider counted", "an operator can't have it called")
	s := mgr.NewSession(&mcphybrid.SessionOptions{Label: "ticket 7"})
	count := func(response string) {
		u, err := provider.ParseUsage(provider.Anthropic, []byte(response))
		require.NoError(t, err)
		s.CountUsage(u)
	}
	s.Tools()
	count(`{"input_tokens":100,"cache_creation_input_tokens":9000,"output_tokens":40}`)
	assert.Contains(t, pageText(t, h, "view=session&session=0"), "None: the host")
	s.ActivateTools([]string{"mcp_a__tool_007"})
	s.Tools()
	count(`{"diagnostics":{"cache_miss_reason":{"type":"tools_changed<i>"}},"usage":{"input_tokens":100,"cache_creation_input_tokens":8000,"cache_read_input_tokens":1400,"output_tokens":2}}`)
	st := s.Stats()
	text := pageText(t, h, "view=session&session=1")
	assert.Contains(t, text, "Tools are disclosed by activation.")
	assert.Regexp(t, fmt.Sprintf(`Tokens that the provider counted requests 2 input %s read from the cache %s 8 %% of the input written to the cache %s output 42 cache losses 1 %s tokens saved by deferring %s estimated the cache was lost at %s tokens: the provider says "tools_changed<i>" \d\d:\d\d:\d\d UTC , \S+\s\S+ ago Active tools`,
		digits(18_600), digits(1_400), digits(17_000), digits(7_600), digits(st.EstimatedSaved), digits(7_600)), text)
	assert.True(t, strings.Contains(ask(h, "view=session&session=1").Body.String(), "tools_changed&lt;i&gt;"))
	calls := pageText(t, h, "view=calls")
	assert.Regexp(t, `cache lost session 1 ticket 7 .* ago – `+digits(7_600)+` tokens: the provider says`, calls)
	assert.NotContains(t, pageText(t, h, "view=calls&failed=1"), "cache lost", "nothing failed")
	runtime.KeepAlive(s)
}

// An engine fails as it is told.
type engine struct {
	store.Sessions
	err error
}

func (e *engine) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, e.err }

// The overview shows the figures of stores. One that is away is a matter on top; its outages and conflicts are among the calls.
func TestPageStores(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 2)}})
	h := debug.Handler(mgr)
	assert.NotContains(t, pageText(t, h, ""), "Stores")
	e := new(engine)
	sessions := mgr.ObserveSessions(e)
	get := func(err error) {
		e.err = err
		_, _, _ = sessions.Get(t.Context(), "alice/17")
	}
	away := fmt.Errorf("dial <db>: %w", store.ErrUnavailable)
	for _, err := range []error{nil, store.ErrConflict, away, away} {
		get(err)
	}
	text := pageText(t, h, "")
	assert.Regexp(t, `The store Sessions can't be reached since .* dial <db>: the store can't be reached`, text)
	assert.Regexp(t, `Stores store state calls .* Sessions away \S+\s\S+ ago 4 \S+\s\S+ \S+\s\S+ 1 2 0 dial <db>`, text)
	get(nil)
	text = pageText(t, h, "")
	assert.Regexp(t, `Sessions there 5 \S+\s\S+ \S+\s\S+ 1 2 0`, text)
	assert.NotContains(t, text, "can't be reached")
	calls := pageText(t, h, "view=calls")
	for _, want := range []string{`store “Sessions” .* dial <db>: the store can't be reached`, `store “Sessions” .* another process has put`} {
		assert.Regexp(t, want, calls)
	}
	assert.NotContains(t, calls, "alice/17")
}

// SPEC H6: the page shows what a server says of itself, without secrets and invisible
// characters.
func TestSpecH6InstructionsOnThePage(t *testing.T) {
	s := mcpserver.NewMCPServer("git", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithInstructions("<b>Keeps</b>\u202e history\nwith hunter22hunter22"))
	s.AddTools(echoTool("log", "Shows the history"))
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{{Name: "git", InProcess: s, Secrets: []string{"hunter22hunter22"}}, inProcess("a", 2)}})
	page := ask(debug.Handler(mgr), "").Body.String()
	assert.Contains(t, page, "It says: &lt;b&gt;Keeps&lt;/b&gt; history with ")
	assert.NotContains(t, page, "hunter22")
	assert.Equal(t, 1, strings.Count(page, "It says:"))
}

// Where a name is hidden, nothing is offered that would need it: neither a call nor a button.
func TestNothingIsOfferedByAHiddenName(t *testing.T) {
	t.Parallel()
	change := snapshot.Change{Server: "s [hidden]", Tool: "wipe", Hidden: true, Kind: "tool", Name: "mcp_s__wipe", Was: "w", Is: "i"}
	s := &scene{
		sessions: []snapshot.Session{{}},
		servers:  []snapshot.Server{{Name: "s [hidden]", Hidden: true, State: string(mcphybrid.StateDown)}},
		changes:  []snapshot.Change{change},
		tools:    []snapshot.Tool{{Name: "mcp_s__wipe", Server: says(change.Server), Standing: "deferred", Changed: &change, Definition: meaning{schema: "{}"}}},
	}
	for _, h := range []http.Handler{debug.Handler(s), debug.Operator(s)} {
		all, one := pageText(t, h, "view=attention"), pageText(t, h, "view=tool&name=mcp_s__wipe")
		assert.Contains(t, all, "mgr.Restart takes the one in its configuration.")
		for _, text := range []string{all, one} {
			assert.Contains(t, text, "A name is hidden here: mgr.Accept takes what stands in its place.")
			assert.NotContains(t, text, "mgr.Restart(")
			assert.NotContains(t, text, "mgr.Accept(")
			assert.NotContains(t, text, "Accept this definition")
		}
	}
}
