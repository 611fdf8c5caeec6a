package login

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a store has that can't be written is used. What can't be saved counts in the process, and
// is told once.
func TestUnwritableStore(t *testing.T) {
	t.Parallel()
	tokens := new(flaky)
	first, authority := account(t, tokens)
	tokens.fail = true
	log := new(mcptest.Log)
	process := func() *Account {
		cfg := first.cfg
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		a := New(cfg)
		t.Cleanup(a.Close)
		return a
	}
	a := process()
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, header)
	for range 3 {
		next, err := a.Header(t.Context(), &Refusal{Header: header})
		require.NoError(t, err)
		require.NotEmpty(t, next)
		require.NotEqual(t, header, next)
		header = next
	}
	assert.Equal(t, mcptest.Counts{Clients: 1, Refreshes: 3}, authority.Count())
	assert.Equal(t, 1, strings.Count(log.String(), `it can't be saved" error="the disk is full"`))

	// The refresh token that is stored is spent: that is a login that is over, not a failure.
	again := process()
	header, err = again.Header(t.Context(), nil)
	require.NoError(t, err)
	header, err = again.Header(t.Context(), &Refusal{Header: header})
	require.NoError(t, err)
	assert.Empty(t, header)
}

// A login that can't be saved says so, and counts until the account is closed, also when its token
// has to be refreshed.
func TestLoginThatIsNotSaved(t *testing.T) {
	t.Parallel()
	tokens := &flaky{fail: true}
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	log := new(mcptest.Log)
	a := New(Config{URL: authority.Server, Key: "k", Store: tokens, HTTP: http.DefaultTransport, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(a.Close)
	err := a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
		mcptest.Browse(t, page.URL)
		return "", nil
	})
	assert.EqualError(t, err, "the login counts only until this program ends: the disk is full")
	assert.ErrorAs(t, err, new(*UnsavedError))
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, header)
	next, err := a.Header(t.Context(), &Refusal{Header: header})
	require.NoError(t, err)
	require.NotEmpty(t, next)
	assert.Empty(t, log.String(), "the login has said it")

	tokens.fail = false
	last, err := a.Header(t.Context(), &Refusal{Header: next})
	require.NoError(t, err)
	require.NoError(t, tokens.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
		var r record
		assert.NoError(t, json.Unmarshal(document, &r))
		assert.Equal(t, last, r.header(), "it is saved as soon as it can be")
		return document, nil
	}))
}
