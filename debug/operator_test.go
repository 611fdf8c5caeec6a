package debug_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// broken returns servers that are broken in different ways.
func broken(t *testing.T, refuses string) []mcphybrid.ServerConfig {
	return []mcphybrid.ServerConfig{
		{Name: "postgres", Command: "no-such-program"},
		child(t, "calendar", "npm"),
		{Name: "crm", URL: refuses, Headers: map[string]string{"Authorization": "Bearer stale-token"}},
		child(t, "tickets", "unset"),
	}
}

// An operator reads the cause and what to do, a developer the cause and the call. What a
// server said stands behind it, once.
func TestPageForOperatorAndDeveloper(t *testing.T) {
	refuses := startRefusing(t)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Limits: config.Limits{Reconnect: -1}, Servers: broken(t, refuses)})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()))
	of := func(h http.Handler) (text, matters, body string) {
		body = ask(h, "").Body.String()
		return pageText(t, h, ""), body[strings.Index(body, `id="matters"`):strings.Index(body, `id="overview"`)], body
	}
	text, matters, body := of(debug.Guide{File: "/etc/mcp.json", Watched: true}.Operator(mgr))
	for _, want := range []string{
		`Server postgres is down since .*program not found: no-such-program Install the program and restart the server. Or correct "command" of "postgres" in /etc/mcp.json: .* The file is read again at once.`,
		`Server calendar is down since .*npm: package not found \(404\): @x/calender Correct the name or version in "args" of "calendar" in /etc/mcp.json.`,
		`Server crm wants a valid token since .*the token in its header was refused Put a valid token into "headers" of "crm" in /etc/mcp.json.`,
		`Server tickets is down since .*it ended: Error: JIRA_TOKEN is not set. Do what it says. Variables go into "env" of "tickets"`,
	} {
		assert.Regexp(t, want, text)
	}
	assert.NotContains(t, body, "mgr.", "no calls")
	assert.Equal(t, 4, strings.Count(matters, ">Restart<"))
	assert.Equal(t, 1, strings.Count(body, "npm error code E404"), "the noise is there once")
	assert.Regexp(t, `(?s)<details[^>]*><summary>All it said</summary><p class="why">exit status \d; its last words: &#34;npm error code E404`, matters)

	why := pageText(t, debug.Operator(mgr), "view=why&name=mcp_crm__find")
	assert.Contains(t, why, "The catalog has no such tool. Server crm wants a valid token and has not listed its tools: the token in its header was refused")
	assert.NotContains(t, why, "postgres", "it has nothing to do with that")
	assert.Contains(t, pageText(t, debug.Operator(mgr), "view=why&name=nothing"), "Server postgres is down and has not listed its tools", "it may be of any")

	text, matters, _ = of(debug.Handler(mgr))
	assert.NotContains(t, text, "mcp.json")
	assert.NotContains(t, text, "Correct ")
	for _, call := range []string{`mgr.Restart(ctx, "postgres")`, `mgr.Restart(ctx, "crm")`, "npm: package not found (404)"} {
		assert.Contains(t, strings.ReplaceAll(matters, "&#34;", `"`), call)
	}
	assert.Less(t, strings.Index(matters, "npm: package not found"), strings.Index(matters, "npm error"), "the cause is first")

	nobody := debug.Guide{File: "/etc/mcp.json"}.Operator(start(t, nil))
	assert.Contains(t, pageText(t, nobody, ""), `No servers. Add one to /etc/mcp.json, as here. Then restart this program: it reads the file at its start. { "mcpServers": { "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]} } }`)
	assert.NotContains(t, pageText(t, nobody, ""), "Tokens of tools", "no chart of nothing")
}

// A login that fails tells so on the page, and what helps if the server offers none.
func TestPageAfterALoginThatFailed(t *testing.T) {
	logins := new(debug.Logins)
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Limits: config.Limits{Reconnect: -1}, OpenURL: logins.Open, Servers: []mcphybrid.ServerConfig{{Name: "crm", URL: startRefusing(t)}}})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()))
	h := debug.Guide{File: "/etc/mcp.json", Logins: logins}.Operator(mgr)
	assert.Contains(t, pageText(t, h, ""), "Server crm wants a valid token", "it names no place to log in")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/?do=login&of=crm", nil))
	require.Equal(t, http.StatusSeeOther, w.Code)
	soon(t, func() bool {
		return strings.Contains(pageText(t, h, ""), `Login to server crm failed: the server offers no login: put a token into its headers, in the form "headers": {"Authorization": "Bearer ${TOKEN}"}: registering as a client: `)
	})
}

// Attempts in vain are one line with a count, and calls of a dead server say why first.
func TestPageCountsAttempts(t *testing.T) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Limits: config.Limits{Reconnect: 1}, Servers: []mcphybrid.ServerConfig{{Name: "dead", Command: "no-such-program"}, inProcess("a", 1)}})
	defer mgr.Close()
	h := debug.Handler(mgr)
	require.Error(t, mgr.Start(t.Context()))
	again := regexp.MustCompile(`server down , \d+ times since \d\d:\d\d:\d\d UTC dead`)
	soon(t, func() bool { return again.MatchString(pageText(t, h, "view=calls")) })
	text := pageText(t, h, "view=calls&server=dead")
	assert.Equal(t, 1, strings.Count(text, "server down"), text)
	assert.LessOrEqual(t, strings.Count(text, "server connecting"), 1, text)
	assert.Equal(t, 1, strings.Count(text, "program not found: no-such-program"))
	_, err := mgr.Default().Call(t.Context(), "mcp_dead__x", nil)
	assert.Error(t, err)
}

// The pages that ask begin with something to click, which finds something.
func TestPageExamples(t *testing.T) {
	opts := &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 2}, Servers: []mcphybrid.ServerConfig{
		inProcess("a", 3), serving("files", echoTool("read_file", "Reads a document"), echoTool("move", "Moves a file")),
	}}
	mgr := start(t, opts)
	h := debug.Handler(mgr)
	links := func(query string) (list []string) {
		body := ask(h, query).Body.String()
		for _, m := range regexp.MustCompile(`<li><a href="([^"]*)">`).FindAllStringSubmatch(body, -1) {
			list = append(list, strings.TrimPrefix(html.UnescapeString(m[1]), "?"))
		}
		return list
	}
	assert.Equal(t, []string{"q=tool+002&view=search", "q=move&view=search", "q=tool+001&view=search", "q=read+file&view=search"}, links("view=search"))
	assert.Contains(t, pageText(t, h, links("view=search")[3]), "mcp_files__read_file")
	s := mgr.NewSession(nil)
	_, err := s.Call(t.Context(), mcphybrid.SearchToolName, []byte(`{"query":"put <it> away"}`))
	require.NoError(t, err)
	_, err = s.Call(t.Context(), "mcp_a__tool_002", nil)
	require.NoError(t, err)
	assert.Equal(t, "q=put+%3Cit%3E+away&view=search", links("view=search")[0])
	assert.Contains(t, pageText(t, h, "view=search"), "Searched for last put <it> away Try one of these tool 002")
	assert.Equal(t, "name=mcp_a__tool_002&view=why", links("view=why")[0])
	text := pageText(t, h, "view=why")
	assert.Contains(t, text, "Called last mcp_a__tool_002 Try one of these mcp_a__tool_")
	for _, link := range links("view=why") {
		assert.NotContains(t, pageText(t, h, link), "The catalog has no such tool.", link)
	}

	// Where nothing is deferred, a search finds what there is, and says so.
	h = debug.Handler(start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{serving("files", mcpserver.ServerTool{Tool: mcp.NewTool("read_file", mcp.WithDescription("Reads a document"))})}}))
	text = pageText(t, h, "view=search&q=read")
	assert.Contains(t, text, "Nothing is deferred: a model has all tools from the start")
	assert.Contains(t, text, "mcp_files__read_file")
	runtime.KeepAlive(s)
}
