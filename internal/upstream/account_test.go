package upstream

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request that has a header of its own is left alone. Else an account has one, or says why not.
func TestHeadersOfAnAccount(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	of := func(secret string) HeaderSource {
		a := login.New(login.Config{OAuth: config.OAuth{GrantType: config.ClientCredentials, ClientID: "machine", ClientSecret: secret},
			URL: authority.Server, Key: "k", Store: new(login.Memory), HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(a.Close)
		return logIn(a)
	}
	authority.Mu.Lock()
	authority.Knows = func(r *http.Request) bool { return r.PostForm.Get("client_secret") == "right" }
	authority.Mu.Unlock()
	resp, err := http.Get(authority.Server)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	refused := &Refusal{Sent: http.Header{}, Challenges: resp.Header.Values("WWW-Authenticate")}

	header, err := of("right")(t.Context(), http.Header{"Authorization": {"mine"}}, refused)
	assert.NoError(t, err)
	assert.Nil(t, header)
	header, err = of("right")(t.Context(), http.Header{}, nil)
	assert.NoError(t, err)
	assert.Nil(t, header, "nobody has asked for one")
	header, err = of("right")(t.Context(), http.Header{}, refused)
	require.NoError(t, err)
	assert.Regexp(t, "^Bearer .", header.Get("Authorization"))
	header, err = of("wrong")(t.Context(), http.Header{}, refused)
	assert.Error(t, err)
	assert.Nil(t, header)
}
