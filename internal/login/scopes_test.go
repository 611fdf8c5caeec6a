package login

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The scopes that a server wants are noted in the store, and never in place of the
// tokens of another client.
func TestWant(t *testing.T) {
	store := new(flaky)
	a, _ := account(t, store)
	header, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	want := func(a *Account, sent string, scopes ...string) string {
		got, err := a.Header(t.Context(), &Refusal{Header: sent, Scopes: scopes})
		require.NoError(t, err)
		return got
	}
	stored := func() (r record) {
		_ = store.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
			r, err = a.parse(document)
			return document, err
		})
		return r
	}
	assert.Equal(t, header, want(a, header, "x", "y"))
	assert.Equal(t, header, want(a, header, "y", "z"))
	assert.Equal(t, []string{"x", "y", "z"}, stored().Wanted)
	assert.Equal(t, []string{"read", "write"}, stored().Scopes)
	assert.Equal(t, header, want(a, "Bearer old", "other"), "there is a newer token")
	store.fail = true
	_, err = a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"q"}})
	assert.EqualError(t, err, "the disk is full")
	store.fail = false
	assert.Equal(t, []string{"x", "y", "z"}, stored().Wanted)

	cfg := a.cfg
	cfg.ClientID = "mine"
	other := New(cfg)
	defer other.Close()
	assert.Empty(t, want(other, "", "x"))
	r := stored()
	assert.Equal(t, header, r.header())
	cfg.Key = "k2"
	nobody := New(cfg)
	defer nobody.Close()
	assert.Empty(t, want(nobody, "", "x"))
	r, err = nobody.stored(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"x"}, nobody.asks(&r, []string{"all"}))
	_, err = a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"read"}})
	assert.EqualError(t, err, `the server wants the scopes "read" for this, which the login has or was refused before`)
}
