package integration

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	stdruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/debug"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// browserVariable names the environment variable with the program of a
	// Chromium, shotsVariable the one with a directory for screenshots. Without
	// it, that is a temporary directory.
	browserVariable = "MCPHYBRID_CHROMIUM"
	shotsVariable   = "MCPHYBRID_SCREENSHOTS"

	// plainHost is a name of this machine that a browser does not take for one, so that it
	// trusts a page there over HTTP less than one of loopback.
	plainHost = "ops.test"

	// browserPatience is enough for a browser that starts on a busy machine.
	browserPatience = time.Minute
)

// A browser is a headless Chromium with one open page, and what that page did
// besides showing itself.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	noise   []string // dialogs, logs and exceptions
	fetched []string // addresses
}

// openBrowser starts a browser that ends with the test. Without one the test is
// skipped.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := os.Getenv(browserVariable)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skipf("no Chromium: install one, such as Debian's package chromium, or name the program by %s", browserVariable)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(browserPatience),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP "+plainHost+" 127.0.0.1"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root can't have a sandbox
	}
	ctx, cancel := context.WithTimeout(t.Context(), browserPatience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(context.WithoutCancel(ctx), options...)
	t.Cleanup(cancel)
	b := &browser{t: t}
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(b.ctx)) }) // and waits for its processes
	require.NoError(t, chromedp.Listen(b.ctx, b.listen))
	tell(b, log.Enable, cdp.Empty{})
	tell(b, network.Enable, network.EnableParams{})
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *page.EventJavascriptDialogOpening:
		b.noise = append(b.noise, "dialog: "+event.Message)
		go chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // it would block everything
	case *log.EventEntryAdded:
		b.noise = append(b.noise, "log: "+event.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		b.noise = append(b.noise, "console: "+string(event.Type))
	case *runtime.EventExceptionThrown:
		b.noise = append(b.noise, "exception: "+event.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
		b.fetched = append(b.fetched, event.Request.URL)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// tell sends the browser a command that has no step.
func tell[P, R any](b *browser, c cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	_, err := chromedp.Call(ctx, c, params)
	require.NoError(b.t, err)
}

// eval returns the value of a script. The page's own policy does not apply to
// the script.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	require.NoError(b.t, err)
	return v
}

// shows waits until the page has all of texts. The page may reload itself
// meanwhile.
func (b *browser) shows(texts ...string) {
	b.t.Helper()
	var body string
	has := func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
		defer cancel()
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
		if err != nil {
			return false // the page is loading
		}
		body = text
		for _, text := range texts {
			if !strings.Contains(body, text) {
				return false
			}
		}
		return true
	}
	if !assert.Eventually(b.t, has, browserPatience, 50*time.Millisecond) {
		b.t.Fatalf("the page has not %q:\n%s", texts, body)
	}
}

// shot writes a screenshot of the whole page.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		dir = filepath.Join(runDir, "screenshots")
	}
	require.NoError(b.t, os.MkdirAll(dir, 0o755))
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// dimTexts is a script that returns the number of texts, and those with a
// contrast below 4.5 as the web's accessibility guidelines compute it.
const dimTexts = `(() => {
	const rgb = color => color.match(/[\d.]+/g).map(Number);
	const luminance = color => {
		const [r, g, b] = rgb(color).slice(0, 3).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const back = e => {
		for (; e; e = e.parentElement) {
			const color = getComputedStyle(e).backgroundColor, alpha = rgb(color)[3] ?? 1;
			if (alpha === 1) return color;
			if (alpha !== 0) throw new Error('a background that is half seen: ' + color);
		}
		return 'rgb(255, 255, 255)';
	};
	const dim = [];
	let n = 0;
	const check = (e, text, pseudo) => {
		const style = getComputedStyle(e, pseudo), a = luminance(style.color), b = luminance(back(e));
		if (style.opacity !== '1') throw new Error('half seen: ' + text);
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		n++;
		if (ratio < 4.5) dim.push(ratio.toFixed(2) + ' ' + text.slice(0, 40));
	};
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
		if (text && e.getClientRects().length) check(e, text);
	}
	for (const e of document.querySelectorAll('input:not([type=hidden])')) check(e, e.value || e.placeholder, e.value ? null : '::placeholder');
	for (const e of document.querySelectorAll('[data-label]')) if (getComputedStyle(e, '::before').content !== 'none') check(e, e.dataset.label, '::before');
	return {n, dim, back: luminance(back(document.body))};
})()`

// tooWide is a script that returns the elements that end to the right of the
// window.
const tooWide = `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== 'inline' && e.tagName !== 'INPUT')
	.map(e => e.tagName + ' ' + e.className).concat(document.documentElement.scrollWidth > innerWidth ? ['the page'] : [])`

func TestDebugPageInBrowser(t *testing.T) {
	const evil = `Notes <script>document.title = "owned"; alert("owned")</script><img src=x onerror="alert('owned')">"><svg onload=alert(1)>` + "\u202etxt.exe"
	path := writeConfig(t, memory(filepath.Join(t.TempDir(), "memory.jsonl")), everything(), filesystem(t.TempDir()))
	mgr := loadManagerThat(t, path, mcphybrid.Options{Limits: config.Limits{Reconnect: time.Hour}, Inline: mcphybrid.InlineOptions{Max: 10}, Trust: mcphybrid.TrustQuarantine})
	require.NoError(t, mgr.Start(t.Context()))
	require.NoError(t, mgr.AddTools("evil", mcpserver.ServerTool{Tool: mcp.Tool{
		Name: "jot<script>", Title: evil, Description: evil,
		InputSchema: mcp.ToolInputSchema{Type: "object", Properties: map[string]any{"a": map[string]any{"type": "string", "description": evil}}},
	}}))
	srv := httptest.NewServer(debug.Handler(mgr))
	t.Cleanup(srv.Close)
	sess := mgr.NewSession(nil)
	sess.SetIntent("remember people")
	found := sess.Search("create entities", 3)
	require.NotEmpty(t, found)
	for _, hit := range found {
		sess.ActivateTools([]string{hit.Tool.Name()})
	}
	call(t, sess, "mcp_memory__read_graph", nil)
	b := openBrowser(t)

	// The page follows a server that goes down and comes back.
	b.do(chromedp.Navigate(srv.URL))
	b.shows("servers ready\n3 of 3", "sent")
	state := `[...document.querySelectorAll('tbody tr')].find(r => r.innerText.startsWith('memory')).querySelector('.state').innerText`
	assert.Equal(t, "ready", eval[string](b, state))
	require.NoError(t, syscall.Kill(child(t, "server-memory").pid, syscall.SIGKILL))
	b.shows("servers ready\n2 of 3", "killed")
	call(t, sess, "mcp_memory__read_graph", nil)
	b.shows("servers ready\n3 of 3")
	b.do(chromedp.Navigate(srv.URL))
	assert.Equal(t, "ready", eval[string](b, state))

	// It searches like a person.
	b.do(chromedp.Click(chromedp.CSS(`nav a[href*=search]`)), chromedp.WaitVisible(chromedp.CSS(`input[name=q]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=q]`), "jot an alert"+kb.Enter))
	b.shows("jot", "score", "description", "Notes <script>")
	b.do(chromedp.Click(chromedp.CSS(`.hits a`)))
	b.shows("deferred", "name at the server", "Notes <script>document.title", "Input schema")

	// A server's texts stay text, even without the policy.
	tool := eval[string](b, `location.href`)
	for _, bypass := range []bool{false, true} {
		tell(b, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: bypass})
		for _, address := range []string{tool, srv.URL + "/?view=tools&server=evil", srv.URL + "/?view=search&q=alert"} {
			b.do(chromedp.Navigate(address))
			b.shows(`Notes <script>document.title = "owned"; alert("owned")</script>`)
			assert.LessOrEqual(t, eval[int](b, `document.scripts.length`), 1, "our own")
			assert.Zero(t, eval[int](b, `document.querySelectorAll('main script, img, main svg:not(.bar), [onload], [onerror]').length`))
			assert.NotEqual(t, "owned", eval[string](b, `document.title`))
			assert.NotContains(t, eval[string](b, `document.body.innerText`), "\u202e")
		}
	}
	tell(b, page.SetBypassCSP, page.SetBypassCSPParams{})

	// The page is readable on a phone and on a desktop, in light and dark.
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"phone": 390, "desk": 1280} {
			tell(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			tell(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 844, DeviceScaleFactor: 2, Mobile: name == "phone"})
			for view, query := range map[string]string{
				"overview": "", "tools": "view=tools", "tool": strings.SplitN(tool, "?", 2)[1], "search": "view=search&q=read+a+file",
				"sessions": "view=sessions", "session": "view=session&session=1", "attention": "view=attention", "calls": "view=calls", "why": "view=why&name=read", "error": "view=session&session=9",
			} {
				at := strings.Join([]string{view, name, scheme}, "-")
				b.do(chromedp.Navigate(srv.URL + "/?" + query))
				b.shows("mcphybrid")
				assert.EqualValues(t, width, eval[int](b, `innerWidth`), at)
				assert.Empty(t, eval[[]string](b, tooWide), at)
				seen := eval[struct {
					N    int
					Dim  []string
					Back float64
				}](b, dimTexts)
				assert.Empty(t, seen.Dim, at)
				assert.Greater(t, seen.N, 5, at)
				assert.Equal(t, scheme == "dark", seen.Back < 0.2, at)
				b.shot(at)
			}
		}
	}

	stdruntime.KeepAlive(sess)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noise = slices.DeleteFunc(b.noise, func(n string) bool { return strings.Contains(n, "status of 404") }) // session 9
	assert.Empty(t, b.noise)
	for _, address := range b.fetched {
		assert.True(t, strings.HasPrefix(address, srv.URL+"/") || address == "data:,", address)
	}
}
