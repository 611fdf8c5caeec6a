package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A browser that brings a refusal is told so. One that sends something, or comes to another path, brings
// nothing.
func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	c, err := listen("", "")
	require.NoError(t, err)
	defer c.close()
	got := make(chan url.Values, 1)
	go func() {
		said, err := c.wait(t.Context(), Page{URL: "page"}, "right", func(context.Context, Page) (string, error) { return "", nil })
		assert.NoError(t, err)
		got <- said
	}()
	const refused = "?state=right&error=access_denied"
	for _, asked := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"POST", c.path + refused, 404, "There is nothing here."},
		{"GET", "/other" + refused, 404, "There is nothing here."},
		{"GET", c.path + strings.Replace(refused, "right", "wrong", 1), 400, "This is not the login that is waited for. If another one was begun, finish that: the program has shown its page."},
		{"GET", c.path + refused, 200, "The login was refused. You can close this page."},
	} {
		r, err := http.NewRequestWithContext(t.Context(), asked.method, "http://"+c.listener.Addr().String()+asked.path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body := make([]byte, 1000)
		n, _ := resp.Body.Read(body)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, asked.status, resp.StatusCode, asked)
		assert.Contains(t, string(body[:n]), asked.says)
	}
	assert.Equal(t, "access_denied", (<-got).Get("error"))
}

// What the hook returns is where the browser came to. Without that, somebody has to listen.
func TestWhereTheBrowserCameTo(t *testing.T) {
	t.Parallel()
	c, err := listen("https://a.example/back", "")
	require.NoError(t, err)
	defer c.close()
	require.Nil(t, c.listener)
	broken := errors.New("no display")
	for _, test := range []struct {
		redirected string
		err        error
		want       string
	}{
		{"https://a.example/back?code=c", nil, ""},
		{"https://a.example/back?code=%zz\x7f", nil, "the address that the browser came to is malformed"},
		{"", nil, "OAuth.RedirectURI is not of this machine: the hook that opens the page must return the address that the browser came to"},
		{"https://a.example/back?code=c", broken, "opening the page: no display"},
	} {
		said, err := c.wait(t.Context(), Page{}, "s", func(context.Context, Page) (string, error) { return test.redirected, test.err })
		if test.want == "" {
			assert.NoError(t, err)
			assert.Equal(t, "c", said.Get("code"))
			continue
		}
		assert.EqualError(t, err, test.want)
		assert.Nil(t, said)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	hangs := make(chan struct{})
	defer close(hangs)
	_, err = c.wait(ended, Page{}, "s", func(context.Context, Page) (string, error) { <-hangs; return "", nil })
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "waiting for the browser: ")
}
