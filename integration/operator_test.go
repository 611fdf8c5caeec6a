package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// troubled returns the address of an operator's pages about so many servers, and, if there are
// any, four more that are broken in different ways.
func troubled(t *testing.T, well int, names ...string) string {
	t.Helper()
	var servers []mcphybrid.ServerConfig
	for i := range well {
		name := fmt.Sprintf("%s-team-%02d", nightNames[i%len(nightNames)], i)
		s := mcpserver.NewMCPServer(name, "1", mcpserver.WithToolCapabilities(true))
		for j := range 8 {
			s.AddTool(mcp.NewTool(fmt.Sprintf("list_open_customer_records_%d", j), mcp.WithDescription(fmt.Sprintf("Lists open records of kind %d of the %s", j, name))),
				func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return mcp.NewToolResultText("none"), nil
				})
		}
		servers = append(servers, mcphybrid.ServerConfig{Name: name, InProcess: s})
	}
	if well > 0 {
		refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		t.Cleanup(refuses.Close)
		dies := func(name, words string) mcphybrid.ServerConfig {
			script := filepath.Join(t.TempDir(), name) // arguments are hidden in what it says
			require.NoError(t, os.WriteFile(script, []byte("cat >&2 <<'END'\n"+words+"\nEND\nexit 1\n"), 0o600))
			return mcphybrid.ServerConfig{Name: name, Command: "sh", Args: []string{script}}
		}
		servers = append(servers,
			mcphybrid.ServerConfig{Name: "warehouse_inventory_database", Command: "warehouse-inventory-database-mcp"},
			dies("calendar", "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/@modelcontextprotocol%2fserver-calender\nnpm error 404\nnpm error 404  The requested resource '@modelcontextprotocol/server-calender@*' could not be found or you do not have permission to access it.\nnpm error A complete log of this run can be found in: /home/user/.npm/_logs/2026-11-28T18_43_49_630Z-debug-0.log"),
			mcphybrid.ServerConfig{Name: "crm", URL: refuses.URL, Headers: map[string]string{"Authorization": "Bearer stale-token"}},
			dies("tickets", "Error: JIRA_TOKEN is not set. Set it to your API token."),
		)
	}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: servers, Limits: config.Limits{Reconnect: time.Hour}})
	t.Cleanup(func() { assert.NoError(t, mgr.Close()) })
	srv := httptest.NewServer(debug.Guide{Program: "the gateway", File: "/etc/mcphybrid/mcp.json", Watched: true}.Operator(mgr, names...))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	assert.Equal(t, well > 0, mgr.Start(t.Context()) != nil)
	for _, name := range []string{"mcp_github_team_00__list_open_customer_records_0", "mcp_github_team_00__nothing"} {
		_, _ = mgr.Default().Call(t.Context(), name, nil)
	}
	return srv.URL + "/"
}

// brokenWords is a script that returns names that a line break cuts inside a word.
const brokenWords = `(() => {
	const broken = [];
	for (const e of document.querySelectorAll('h1, h2, tbody th, td[data-label=server], .try, .matters')) {
		const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) {
			const text = walk.currentNode, range = document.createRange();
			for (const m of text.data.matchAll(/[A-Za-z0-9]+/g)) {
				range.setStart(text, m.index); range.setEnd(text, m.index + m[0].length);
				if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) broken.push(text.data);
			}
		}
	}
	return broken;
})()`

// An operator's pages are readable with no server, few and many, of which four are broken.
func TestPageOfOperators(t *testing.T) {
	b := openBrowser(t)
	for _, well := range []int{0, 3, 60} {
		url := troubled(t, well)
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{390, 800, 1440} {
				for _, view := range []string{"overview", "calls", "search", "why"} {
					if view != "overview" && (width == 800) == (scheme == "light") {
						continue // half of the pictures are enough
					}
					at := fmt.Sprintf("operator-%d-%s-%d-%s", well, view, width, scheme)
					b.lookAt(url+"?view="+view, scheme, width)
					assert.Empty(t, eval[[]string](b, tooWide), at)
					assert.Empty(t, eval[[]string](b, narrow), at)
					assert.Empty(t, eval[[]string](b, brokenWords), at)
					assert.Empty(t, b.axe(), at)
					b.shot(at)
				}
			}
		}
		b.lookAt(url, "light", 1440)
		if well < 60 {
			assert.False(t, eval[bool](b, `document.querySelector('.plot') !== null`), "no chart where nothing is saved")
		} else {
			b.shows("saved ")
		}
		if well == 0 {
			b.shows("No servers. Add one to /etc/mcphybrid/mcp.json")
			continue
		}
		b.shows("program not found: warehouse-inventory-database-mcp", "npm: package not found (404): @modelcontextprotocol/server-calender",
			"the token in its header was refused", "it ended: Error: JIRA_TOKEN is not set. Set it to your API token.", "The file is read again at once.")
		assert.Zero(t, eval[int](b, `document.body.innerText.split('npm error').length - 1`), "the noise is behind a fold")

		// What is opened stays open while the page follows, and example queries find something.
		b.shows("Live.")
		b.do(chromedp.Click(chromedp.CSS(`details[data-of=calendar] summary`)))
		b.shows("npm error code E404")
		b.do(chromedp.Click(chromedp.CSS(`button[aria-label="Restart: tickets"]`)))
		b.shows("Restart of server tickets failed: it ended: Error: JIRA_TOKEN is not set.", "Live.")
		b.lookAt(url+"?view=search", "light", 1440)
		b.do(chromedp.Click(chromedp.CSS(`.try a`)))
		b.shows("score", "list_open_customer_records")
		b.lookAt(url+"?view=why", "light", 1440)
		b.do(chromedp.Click(chromedp.CSS(`.try a`)))
		b.shows("mcp_github_team_00__nothing", "The catalog has no such tool.")
	}
}

// Times are those of the visitor, and UTC without a script.
func TestPageTimes(t *testing.T) {
	url := troubled(t, 1)
	b := openBrowser(t)
	tell(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	b.lookAt(url, "light", 1440)
	const since = `document.querySelector('.matters time')`
	at, err := time.Parse(time.RFC3339, eval[string](b, since+`.getAttribute('datetime')`))
	require.NoError(t, err)
	kolkata := time.FixedZone("", int((5*time.Hour + 30*time.Minute).Seconds()))
	clean := func(s string) string { return strings.ReplaceAll(s, "\u202f", " ") }
	assert.Equal(t, at.In(kolkata).Format("Jan 2, 2006, 3:04:05 PM"), clean(eval[string](b, since+`.textContent`)))
	assert.Equal(t, at.Format(time.DateTime)+" UTC", eval[string](b, since+`.title`))
	b.shows("Times are those of Asia/", "Live.")
	b.do(chromedp.Click(chromedp.CSS(`button[aria-label="Restart: tickets"]`)))
	b.shows("Restart of server tickets failed", "Live.")
	assert.Equal(t, at.In(kolkata).Format("Jan 2, 2006, 3:04:05 PM"), clean(eval[string](b, since+`.textContent`)), "also when the page follows")

	tell(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Navigate(url))
	tell(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	b.shows("Times are UTC.", at.Format(time.DateTime)+" UTC")
}

// A button works on a page that a browser trusts little, over HTTP under a name.
func TestButtonOverPlainHTTP(t *testing.T) {
	url := troubled(t, 1, plainHost)
	b := openBrowser(t)
	b.lookAt(strings.Replace(url, "127.0.0.1", plainHost, 1), "light", 800)
	b.do(chromedp.Click(chromedp.CSS(`button[aria-label="Restart: tickets"]`)))
	b.shows("Restart of server tickets failed: it ended: ")
}
