package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an operator reads names the key of the file that mends it, and says how the program
// learns of it only if it knows.
func TestAdvice(t *testing.T) {
	t.Parallel()
	g := Guide{Program: "the gateway", File: "/etc/mcp.json", Watched: true, Login: "mcphybrid login"}
	for kind, want := range map[string]string{
		cause.Program: `Install the program and restart the server. Or correct "command" of "crm" in /etc/mcp.json: its whole path works in any case. The file is read again at once.`,
		cause.Folder:  `"cwd" of "crm" in /etc/mcp.json`, cause.Package: `"args" of "crm" in /etc/mcp.json`, cause.Token: `"headers" of "crm" in /etc/mcp.json`,
		cause.Registry: "this machine reaches the registry", cause.Status: `"url" of "crm" in /etc/mcp.json`, cause.Address: `"url" of "crm" in /etc/mcp.json`, cause.Foreign: `"url" or "command" of "crm"`,
		cause.Unset:   "Set them where the gateway is started, and start it again. Or write the value into /etc/mcp.json. The file is read again at once.",
		cause.Line:    "Correct it in /etc/mcp.json. The file is read again at once.",
		cause.Timeout: `"startup_timeout_sec" of "crm" in /etc/mcp.json`, cause.Exit: `Variables go into "env" of "crm" in /etc/mcp.json, as in {"NAME": "value"}, arguments into "args"`, cause.Output: `"command" of "crm" in /etc/mcp.json is an MCP server that speaks over standard input and output`, cause.Killed: "perhaps for want of memory", cause.Login: `as in {"Authorization": "Bearer TOKEN"}, where ${NAME} stands for a variable that the gateway was started with. The file is read again at once. On the machine of the gateway, this logs in, too: mcphybrid login`, "": "its author may know more",
	} {
		assert.Contains(t, g.advice(snapshot.Server{Name: "crm", Cause: snapshot.Cause{Kind: kind}}), want, kind)
	}
	killed := snapshot.Server{Cause: snapshot.Cause{Kind: cause.Killed}}
	assert.NotContains(t, g.advice(killed), "by itself")
	killed.Retry = time.Now()
	assert.Contains(t, g.advice(killed), "It is tried again by itself.")
	crm := snapshot.Server{Name: "crm", Cause: snapshot.Cause{Kind: cause.Package}}
	g.Watched = false
	assert.Equal(t, `Correct the name or version in "args" of "crm" in /etc/mcp.json. Then restart the gateway: it reads the file at its start.`, g.advice(crm))
	assert.Equal(t, `Correct the name or version in "args" of "crm" in the configuration.`, Guide{}.advice(crm))
	assert.Equal(t, `Log in. If the server offers no login, put a token into "headers" of "crm" in the configuration, as in {"Authorization": "Bearer TOKEN"}, where ${NAME} stands for a variable that this program was started with.`, Guide{}.advice(snapshot.Server{Name: "crm", Cause: snapshot.Cause{Kind: cause.Login}}))
	assert.Equal(t, "Add one to /etc/mcp.json, as here. Then restart the gateway: it reads the file at its start.", g.empty())
	cfg, err := config.Parse([]byte(firstServer), "mcp.json", nil)
	require.NoError(t, err)
	require.Len(t, cfg.Servers, 1)
	assert.Equal(t, "memory", cfg.Servers[0].Name)
}

// A patient is a Manager whose servers take as long as a test wants.
type patient struct {
	*mcphybrid.Manager
	wait   chan error
	begun  atomic.Int64
	logins *Logins
}

func (p *patient) Restart(ctx context.Context, _ string) error {
	p.begun.Add(1)
	select {
	case err := <-p.wait:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *patient) Login(ctx context.Context, server string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := p.logins.Open(ctx, mcphybrid.LoginPage{Server: server, URL: "https://login.example/authorize?state=secretstate&x=1"})
	if err != nil {
		return err
	}
	return p.Restart(ctx, server)
}

func press(h http.Handler, query string) (status int) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/?"+query, nil))
	return w.Code
}

func shown(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	return w.Body.String()
}

// A button that takes long is answered soon; it goes on, is not done twice, and the host and
// the pages are told what came of it, for a while.
func TestButtonsThatTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patient{Manager: mcphybrid.NewManager(nil), wait: make(chan error), logins: new(Logins)}
		defer p.Close()
		var mu sync.Mutex
		var done []string
		h := Guide{Program: "the gateway", Logins: p.logins, Done: func(ctx context.Context, a Action, err error) {
			assert.NoError(t, ctx.Err())
			mu.Lock()
			defer mu.Unlock()
			done = append(done, fmt.Sprint(a, " ", err))
		}}.Operator(p)
		begun := time.Now()
		assert.Equal(t, http.StatusSeeOther, press(h, "do=restart&of=slow"))
		assert.Equal(t, deedPatience, time.Since(begun))
		assert.Contains(t, shown(h), "Restart of server slow <b class=\"warn\">is under way</b>")
		assert.Equal(t, http.StatusSeeOther, press(h, "do=restart&of=slow"))
		assert.Equal(t, deedPatience, time.Since(begun), "it is under way already")
		assert.EqualValues(t, 1, p.begun.Load())
		p.wait <- errors.New(`mcphybrid: restart of server "slow": no disk`)
		synctest.Wait()
		assert.Equal(t, []string{`{restart slow } mcphybrid: restart of server "slow": no disk`}, done)
		assert.Contains(t, shown(h), `Restart of server slow <span class="bad">failed: no disk</span>`)
		time.Sleep(shownFor + time.Second)
		assert.NotContains(t, shown(h), "Restart of server slow")

		// A login says where, until it is over.
		press(h, "do=login&of=crm")
		page := shown(h)
		assert.Contains(t, page, `Login to server crm <b class="warn">is under way</b>: <a href="https://login.example/authorize?state=secretstate&amp;x=1" target="_blank" rel="noopener noreferrer">log in</a> at login.example, with a browser on the machine of the gateway`)
		p.wait <- nil
		synctest.Wait()
		assert.NotContains(t, shown(h), "login.example")
		assert.Contains(t, shown(h), `Login to server crm <span class="good">is done</span>`)

		// There is a limit, and none goes on for ever.
		for i := range maxRunning {
			go press(h, fmt.Sprintf("do=restart&of=s%02d", i))
		}
		synctest.Wait()
		assert.Equal(t, http.StatusServiceUnavailable, press(h, "do=restart&of=more"))
		p.wait <- nil
		synctest.Wait()
		assert.Equal(t, maxRunning-1, strings.Count(shown(h), "is under way"), "the others go on")
		go press(h, "do=restart&of=more")
		time.Sleep(deedTimeout + time.Second)
		assert.Equal(t, maxDone, strings.Count(shown(h), "failed: "))
		assert.Len(t, done, 3+maxRunning)
	})
}

// A login that nobody makes ends after five minutes, and the page says so.
func TestNobodyLogsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patient{Manager: mcphybrid.NewManager(nil), wait: make(chan error), logins: new(Logins)}
		defer p.Close()
		h := Guide{Logins: p.logins}.Operator(p)
		press(h, "do=login&of=crm")
		time.Sleep(5*time.Minute - deedPatience - time.Second)
		assert.Contains(t, shown(h), `Login to server crm <b class="warn">is under way</b>: <a href="https://login.example`)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Contains(t, shown(h), `Login to server crm <span class="bad">failed: nobody logged in within 5 minutes: press the button again</span>`)
		assert.NotContains(t, shown(h), "login.example", "that page leads nowhere now")
	})
}

// A login that begins anew shows its page, and too many logins are refused.
func TestLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(Logins)
		_, ok := (*Logins)(nil).page("", "crm")
		assert.False(t, ok)
		ctx, end := context.WithCancel(t.Context())
		first, second := mcphybrid.LoginPage{Server: "crm", URL: "https://a.example/1"}, mcphybrid.LoginPage{Server: "crm", URL: "https://a.example/2"}
		_, err := l.Open(ctx, first)
		require.NoError(t, err)
		again, endAgain := context.WithCancel(t.Context())
		_, err = l.Open(again, second)
		require.NoError(t, err)
		end()
		synctest.Wait()
		for i := range maxLogins - 1 {
			_, err := l.Open(t.Context(), mcphybrid.LoginPage{Server: fmt.Sprint(i)})
			require.NoError(t, err)
		}
		_, err = l.Open(t.Context(), mcphybrid.LoginPage{Server: "more"})
		assert.EqualError(t, err, "32 logins are under way, which is the limit")
		page, ok := l.page("", "crm")
		assert.True(t, ok)
		assert.Equal(t, second, page)
		_, ok = l.page("ann", "crm")
		assert.False(t, ok, "hers is another one")
		endAgain()
		synctest.Wait()
		_, ok = l.page("", "crm")
		assert.False(t, ok, "it has ended")
		_, err = l.Open(t.Context(), mcphybrid.LoginPage{Server: "more"})
		assert.NoError(t, err)
	})
}

// Names break behind their separators, whatever is in them.
func TestNamesBreak(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "git": "git", "mcp_git__log": "mcp_<wbr>git__<wbr>log", "a/b-c.": "a/<wbr>b-<wbr>c.", "it ended: @x/y": "it ended: @x/<wbr>y", "in /etc/mcp.json": `in <span class="root">/e</span>tc/<wbr>mcp.<wbr>json`, "//x": "//<wbr>x", "a / b": "a / b", "<b>_é&": "&lt;b&gt;_<wbr>é&amp;",
	} {
		assert.Equal(t, want, string(name(in)))
	}
	at := time.Date(2026, 11, 28, 20, 1, 2, 0, time.FixedZone("x", 3600))
	assert.Equal(t, `<time datetime="2026-11-28T19:01:02Z" data-as="date">2026-11-28 19:01:02 UTC</time>`, string(date(at)))
	assert.Equal(t, `<time datetime="2026-11-28T19:01:02Z" data-as="clock">19:01:02 UTC</time>`, string(clock(at)))
}
