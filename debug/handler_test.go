package debug_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask returns the answer of the pages to a GET.
func ask(h http.Handler, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/debug/mcp?"+query, nil))
	return w
}

// pageText returns the words on a page, and fails the test if it is no valid
// page.
func pageText(t testing.TB, h http.Handler, query string) string {
	t.Helper()
	w := ask(h, query)
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", query, w.Body)
	text, err := readPage(w.Body.String())
	require.NoError(t, err, query)
	return text
}

// readPage returns the words on a page, separated by single spaces. It returns
// an error if the page has anything that we don't write.
func readPage(body string) (string, error) {
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict, d.AutoClose, d.Entity = false, append(xml.HTMLAutoClose, "input", "wbr"), xml.HTMLEntity
	var text strings.Builder
	style, script, root := false, false, false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return strings.Join(strings.Fields(text.String()), " "), nil
		}
		if err != nil {
			return "", err
		}
		switch token := token.(type) {
		case xml.StartElement:
			style, script = token.Name.Local == "style", token.Name.Local == "script"
			root = slices.ContainsFunc(token.Attr, func(a xml.Attr) bool { return a.Value == "root" })
			if token.Name.Local == "p" {
				text.WriteByte(' ')
			}
			if !slices.Contains(pageElements, token.Name.Local) {
				return "", fmt.Errorf("there is an element %q", token.Name.Local)
			}
			for _, a := range token.Attr {
				switch name := a.Name.Local; {
				case strings.HasPrefix(name, "on"), name == "style", name == "src":
					return "", fmt.Errorf("%s has an attribute %s=%q", token.Name.Local, name, a.Value)
				case name == "action" && !strings.HasPrefix(a.Value, "?do="):
					return "", fmt.Errorf("a button goes to %q", a.Value)
				case name == "href" && a.Value != "data:," && !strings.HasPrefix(a.Value, "?"):
					return "", fmt.Errorf("there is a link to %q", a.Value)
				}
				if strings.ContainsFunc(a.Value, isUnfit) || strings.Contains(a.Value, "ZgotmplZ") {
					return "", fmt.Errorf("%s is %q", a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			if token.Name.Local != "wbr" && !root { // a name may be broken there, or not
				text.WriteByte(' ')
			}
		case xml.CharData:
			if script && string(token) != pageScript() {
				return "", fmt.Errorf("there is the script %q", token)
			}
			if style || script {
				style, script = false, false
				continue
			}
			text.Write(token)
			if strings.ContainsFunc(string(token), isUnfit) {
				return "", fmt.Errorf("there is the text %+q", token)
			}
		}
	}
}

// pageScript returns the only script that pages may have.
var pageScript = sync.OnceValue(func() string {
	text, err := os.ReadFile("page.js")
	if err != nil {
		panic(err)
	}
	return string(text)
})

var pageElements = strings.Fields(`html head meta link title style script noscript body header main footer nav p a h1 h2 dl div dt dd small b i span
	figure figcaption svg path rect table thead tbody tr th td time ol ul li form input label button code pre wbr details summary`)

// isUnfit reports whether r is invisible or changes how other characters look.
func isUnfit(r rune) bool {
	return r != '\n' && r < ' ' || r == 0x7f || r == utf8.RuneError || unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
}

func TestDebugIsReadOnly(t *testing.T) {
	mgr := start(t, nil)
	h := debug.Handler(mgr)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodConnect, "X"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, "/", nil)
		r.Host = "localhost"
		h.ServeHTTP(w, r)
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "http://localhost/", nil))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, w.Body)
	assert.NotEqual(t, "0", w.Header().Get("Content-Length"))
}

// A page that is read while a tool is hidden must not take the tool from the
// session. The session has not noticed the change yet.
func TestDebugChangesNothing(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}, Servers: []mcphybrid.ServerConfig{inProcess("a", 30)}})
	h := debug.Handler(mgr)
	s := mgr.NewSession(nil)
	s.ActivateTools([]string{"mcp_a__tool_007", "mcp_a__tool_003"})
	sections := s.PromptSections(mcphybrid.PromptFull)
	_, err := s.Call(t.Context(), "mcp_a__tool_009", nil)
	require.NoError(t, err)
	state := string(s.Save())
	require.NoError(t, mgr.SetRules([]mcphybrid.Rule{{Name: "none", Patterns: []string{"*"}, Action: mcphybrid.RuleExclude}}))
	for _, query := range allViews("mcp_a__tool_007", "chore") {
		pageText(t, h, query+"&session=1")
	}
	assert.Contains(t, pageText(t, h, "view=session&session=1"), "No active tools.")
	require.NoError(t, mgr.SetRules([]mcphybrid.Rule{}))
	for _, query := range allViews("mcp_a__tool_007", "chore") {
		pageText(t, h, query+"&session=1")
	}
	assert.Equal(t, state, string(s.Save()))
	assert.Equal(t, sections, s.PromptSections(mcphybrid.PromptFull))
	assert.Equal(t, []string{"mcp_a__tool_007", "mcp_a__tool_003", "mcp_a__tool_009"}, names(s.ActiveTools()))
	assert.Zero(t, s.Stats().Searches)
	assert.Regexp(t, `mcp_a__tool_007 .*mcp_a__tool_003 .*mcp_a__tool_009 `, pageText(t, h, "view=session&session=1"))
	runtime.KeepAlive(s)
}

func names(tools []*mcphybrid.BridgeTool) (list []string) {
	for _, t := range tools {
		list = append(list, t.Name())
	}
	return list
}

func TestDebugHeaders(t *testing.T) {
	mgr := start(t, nil)
	for _, query := range []string{"", "view=nothing"} {
		w := ask(debug.Handler(mgr), query)
		policy := w.Header().Get("Content-Security-Policy")
		assert.Contains(t, policy, "default-src 'none'; ")
		assert.NotContains(t, policy, "unsafe")
		sum := sha256.Sum256([]byte(pageScript()))
		assert.Contains(t, policy, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; connect-src 'self'; ", "no other script runs")
		assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		if w.Code == http.StatusOK {
			style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(w.Body.String())
			require.NotNil(t, style)
			sum := sha256.Sum256([]byte(style[1]))
			assert.Contains(t, policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "the page's own style is let in")
			assert.NotContains(t, style[1], "url(")
			assert.Contains(t, w.Body.String(), "<script>"+pageScript()+"</script>")
		}
	}
}

// The links work wherever the pages are mounted.
func TestDebugIsMountedAnywhere(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{inProcess("a", 2)}})
	mux := http.NewServeMux()
	mux.Handle("/exact", debug.Handler(mgr))
	mux.Handle("/stripped/", http.StripPrefix("/stripped", debug.Handler(mgr)))
	mux.Handle("/bare/", http.StripPrefix("/bare/", debug.Handler(mgr)))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	links := regexp.MustCompile(`href="([^"]*view=[^"]*)"`)
	for _, path := range []string{"/exact", "/stripped/", "/bare/"} {
		base, err := url.Parse(srv.URL + path + "?view=sessions&refresh=60")
		require.NoError(t, err)
		_, body := get(t, base.String())
		found := links.FindAllStringSubmatch(body, -1)
		require.NotEmpty(t, found)
		for _, link := range found {
			to, err := base.Parse(strings.ReplaceAll(link[1], "&amp;", "&"))
			require.NoError(t, err)
			assert.Equal(t, path, to.Path)
			status, body := get(t, to.String())
			assert.Equal(t, http.StatusOK, status)
			if n := to.Query().Get("refresh"); n != "" {
				assert.Contains(t, body, fmt.Sprintf(`http-equiv="refresh" content="%s"`, n))
			}
		}
	}
}

func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(address)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

func TestDebugShowsStandings(t *testing.T) {
	git := serving("git", echoTool("log", "Shows the history"), echoTool("push", "Sends commits"))
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 2}, Pins: []string{"mcp_a__tool_004"}, Trust: mcphybrid.TrustQuarantine, Servers: []mcphybrid.ServerConfig{
		inProcess("a", 5), git,
	}, Rules: []mcphybrid.Rule{
		{Name: "short", Patterns: []string{"mcp_a__tool_002"}, Action: mcphybrid.RuleSummarize}, {Name: "off", Patterns: []string{"mcp_a__tool_003"}, Action: mcphybrid.RuleExclude},
	}})
	h := debug.Handler(mgr)
	mgr.ActivateTools([]string{"mcp_git__log"})
	git.InProcess.(*mcpserver.MCPServer).AddTools(echoTool("push", "Sends all files"))
	soon(t, func() bool { return len(changedTools(mgr)) == 1 })
	text := pageText(t, h, "view=tools")
	for _, want := range []string{
		"mcp_a__tool_004 Does chore 4 for a a inline it is pinned",
		"mcp_a__tool_000 Does chore 0 for a a inline there is room",
		"mcp_a__tool_001 Does chore 1 for a a deferred 2 tools before it are inline",
		`mcp_a__tool_002 Does chore 2 for a a summarized rule "short" summarizes it`,
		`mcp_a__tool_003 Does chore 3 for a a hidden rule "off" excludes it`,
		"mcp_git__log Shows the history git active 2 tools before it are inline",
		"mcp_git__push git quarantined its definition has changed since ",
		"all inline 2 summarized 1 deferred 1 active 1 hidden 1 quarantined 1 sorted by",
	} {
		assert.Contains(t, text, want)
	}
	only := pageText(t, h, "view=tools&standing=quarantined")
	assert.Contains(t, only, "mcp_git__push")
	assert.NotContains(t, only, "mcp_git__log")
	one := pageText(t, h, "view=tool&name=mcp_git__push")
	assert.Contains(t, one, "Sends all files")
	assert.Contains(t, one, changedTools(mgr)[0].Is)
	assert.Contains(t, pageText(t, h, "view=attention"), "Changed tool push of server git")
	assert.Contains(t, pageText(t, h, "view=attention"), "It is held back until somebody accepts it.")
	assert.Contains(t, pageText(t, h, "view=tools&server=git&sort=name"), "mcp_git__log")
	assert.NotContains(t, pageText(t, h, "view=tools&server=git&q=pu"), "mcp_a__")
}

func TestDebugExplainsScores(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{
		serving("files", echoTool("read_file", "Reads a document"), echoTool("move", "Moves a file")),
	}})
	text := pageText(t, debug.Handler(mgr), "view=search&q=delete+the+file")
	hits := mgr.Search("delete the file", 20)
	require.NotEmpty(t, hits)
	for _, hit := range hits {
		assert.Contains(t, text, fmt.Sprintf("score %.3f", hit.Score))
		for _, part := range mgr.Default().Explain("delete the file", hit.Tool.Name()).Parts {
			assert.Regexp(t, strings.Join(strings.Fields(fmt.Sprintf(`%s ?%s (for %s )?%.3f`, part.Field, part.Term, part.Query, part.Score)), " "), text)
		}
	}
	assert.Contains(t, pageText(t, debug.Handler(mgr), "view=search&q=zzyzx"), "Found no deferred tools in")
}

func TestDebugFollowsServers(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Limits: config.Limits{Reconnect: -1}, Servers: []mcphybrid.ServerConfig{child(t, "good", "exits"), inProcess("a", 3)}})
	h := debug.Handler(mgr)
	_, err := mgr.Call(t.Context(), "mcp_a__tool_000", nil)
	require.NoError(t, err)
	assert.Regexp(t, `servers ready 2 of 2 .* a ready \S+\s\S+ ago , took \S+\s\S+ 3 3 \d+ 1 0 \d`, pageText(t, h, ""))
	require.NoError(t, mgr.AddTools("own", echoTool("b", "c")))
	assert.Contains(t, pageText(t, h, ""), "own local tools without a connection 1 1 ")
	_, err = mgr.Call(t.Context(), "mcp_good__exit", nil)
	require.Error(t, err)
	soon(t, func() bool { return mgr.Servers()[0].State == mcphybrid.StateDown })
	assert.Regexp(t, `servers ready 1 of 2 .* good down \S+\s\S+ ago .*it ended: asked to exit`, pageText(t, h, ""))
	require.NoError(t, mgr.Close())
	assert.Contains(t, pageText(t, h, ""), "The Manager is closed.")
	assert.Contains(t, pageText(t, h, "view=tools"), "No tools.")
}

// What servers have beside tools is counted if one has any.
func TestDebugCountsResources(t *testing.T) {
	t.Parallel()
	archive := mcpserver.NewMCPServer("archive", "1")
	for _, uri := range []string{"mem://a", "mem://b", "mem://c"} {
		archive.AddResource(mcp.NewResource(uri, uri), nil)
	}
	archive.AddResourceTemplates(mcpserver.ServerResourceTemplate{Template: mcp.NewResourceTemplate("mem://{a}", "a")}, mcpserver.ServerResourceTemplate{Template: mcp.NewResourceTemplate("mem://b/{b}", "b")})
	archive.AddPrompt(mcp.NewPrompt("greet"), nil)
	archive.AddTools(echoTool("find", "Finds"))
	servers := []mcphybrid.ServerConfig{inProcess("chores", 2), {Name: "archive", InProcess: archive}}
	text := pageText(t, debug.Handler(start(t, &mcphybrid.Options{Servers: servers})), "")
	assert.Contains(t, text, "inline tokens resources templates prompts calls")
	assert.Regexp(t, `chores ready .*ago , took \S+\s\S+ 2 2 \d+ 0 0 0 0 0 –`, text)
	assert.Regexp(t, `archive ready .*ago , took \S+\s\S+ 1 1 \d+ 3 2 1 0 0 –`, text)
	text = pageText(t, debug.Handler(start(t, &mcphybrid.Options{Servers: servers[:1]})), "")
	assert.Contains(t, text, "inline tokens calls")
}

func TestDebugSessions(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{inProcess("a", 50)}})
	before := mgr.NewSession(nil)
	registered := mgr.NewSession(&mcphybrid.SessionOptions{Registry: mcphybrid.NewRegistry()})
	h := debug.Handler(mgr)
	registered.ActivateTools([]string{"mcp_a__tool_001"})
	busy := mgr.NewSession(&mcphybrid.SessionOptions{Disclosure: mcphybrid.ByProvider})
	busy.SetIntent("<i>clean\u202e up")
	busy.NextTurn()
	_, err := busy.Call(t.Context(), "mcp_a__tool_009", nil)
	require.NoError(t, err)
	busy.Call(t.Context(), mcphybrid.SearchToolName, json.RawMessage(`{"query":"zzyzx"}`))
	closed := mgr.NewSession(nil)
	closed.Close()
	text := pageText(t, h, "view=sessions")
	assert.Contains(t, text, "default session at start 0 0 0")
	st := busy.Stats()
	assert.Regexp(t, fmt.Sprintf(`session 2 intent <i>clean up \S+\s\S+ ago %d 1 %d 0 \S+\s\S+ 1 \(1 empty\) %s %s session 1 `,
		1, st.Usage.Calls, digits(st.Tokens.Sent()), digits(max(st.Tokens.All-st.Tokens.Sent(), 0))), text)
	assert.NotContains(t, text, "session 3 ", "it is closed")
	unknown := ask(h, "view=session&session=3")
	assert.Equal(t, http.StatusNotFound, unknown.Code)
	assert.Contains(t, unknown.Body.String(), ">there is no session 3: ", "without the prefix of the library")
	page := pageText(t, h, "view=session&session=2")
	assert.Contains(t, page, "Turn 1. Intent: <i>clean up. Tools are disclosed by provider.")
	assert.Regexp(t, `mcp_a__tool_009 Does chore 9 for a a 1 \d+`, page)
	assert.Contains(t, pageText(t, h, "view=tools&session=2&standing=active"), "Seen by session 2 .")
	assert.Contains(t, pageText(t, h, ""), "sessions 2 Servers")
	registered.Close()
	assert.NotContains(t, pageText(t, h, "view=sessions"), "session 1 ")
	assert.Contains(t, pageText(t, debug.Handler(mgr), "view=sessions"), "session 2 ", "another handler shows the same")
	for _, s := range []*mcphybrid.Session{before, registered, busy, closed} {
		runtime.KeepAlive(s)
	}
}

// The plot has the newest sample's numbers.
func TestDebugPlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 2}})
		var tools []mcpserver.ServerTool
		for i := range 200 {
			tools = append(tools, echoTool(fmt.Sprintf("tool_%03d", i), "Does a chore"))
		}
		require.NoError(t, mgr.AddTools("a", tools...))
		h := debug.Handler(mgr)
		synctest.Wait()
		assert.NotContains(t, pageText(t, h, ""), "Tokens of tools", "nothing is measured yet")
		s := mgr.NewSession(nil)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		tokens := s.Stats().Tokens
		saved := tokens.All - tokens.Sent()
		assert.Positive(t, saved)
		text := pageText(t, h, "")
		assert.Regexp(t, fmt.Sprintf(`sent %s saved %s \(%d %% of %s\)`, digits(tokens.Sent()), digits(saved), 100*saved/tokens.All, digits(tokens.All)), text)
		assert.Contains(t, text, "Mean of one session.")
		assert.Contains(t, ask(h, "").Body.String(), `<path class="saved" d="M0.0,`)
		require.NoError(t, mgr.Close()) // a goroutine that still ran would hang the test
		runtime.KeepAlive(s)
	})
}

// digits is a pattern for a number on a page.
func digits(n int) string {
	return strings.Join(strings.Split(strconv.Itoa(n), ""), `\s?`)
}

func BenchmarkDebugPage(b *testing.B) {
	mgr := mcphybrid.NewManager(nil)
	b.Cleanup(func() { mgr.Close() })
	addMany(b, mgr, 10_000)
	h := debug.Handler(mgr)
	for _, query := range []string{"", "view=tools", "view=search&q=create+an+issue"} {
		b.Run("query="+query, func(b *testing.B) {
			for b.Loop() {
				ask(h, query)
			}
		})
	}
}

// Pages are read while servers, rules and sessions change.
func TestDebugConcurrently(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 5}, Trust: mcphybrid.TrustQuarantine, Servers: []mcphybrid.ServerConfig{inProcess("a", 30)}})
	var pages, sessions, servers atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	forever := func(f func(i int)) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					f(i)
				}
			}
		})
	}
	forever(func(i int) {
		s := mgr.NewSession(&mcphybrid.SessionOptions{Registry: mcphybrid.NewRegistry()})
		s.ActivateTools([]string{fmt.Sprintf("mcp_a__tool_%03d", i%30)})
		_, _ = s.Call(context.Background(), fmt.Sprintf("mcp_a__tool_%03d", (i+1)%30), nil)
		s.PromptSections(mcphybrid.PromptFull)
		s.SetIntent(fmt.Sprint(i % 3))
		s.NextTurn()
		s.Compact()
		s.Close()
		sessions.Add(1)
	})
	forever(func(i int) {
		name := fmt.Sprintf("b%d", i%3)
		if !assert.NoError(t, mgr.AddServer(context.Background(), inProcess(name, 1+i%7))) {
			return
		}
		_ = mgr.SetRules([]mcphybrid.Rule{{Name: "r", Patterns: []string{fmt.Sprintf("*%d", i%10)}, Action: mcphybrid.RuleExclude}})
		assert.True(t, mgr.RemoveServer(name))
		servers.Add(1)
	})
	for range 2 {
		forever(func(i int) {
			h := debug.Handler(mgr)
			queries := append(allViews(fmt.Sprintf("mcp_a__tool_%03d", i%30), "chore"), fmt.Sprintf("view=session&session=%d", sessions.Load()))
			w := ask(h, queries[i%len(queries)])
			if w.Code == http.StatusOK {
				_, err := readPage(w.Body.String())
				assert.NoError(t, err)
				pages.Add(1)
			} else {
				assert.Equal(t, http.StatusNotFound, w.Code, w.Body)
			}
		})
	}
	soon(t, func() bool { return pages.Load() > 100 && sessions.Load() > 20 && servers.Load() > 20 })
	close(done)
	wg.Wait()
}

// Who asks for the head of a page that is live has it at once.
func TestHeadOfALivePage(t *testing.T) {
	t.Parallel()
	h := debug.Handler(start(t, nil))
	gone, cancel := context.WithCancel(t.Context()) // a page that is live ends at once
	cancel()
	for method, want := range map[string]string{http.MethodGet: "text/event-stream", http.MethodHead: "text/html; charset=utf-8"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(gone, method, "http://localhost/?live=1", nil))
		assert.Equal(t, want, w.Header().Get("Content-Type"), method)
		assert.Equal(t, method == http.MethodHead, w.Body.Len() == 0, method)
	}
}

// A web page whose name was made to lead here is shown nothing and presses no button. Names
// that the host gives are answered, as behind a proxy that keeps the Host.
func TestHostIsChecked(t *testing.T) {
	t.Parallel()
	mgr := start(t, &mcphybrid.Options{Servers: []mcphybrid.ServerConfig{{Name: "git", InProcess: mcpserver.NewMCPServer("git", "1")}}})
	status := func(h http.Handler, method, host, query string) (int, string) {
		gone, cancel := context.WithCancel(t.Context()) // a page that is live ends at once
		cancel()
		r := httptest.NewRequestWithContext(gone, method, "http://localhost/debug/mcp?"+query, nil)
		r.Host = host
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", "http://"+host)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, h := range []http.Handler{debug.Handler(mgr), debug.Operator(mgr), debug.Handler(mgr, "ops.example.com"), debug.Operator(mgr, "ops.example.com:8443")} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			code, body := status(h, method, "evil.example:6060", "view=tools&do=restart&of=git")
			assert.Equal(t, http.StatusMisdirectedRequest, code, method)
			assert.Equal(t, "mcphybrid: there is no host \"evil.example\" here. If people reach these pages by this name, give it to the handler: debug.Handler(mgr, \"evil.example\"), or debug.Operator\n", body)
		}
		code, _ := status(h, http.MethodGet, "evil.example", "live=1")
		assert.Equal(t, http.StatusMisdirectedRequest, code)
		code, _ = status(h, http.MethodGet, "127.0.0.1:6060", "")
		assert.Equal(t, http.StatusOK, code)
	}
	code, _ := status(debug.Handler(mgr, "Ops.example.com"), http.MethodGet, "ops.example.com:443", "")
	assert.Equal(t, http.StatusOK, code)
	code, _ = status(debug.Operator(mgr, "ops.example.com"), http.MethodPost, "ops.example.com", "do=restart&of=git")
	assert.Equal(t, http.StatusSeeOther, code)
	code, _ = status(debug.Handler(mgr, debug.AnyHost), http.MethodGet, "evil.example", "")
	assert.Equal(t, http.StatusOK, code)

	srv := httptest.NewServer(debug.Handler(mgr))
	defer srv.Close()
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusMisdirectedRequest, "0.0.0.0": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		r.Host = host
		answer, err := srv.Client().Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, want, answer.StatusCode, host)
	}
}
