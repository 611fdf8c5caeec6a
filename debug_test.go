package mcphybrid

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask returns the answer of the pages to a GET.
func ask(h http.Handler, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/mcp?"+query, nil))
	return w
}

// pageText returns a page, which must be one, as the words on it.
func pageText(t testing.TB, h http.Handler, query string) string {
	t.Helper()
	w := ask(h, query)
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", query, w.Body)
	text, err := readPage(w.Body.String())
	require.NoError(t, err, query)
	return text
}

// readPage returns the words on a page, between single spaces. It is an error
// if there is anything on the page that is not of the kind that we write.
func readPage(body string) (string, error) {
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict, d.AutoClose, d.Entity = false, append(xml.HTMLAutoClose, "input"), xml.HTMLEntity
	var text strings.Builder
	style := false
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
			style = token.Name.Local == "style"
			if token.Name.Local == "p" {
				text.WriteByte(' ')
			}
			if !slices.Contains(pageElements, token.Name.Local) {
				return "", fmt.Errorf("there is an element %q", token.Name.Local)
			}
			for _, a := range token.Attr {
				switch name := a.Name.Local; {
				case strings.HasPrefix(name, "on"), name == "style", name == "src", name == "action":
					return "", fmt.Errorf("%s has an attribute %s=%q", token.Name.Local, name, a.Value)
				case name == "href" && a.Value != "data:," && !strings.HasPrefix(a.Value, "?"):
					return "", fmt.Errorf("there is a link to %q", a.Value)
				}
				if strings.ContainsFunc(a.Value, isUnfit) || strings.Contains(a.Value, "ZgotmplZ") {
					return "", fmt.Errorf("%s is %q", a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			text.WriteByte(' ')
		case xml.CharData:
			if style {
				style = false
				continue
			}
			text.Write(token)
			if strings.ContainsFunc(string(token), isUnfit) {
				return "", fmt.Errorf("there is the text %+q", token)
			}
		}
	}
}

var pageElements = strings.Fields(`html head meta link title style body header main footer nav p a h1 h2 dl div dt dd small b i span
	figure figcaption svg path rect table thead tbody tr th td time ol ul li form input label button code pre`)

func isUnfit(r rune) bool { return r != '\n' && r < ' ' || r == 0x7f || isInvisible(r) }

// A hostileText would be run, shown or read as something else if it was not
// escaped and cleaned.
const hostileText = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> javascript:alert(3) </style></pre></textarea>{{.}}\u202egnp.exe\u200b \x1b[31m\x00\x07 &lt;b&gt; \ufeff%00 ?q=\"&x"

func TestDebugEscapes(t *testing.T) {
	mgr, _ := newTestManager(t, &Options{MaxInline: -1, Servers: []ServerConfig{
		serving("plain", echoTool("fetch", "Fetches a page")),
	}})
	require.NoError(t, mgr.AddTools("<b onclick=x>&\"' \u202e", mcpserver.ServerTool{Tool: mcp.Tool{
		Name: "alert\u202e<script>", Title: hostileText, Description: "Alerts " + hostileText,
		InputSchema: mcp.ToolInputSchema{Type: "object", Properties: map[string]any{
			hostileText: map[string]any{"type": "string", "description": hostileText},
		}},
	}}))
	require.Error(t, mgr.AddServer(t.Context(), ServerConfig{Name: "failing", URL: "http://127.0.0.1:1/" + url.PathEscape("<script>")}))
	h := mgr.DebugHandler()
	name := mgr.DeferredTools()[1].Name()
	for _, query := range []string{
		"", "view=tools", "view=tools&sort=name", "view=tool&name=" + url.QueryEscape(name), "view=search&q=alert+script+img",
		"view=search&q=" + url.QueryEscape(hostileText), "view=tools&q=" + url.QueryEscape(hostileText) + "&server=" + url.QueryEscape(hostileText),
		"view=sessions", "view=session", "view=problems", "refresh=5",
	} {
		text := pageText(t, h, query)
		assert.Contains(t, text, "mcphybrid", query)
	}
	assert.Contains(t, pageText(t, h, "view=tool&name="+name), "Alerts <script>alert(1)</script>")
	assert.Contains(t, pageText(t, h, "view=search&q=alert"), "Alerts <script>alert(1)</script>")
	for _, query := range []string{"view=" + url.QueryEscape(hostileText), "view=tool&name=" + url.QueryEscape(hostileText), "session=x", "page=-1", "%zz", "a;b"} {
		w := ask(h, query)
		assert.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, w.Code, query)
		text, err := readPage(w.Body.String())
		require.NoError(t, err, query)
		assert.Contains(t, text, "There is no such page", query)
	}
}

// allViews are queries for every kind of page.
func allViews(tool, words string) []string {
	return []string{
		"", "view=tools", "view=tools&sort=tokens", "view=tool&name=" + url.QueryEscape(tool), "view=search&q=" + url.QueryEscape(words),
		"view=search&q=select:" + url.QueryEscape(tool), "view=sessions", "view=session", "view=problems",
	}
}

func TestDebugShowsNoSecrets(t *testing.T) {
	const secret = "sk-Live7x-quiteunlikely"
	said := "It uses " + secret + ", " + url.QueryEscape(secret) + ", sk-\u200bLive7x-quite\u202eunlikely and " + strings.Repeat("\u200b", 400) + secret
	cfg := child(t, "raw", "raw")
	cfg.Env["API_TOKEN"] = secret
	cfg.Env["LIST"] = jsonText(map[string]any{"tools": []any{
		map[string]any{"name": "say", "title": said, "description": said, "inputSchema": map[string]any{"type": "object", "description": said,
			"title": json.RawMessage(`"sk-Li\udb40\udc41ve7x\u002dqui\u202eteunlikely"`)}},
		map[string]any{"name": secret, "description": strings.Repeat("x", 8*debugDescription+1<<10-12) + secret},
		map[string]any{"name": 1, secret: said},
		map[string]any{"name": said},
	}})
	failing := child(t, "failing", "confess")
	failing.Env["API_TOKEN"] = secret
	mgr := NewManager(&Options{MaxInline: -1, Reconnect: -1, Servers: []ServerConfig{cfg, failing}})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()))
	h := mgr.DebugHandler()
	require.Len(t, mgr.DeferredTools(), 3)
	shown := ""
	for _, tool := range mgr.DeferredTools() {
		for _, query := range append(allViews(tool.Name(), "uses"), "view=search&q=quitu+unlikly+live7+quite", "view=search&q="+secret) {
			text := pageText(t, h, query)
			assert.NotContains(t, text, secret, query)
			if strings.Contains(query, secret) {
				continue // who asks knows it, and sees which words were found
			}
			for _, piece := range []string{"Live7x", "quiteun", "unlikely"} {
				assert.NotContains(t, text, piece, query)
			}
			shown += text
		}
	}
	assert.Contains(t, shown, "It uses "+masked)
	assert.Contains(t, shown, "failing")
}

func TestDebugIsReadOnly(t *testing.T) {
	mgr, _ := newTestManager(t, nil)
	h := mgr.DebugHandler()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodConnect, "X"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, w.Body)
	assert.NotEqual(t, "0", w.Header().Get("Content-Length"))
}

// A page that is looked at while a tool is hidden must not take it from the
// session, which would have noticed nothing.
func TestDebugChangesNothing(t *testing.T) {
	mgr, _ := newTestManager(t, &Options{MaxInline: 1, Servers: []ServerConfig{inProcess("a", 30)}})
	h := mgr.DebugHandler()
	s := mgr.NewSession(nil)
	s.ActivateTools([]string{"mcp_a__tool_007", "mcp_a__tool_003"})
	sections := s.PromptSections(PromptFull)
	_, err := s.Call(t.Context(), "mcp_a__tool_009", nil)
	require.NoError(t, err)
	state := string(s.Save())
	require.NoError(t, mgr.SetRules([]Rule{{Name: "none", Patterns: []string{"*"}, Action: RuleExclude}}))
	for _, query := range allViews("mcp_a__tool_007", "chore") {
		pageText(t, h, query+"&session=1")
	}
	assert.Contains(t, pageText(t, h, "view=session&session=1"), "There are none.")
	require.NoError(t, mgr.SetRules(nil))
	for _, query := range allViews("mcp_a__tool_007", "chore") {
		pageText(t, h, query+"&session=1")
	}
	assert.Equal(t, state, string(s.Save()))
	assert.Equal(t, sections, s.PromptSections(PromptFull))
	assert.Equal(t, []string{"mcp_a__tool_007", "mcp_a__tool_003", "mcp_a__tool_009"}, toolNames(s.ActiveTools()))
	assert.Zero(t, s.Stats().Searches)
	assert.Regexp(t, `mcp_a__tool_007 .*mcp_a__tool_003 .*mcp_a__tool_009 `, pageText(t, h, "view=session&session=1"))
}

func TestDebugHeaders(t *testing.T) {
	mgr, _ := newTestManager(t, nil)
	for _, query := range []string{"", "view=nothing"} {
		w := ask(mgr.DebugHandler(), query)
		policy := w.Header().Get("Content-Security-Policy")
		assert.Contains(t, policy, "default-src 'none'; ")
		assert.NotContains(t, policy, "unsafe")
		assert.NotContains(t, policy, "script")
		assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		if w.Code == http.StatusOK {
			style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(w.Body.String())
			require.NotNil(t, style)
			assert.Contains(t, policy, "style-src 'sha256-"+base64Sum(style[1])+"'", "the page's own style is let in")
			assert.NotContains(t, style[1], "url(")
			assert.NotContains(t, w.Body.String(), "<script")
		}
	}
}

// Wherever the pages are mounted, their links lead to them.
func TestDebugIsMountedAnywhere(t *testing.T) {
	mgr, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 2)}})
	mux := http.NewServeMux()
	mux.Handle("/exact", mgr.DebugHandler())
	mux.Handle("/stripped/", http.StripPrefix("/stripped", mgr.DebugHandler()))
	mux.Handle("/bare/", http.StripPrefix("/bare/", mgr.DebugHandler()))
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
	s := changing(echoTool("log", "Shows the history"), echoTool("push", "Sends commits"))
	mgr, _ := newTestManager(t, &Options{MaxInline: 2, Pins: []string{"mcp_a__tool_004"}, Trust: TrustQuarantine, Servers: []ServerConfig{
		inProcess("a", 5), {Name: "git", InProcess: s},
	}, Rules: []Rule{
		{Name: "short", Patterns: []string{"mcp_a__tool_002"}, Action: RuleSummarize}, {Name: "off", Patterns: []string{"mcp_a__tool_003"}, Action: RuleExclude},
	}})
	h := mgr.DebugHandler()
	mgr.ActivateTools([]string{"mcp_git__log"})
	s.AddTools(echoTool("push", "Sends all files"))
	soon(t, func() bool { return len(changedTools(mgr)) == 1 })
	text := pageText(t, h, "view=tools")
	for _, want := range []string{
		"mcp_a__tool_004 Does chore 4 for a a inline it is pinned",
		"mcp_a__tool_000 Does chore 0 for a a inline there is room",
		"mcp_a__tool_001 Does chore 1 for a a deferred 2 tools before it are inline",
		`mcp_a__tool_002 Does chore 2 for a a summarized rule "short" summarizes it`,
		`mcp_a__tool_003 Does chore 3 for a a hidden rule "off" excludes it`,
		"mcp_git__log Shows the history git active 2 tools before it are inline",
		"mcp_git__push git quarantined it has changed since ",
		"all inline 2 summarized 1 deferred 1 active 1 hidden 1 quarantined 1 by",
	} {
		assert.Contains(t, text, want)
	}
	only := pageText(t, h, "view=tools&standing=quarantined")
	assert.Contains(t, only, "mcp_git__push")
	assert.NotContains(t, only, "mcp_git__log")
	one := pageText(t, h, "view=tool&name=mcp_git__push")
	assert.Contains(t, one, "Sends all files")
	assert.Contains(t, one, changedTools(mgr)[0].Is)
	assert.Contains(t, pageText(t, h, "view=problems"), "held back until it is accepted")
	assert.Contains(t, pageText(t, h, "view=tools&server=git&sort=name"), "mcp_git__log")
	assert.NotContains(t, pageText(t, h, "view=tools&server=git&q=pu"), "mcp_a__")
}

func TestDebugExplainsScores(t *testing.T) {
	mgr, _ := newTestManager(t, &Options{MaxInline: -1, Servers: []ServerConfig{
		serving("files", echoTool("read_file", "Reads a document"), echoTool("move", "Moves a file")),
	}})
	text := pageText(t, mgr.DebugHandler(), "view=search&q=delete+the+file")
	hits := mgr.Search("delete the file", 20)
	require.NotEmpty(t, hits)
	for _, hit := range hits {
		assert.Contains(t, text, fmt.Sprintf("score %.3f", hit.Score))
		for _, part := range mgr.Explain("delete the file", hit.Tool.Name()).Parts {
			assert.Regexp(t, strings.Join(strings.Fields(fmt.Sprintf(`%s ?%s (for %s )?%.3f`, part.Field, part.Term, part.Query, part.Score)), " "), text)
		}
	}
	assert.Contains(t, pageText(t, mgr.DebugHandler(), "view=search&q=zzyzx"), "No deferred tool found")
}

func TestDebugFollowsServers(t *testing.T) {
	mgr, _ := newTestManager(t, &Options{Reconnect: -1, Servers: []ServerConfig{child(t, "good", "serve"), inProcess("a", 3)}})
	h := mgr.DebugHandler()
	_, err := mgr.Call(t.Context(), "mcp_a__tool_000", nil)
	require.NoError(t, err)
	assert.Regexp(t, `servers ready 2 of 2 .* a ready \S+\s\S+ ago , took \S+\s\S+ 3 3 \d+ 1 0 \d`, pageText(t, h, ""))
	require.Error(t, mgr.AddServer(t.Context(), ServerConfig{Name: "gone", Command: "/nowhere"}))
	src := mgr.sources[0].server
	src.mu.Lock()
	p := src.conn.process
	src.mu.Unlock()
	require.NoError(t, p.cmd.Process.Kill())
	soon(t, func() bool { return mgr.Servers()[0].State == StateDown })
	assert.Regexp(t, `servers ready 1 of 2 .* good down \S+\s\S+ ago , took .*killed`, pageText(t, h, ""))
	require.NoError(t, mgr.Close())
	assert.Contains(t, pageText(t, h, ""), "The Manager is closed.")
	assert.Contains(t, pageText(t, h, "view=tools"), "There are none.")
}

func TestDebugSessions(t *testing.T) {
	mgr, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("a", 50)}})
	before := mgr.NewSession(nil)
	registered := mgr.NewSession(&SessionOptions{Registry: NewRegistry()})
	assert.Nil(t, mgr.debug.Load(), "costs nothing until it is asked for")
	h := mgr.DebugHandler()
	assert.Same(t, h, mgr.DebugHandler())
	d := h.(*debugger)
	kept := mgr.NewSession(nil)
	closed := mgr.NewSession(nil)
	closed.Close()
	for range 10_000 {
		mgr.NewSession(nil)
	}
	runtime.GC()
	soon(t, func() bool { runtime.GC(); return len(d.newest()) == 2 })
	for range 10_000 { // those that are gone make room
		mgr.NewSession(nil)
	}
	assert.Less(t, len(d.sessions), 20_000)
	soon(t, func() bool { runtime.GC(); return len(d.newest()) == 2 })
	text := pageText(t, h, "view=sessions")
	assert.Contains(t, text, "the Manager's own with it 0 0 0")
	assert.Contains(t, text, "session 1 ")
	assert.Contains(t, text, "session 2 ")
	assert.NotContains(t, text, "session 3 ")
	assert.Equal(t, http.StatusNotFound, ask(h, "view=session&session=3").Code)
	registered.Close()
	assert.Len(t, d.newest(), 1)
	for _, s := range []*Session{before, kept, closed} {
		runtime.KeepAlive(s)
	}
}

func TestDebugPlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr := NewManager(&Options{MaxInline: 2})
		var tools []mcpserver.ServerTool
		for i := range 20 {
			tools = append(tools, echoTool(fmt.Sprintf("tool_%02d", i), "Does a chore"))
		}
		require.NoError(t, mgr.AddTools("a", tools...))
		h := mgr.DebugHandler()
		d := h.(*debugger)
		begun := time.Now()
		synctest.Wait()
		assert.Contains(t, pageText(t, h, ""), "Nothing was measured yet.")
		s := mgr.NewSession(nil)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		was := d.plot()
		st := s.Stats().Tokens
		assert.Equal(t, st.All, was.LastAll())
		assert.Equal(t, st.Inline+st.Meta+st.Active+st.Sections+st.Searches, was.LastSent())
		assert.Equal(t, was.LastAll()-was.LastSent(), was.LastSaved())
		s.ActivateTools([]string{"mcp_a__tool_05", "mcp_a__tool_06"})
		time.Sleep(time.Second)
		synctest.Wait()
		now := d.plot()
		st = s.Stats().Tokens
		assert.Equal(t, st.Inline+st.Meta+st.Active+st.Sections+st.Searches, now.LastSent())
		assert.Greater(t, now.LastSent(), was.LastSent())
		assert.Contains(t, pageText(t, h, ""), strings.Join(strings.Fields(fmt.Sprintf("sent %s saved %s", count(now.LastSent()), count(now.LastSaved()))), " "))

		time.Sleep(100 * 24 * time.Hour)
		synctest.Wait()
		d.mu.Lock()
		samples := d.history.samples
		d.mu.Unlock()
		assert.Greater(t, len(samples), maxSamples/2-1)
		assert.LessOrEqual(t, len(samples), maxSamples)
		assert.True(t, samples[0].at.Equal(begun), "it reaches back to the first")
		for i, next := range samples[1:] {
			assert.Positive(t, next.at.Sub(samples[i].at))
		}
		assert.Less(t, time.Since(samples[len(samples)-1].at), 2*24*time.Hour)
		require.NoError(t, mgr.Close()) // what still ran would hang the test
		runtime.KeepAlive(s)
	})
}

// Areas are those of the numbers: each path begins at the upper left and ends at
// the lower left.
func TestDebugPlotIsDrawn(t *testing.T) {
	at := time.Unix(0, 0)
	d := &debugger{}
	d.history.samples = []sample{{at, 1, 100, 20}, {at.Add(time.Second), 1, 100, 50}, {at.Add(4 * time.Second), 1, 40, 60}}
	p := d.plot()
	assert.Equal(t, 100, p.Top)
	assert.Equal(t, "M0.0,160.0L250.0,100.0L1000.0,80.0L1000.0,200.0L250.0,200.0L0.0,200.0Z", p.Sent)
	assert.Equal(t, "M0.0,0.0L250.0,0.0L1000.0,80.0L1000.0,80.0L250.0,100.0L0.0,160.0Z", p.Saved)
	assert.Equal(t, 0, p.Share())
	d.history.samples = d.history.samples[:1]
	assert.Nil(t, d.plot())
	for n, want := range map[int]int{0: 0, 7: 7, 99: 99, 100: 100, 101: 110, 12_345: 13_000} {
		assert.Equal(t, want, roundUp(n), n)
	}
}

// addMany adds n tools, with what a hostile server could do to make a page long.
func addMany(tb testing.TB, mgr *Manager, n int) {
	long := strings.Repeat("<&\"' create an issue ", 60)
	tools := make([]mcpserver.ServerTool, n)
	for i := range tools {
		tools[i] = echoTool(fmt.Sprintf("tool_%05d_%s", i, strings.Repeat("issue_", 8)), long)
	}
	require.NoError(tb, mgr.AddTools("many", tools...))
}

func TestDebugPagesAreBounded(t *testing.T) {
	mgr := NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	for i := range 250 {
		require.NoError(t, mgr.AddTools(fmt.Sprintf("s%03d", i), echoTool("a", "Does nothing")))
	}
	addMany(t, mgr, 9_750)
	h := mgr.DebugHandler()
	var sessions []*Session
	for range 1000 {
		sessions = append(sessions, mgr.NewSession(nil))
	}
	words := strings.Repeat("create <issue> labels comments of an issue ", 90)
	for _, query := range append(allViews(mgr.DeferredTools()[5000].Name(), words), "view=tools&page=100", "view=tools&page=999999", "page=3") {
		begun := time.Now()
		w := ask(h, query)
		took := time.Since(begun)
		require.Equal(t, http.StatusOK, w.Code, "%.50s %.200s", query, w.Body)
		assert.Less(t, w.Body.Len(), 1_000_000, "%.50s", query)
		t.Logf("%6d bytes in %v: %.50s", w.Body.Len(), took, query)
	}
	assert.Contains(t, pageText(t, h, "view=tools&page=100"), "9 901 to 10 000 of 10 000")
	assert.Contains(t, pageText(t, h, "view=tools&page=999999"), "9 901 to 10 000 of 10 000", "the last one")
	assert.Contains(t, pageText(t, h, "view=sessions&page=2"), "101 to 200 of 1 001")
	assert.Equal(t, http.StatusBadRequest, ask(h, "q="+strings.Repeat("x", maxAsked)).Code)
	runtime.KeepAlive(sessions)
}

func BenchmarkDebugPage(b *testing.B) {
	mgr := NewManager(nil)
	b.Cleanup(func() { mgr.Close() })
	addMany(b, mgr, 10_000)
	h := mgr.DebugHandler()
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
	mgr, _ := newTestManager(t, &Options{MaxInline: 5, Trust: TrustQuarantine, Servers: []ServerConfig{inProcess("a", 30)}})
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
		s := mgr.NewSession(&SessionOptions{Registry: NewRegistry()})
		s.ActivateTools([]string{fmt.Sprintf("mcp_a__tool_%03d", i%30)})
		_, _ = s.Call(context.Background(), fmt.Sprintf("mcp_a__tool_%03d", (i+1)%30), nil)
		s.PromptSections(PromptFull)
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
		_ = mgr.SetRules([]Rule{{Name: "r", Patterns: []string{fmt.Sprintf("*%d", i%10)}, Action: RuleExclude}})
		assert.True(t, mgr.RemoveServer(name))
		servers.Add(1)
	})
	for range 2 {
		forever(func(i int) {
			h := mgr.DebugHandler()
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

// A counter that panics costs a sample, not the process.
func TestDebugCounterPanics(t *testing.T) {
	mgr := NewManager(&Options{Tokens: panicking{}})
	require.NoError(t, mgr.AddTools("a", echoTool("b", "c")))
	d := mgr.DebugHandler().(*debugger)
	soon(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.history.samples) > 0
	})
	require.NoError(t, mgr.Close())
}

type panicking struct{}

func (panicking) CountTokens(string) int { panic(errors.New("no vocabulary")) }

func FuzzDebugQuery(f *testing.F) {
	mgr := NewManager(&Options{MaxInline: 3})
	f.Cleanup(func() { mgr.Close() })
	var tools []mcpserver.ServerTool
	for i := range 20 {
		tools = append(tools, echoTool(fmt.Sprintf("tool_%02d", i), "Does "+hostileText))
	}
	require.NoError(f, mgr.AddTools("<a>", tools...))
	h := mgr.DebugHandler()
	for _, query := range append(allViews("mcp_a__tool_00", hostileText),
		"view=tools&server=%3Ca%3E&standing=deferred&sort=tokens&page=2&refresh=3", "q=%00%ff&view=search", "q=a;b", "session=1", "page=99999999999999999999", "refresh=-1", "view=%22%3E") {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
			if _, err := readPage(w.Body.String()); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if w.Body.Len() > 1_000_000 {
			t.Fatalf("%d bytes", w.Body.Len())
		}
	})
}
