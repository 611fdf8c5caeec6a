package login

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A waiting login is one whose page is open.
type waiting struct {
	page  string
	end   context.CancelFunc
	ended chan error
}

// begin begins a login of the account, and returns when its page is open.
func begin(t *testing.T, a *Account) waiting {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := waiting{end: end, ended: make(chan error, 1)}
	pages := make(chan string, 1)
	go func() {
		w.ended <- a.Login(ctx, func(_ context.Context, page Page) (string, error) {
			pages <- page.URL
			return "", nil
		})
	}()
	select {
	case w.page = <-pages:
	case err := <-w.ended:
		require.NoError(t, err)
	}
	return w
}

// Of logins to one server that overlap, in one process or in several, each can be finished at its
// own page. The one that was finished last counts, and one that was not finished changes nothing.
func TestLoginsOverlap(t *testing.T) {
	t.Parallel()
	for _, separate := range []bool{false, true} {
		authority := mcptest.NewAuthority(t, http.NotFoundHandler())
		folder := store.FileTokens(t.TempDir())
		process := func() *Account {
			a := New(Config{URL: authority.Server, Key: "k", Store: folder, HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(a.Close)
			return a
		}
		of := func(a *Account) string {
			header, err := a.Header(t.Context(), nil)
			require.NoError(t, err)
			return header
		}
		first := process()
		second := first
		if separate {
			second = process()
		}
		for _, isKnown := range []bool{false, true} { // the client, by whose address the second can't wait
			a, b := begin(t, first), begin(t, second)
			mcptest.Browse(t, a.page)
			require.NoError(t, <-a.ended, "its state is known: %v", isKnown)
			granted := of(process())
			assert.NotEmpty(t, granted)
			b.end()
			require.Error(t, <-b.ended)
			assert.Equal(t, granted, of(process()), "the other one was given up")

			a, b = begin(t, first), begin(t, second)
			mcptest.Browse(t, b.page)
			require.NoError(t, <-b.ended)
			assert.NotEqual(t, granted, of(process()))
			granted = of(process())
			mcptest.Browse(t, a.page)
			require.NoError(t, <-a.ended)
			assert.NotEqual(t, granted, of(process()), "it was finished last")
			assert.Equal(t, of(process()), of(first))
		}
	}
}

// What a login was granted that ended while another one waited is asked for by the login after
// that, if the other one was granted less. Nothing of its tokens is left: the other may be of
// somebody else.
func TestOverlappingLoginLacksScopes(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	folder := store.FileTokens(t.TempDir())
	process := func() *Account {
		a := New(Config{OAuth: config.OAuth{ClientID: "ours"}, URL: authority.Server, Key: "k", Store: folder, HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(a.Close)
		return a
	}
	first, second := process(), process()
	narrow := begin(t, second)
	wide := begin(t, first)
	authority.Mu.Lock()
	authority.Grant = func(string) string { return "read write more" }
	authority.Mu.Unlock()
	mcptest.Browse(t, wide.page)
	require.NoError(t, <-wide.ended)
	authority.Mu.Lock()
	authority.Grant = nil
	authority.Mu.Unlock()
	mcptest.Browse(t, narrow.page)
	require.NoError(t, <-narrow.ended)
	r, err := process().stored(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"read", "write"}, r.Scopes)
	assert.Equal(t, []string{"more"}, r.Wanted)
	again := begin(t, first)
	assert.Contains(t, again.page, "scope=read+write+more")
	mcptest.Browse(t, again.page)
	require.NoError(t, <-again.ended)
	r, err = process().stored(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"read", "write", "more"}, r.Scopes)
	assert.Empty(t, r.Wanted)
}

// The page of a login that is over says so, where the next one waits at its address; and a second
// login that has to wait at the same address says what is in the way.
func TestLoginsAtOneAddress(t *testing.T) {
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	at, err := listen("", "")
	require.NoError(t, err)
	at.close()
	process := func() *Account {
		a := New(Config{OAuth: config.OAuth{ClientID: "ours", RedirectURI: at.address}, URL: authority.Server, Key: "k", Store: store.FileTokens(t.TempDir()), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(a.Close)
		return a
	}
	over := begin(t, process())
	err = process().Login(t.Context(), func(context.Context, Page) (string, error) { return "", nil })
	assert.ErrorContains(t, err, "OAuth.RedirectURI")
	mcptest.SkipUnlessUnix(t)
	assert.ErrorContains(t, err, "another login may be waiting there; finish it, or end it and try again")
	over.end()
	require.Error(t, <-over.ended)

	next := begin(t, process())
	resp, err := http.Get(over.page)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
	assert.Contains(t, string(body), "If another one was begun, finish that")
	mcptest.Browse(t, next.page)
	assert.NoError(t, <-next.ended)
}

// When a login has returned, its address is free, whatever still goes on in it: the next one may
// have to wait there.
func TestAddressIsFreeAfterALogin(t *testing.T) {
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	at, err := listen("", "")
	require.NoError(t, err)
	at.close()
	a := New(Config{OAuth: config.OAuth{ClientID: "ours", RedirectURI: at.address}, URL: authority.Server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
	defer a.Close()
	ctx, end := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	a.Hold = func(string, []string) { // while the login listens
		end()
		<-goOn
	}
	err = a.Login(ctx, func(context.Context, Page) (string, error) { return "", nil })
	require.ErrorIs(t, err, context.Canceled)
	next, err := listen(at.address, "")
	close(goOn)
	require.NoError(t, err)
	next.close()
}

// A login that waits for the browser ends with its account, before Close returns: the browser finds
// nothing there, and no code is sent anywhere.
func TestLoginEndsWithItsAccount(t *testing.T) {
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	a := New(Config{OAuth: config.OAuth{ClientID: "ours"}, URL: authority.Server, Key: "k", Store: new(Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
	w := begin(t, a)
	a.Close()
	u, err := url.Parse(w.page)
	require.NoError(t, err)
	next, err := listen(u.Query().Get("redirect_uri"), "")
	require.NoError(t, err, "its address is free")
	next.close()
	w.end()
	assert.Equal(t, errClosed, <-w.ended)
}
