package debug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A hostileText would run, or look like something else, if it were not escaped
// and cleaned.
const hostileText = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> javascript:alert(3) </style></pre></textarea>{{.}}\u202egnp.exe\u200b \x1b[31m\x00\x07 &lt;b&gt; \ufeff%00 ?q=\"&x"

func TestDebugEscapes(t *testing.T) {
	mgr := start(t, &mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Servers: []mcphybrid.ServerConfig{
		serving("plain", echoTool("fetch", "Fetches a page")),
	}})
	require.NoError(t, mgr.AddTools("<b onclick=x>&\"' \u202e", mcpserver.ServerTool{Tool: mcp.Tool{
		Name: "alert\u202e<script>", Title: hostileText, Description: "Alerts " + hostileText,
		InputSchema: mcp.ToolInputSchema{Type: "object", Properties: map[string]any{
			hostileText: map[string]any{"type": "string", "description": hostileText},
		}},
	}}))
	require.Error(t, mgr.AddServer(t.Context(), mcphybrid.ServerConfig{Name: "failing", URL: "http://127.0.0.1:1/" + url.PathEscape("<script>")}))
	h := debug.Handler(mgr)
	name := mgr.DeferredTools()[1].Name()
	for _, query := range []string{
		"", "view=tools", "view=tools&sort=name", "view=tool&name=" + url.QueryEscape(name), "view=search&q=alert+script+img",
		"view=search&q=" + url.QueryEscape(hostileText), "view=tools&q=" + url.QueryEscape(hostileText) + "&server=" + url.QueryEscape(hostileText),
		"view=sessions", "view=session", "view=attention", "view=calls", "view=users", "view=why&name=" + url.QueryEscape(hostileText), "view=why&name=" + name + "&q=" + url.QueryEscape(hostileText), "refresh=5",
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
		assert.Contains(t, text, "Page not found", query)
	}
}

// allViews are queries for every kind of page.
func allViews(tool, words string) []string {
	return []string{
		"", "view=tools", "view=tools&sort=tokens", "view=tool&name=" + url.QueryEscape(tool), "view=search&q=" + url.QueryEscape(words),
		"view=search&q=select:" + url.QueryEscape(tool), "view=sessions", "view=session", "view=attention", "view=calls", "view=users",
		"view=why&name=" + url.QueryEscape(tool) + "&q=" + url.QueryEscape(words), "view=why&name=" + url.QueryEscape(words),
	}
}

func TestDebugShowsNoSecrets(t *testing.T) {
	const secret = "sk-Live7x-quiteunlikely"
	said := "It uses " + secret + ", " + url.QueryEscape(secret) + ", sk-\u200bLive7x-quite\u202eunlikely and " + strings.Repeat("\u200b", 400) + secret
	cfg := child(t, "raw", "raw")
	cfg.Env["API_TOKEN"] = secret
	cfg.Env["LIST"] = jsonText(t, map[string]any{"tools": []any{
		map[string]any{"name": "say", "title": said, "description": said, "inputSchema": map[string]any{"type": "object", "description": said,
			"title": json.RawMessage(`"sk-Li\udb40\udc41ve7x\u002dqui\u202eteunlikely"`)}},
		map[string]any{"name": secret, "description": strings.Repeat("x", 8*160+1<<10-12) + secret},
		map[string]any{"name": 1, secret: said},
		map[string]any{"name": said},
	}})
	failing := child(t, "failing", "confess")
	failing.Env["API_TOKEN"] = secret
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}, Limits: config.Limits{Reconnect: -1}, Servers: []mcphybrid.ServerConfig{cfg, failing}})
	defer mgr.Close()
	require.Error(t, mgr.Start(t.Context()))
	h := debug.Handler(mgr)
	require.Len(t, mgr.DeferredTools(), 3)
	shown := ""
	for _, tool := range mgr.DeferredTools() {
		for _, query := range append(allViews(tool.Name(), "uses"), "view=search&q=quitenow+unlikly+live7+uses", "view=search&q="+secret) {
			text, err := readPage(ask(h, query).Body.String()) // there is no page of a tool whose name has a secret
			require.NoError(t, err)
			assert.NotContains(t, text, secret, query)
			if strings.Contains(query, secret) {
				continue // the asker knows it and sees which words were found
			}
			for _, piece := range []string{"Live7x", "quiteun", "unlikely"} {
				assert.NotContains(t, text, piece, query)
			}
			shown += text
		}
	}
	assert.Contains(t, shown, "It uses [hidden]")
	assert.Contains(t, shown, "failing")
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// addMany adds n tools whose texts are as long as a hostile server can make
// them.
func addMany(tb testing.TB, mgr *mcphybrid.Manager, n int) {
	long := strings.Repeat("<&\"' create an issue ", 60)
	tools := make([]mcpserver.ServerTool, n)
	for i := range tools {
		tools[i] = echoTool(fmt.Sprintf("tool_%05d_%s", i, strings.Repeat("issue_", 8)), long)
	}
	require.NoError(tb, mgr.AddTools("many", tools...))
}

func TestDebugPagesAreBounded(t *testing.T) {
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	for i := range 250 {
		require.NoError(t, mgr.AddTools(fmt.Sprintf("s%03d", i), echoTool("a", "Does nothing")))
	}
	addMany(t, mgr, 9_750)
	h := debug.Handler(mgr)
	var sessions []*mcphybrid.Session
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
	assert.Equal(t, http.StatusBadRequest, ask(h, "q="+strings.Repeat("x", 8<<10)).Code)
	runtime.KeepAlive(sessions)
}

func FuzzDebugQuery(f *testing.F) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 3}})
	f.Cleanup(func() { mgr.Close() })
	var tools []mcpserver.ServerTool
	for i := range 20 {
		tools = append(tools, echoTool(fmt.Sprintf("tool_%02d", i), "Does "+hostileText))
	}
	require.NoError(f, mgr.AddTools("<a>", tools...))
	h := debug.Handler(mgr)
	for _, query := range append(allViews("mcp_a__tool_00", hostileText),
		"view=tools&server=%3Ca%3E&standing=deferred&sort=tokens&page=2&refresh=3", "q=%00%ff&view=search", "q=a;b", "view=calls&live=1", "session=1", "page=99999999999999999999", "refresh=-1", "view=%22%3E") {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a stream sends one page then
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
			body := w.Body.String()
			if w.Header().Get("Content-Type") == "text/event-stream" {
				body = strings.ReplaceAll(strings.TrimPrefix(body, "data: "), "\ndata: ", "\n")
			}
			if _, err := readPage(body); err != nil {
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
