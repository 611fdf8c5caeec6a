package login

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client that was registered somewhere is used there, for the same address and scopes,
// and nowhere else.
func TestKnownClientIsUsedWhereItWasRegistered(t *testing.T) {
	t.Parallel()
	const redirect = "http://127.0.0.1:1/callback"
	found := discovery{metadata: &transport.AuthServerMetadata{Issuer: "https://h.example", TokenEndpoint: "https://h.example/token"}, scopes: []string{"a"}}
	known := record{ClientID: "c", ClientSecret: "s", AuthMethod: "client_secret_post", RedirectURI: redirect, Issuer: "https://h.example", TokenURL: "https://h.example/token", ClientScopes: []string{"a", "b"}}
	for name, test := range map[string]struct {
		change func(*record)
		want   bool
	}{
		"the same":       {func(*record) {}, true},
		"any scopes":     {func(r *record) { r.ClientScopes = nil }, true},
		"these scopes":   {func(r *record) { r.ClientScopes = []string{"a"} }, true},
		"other scopes":   {func(r *record) { r.ClientScopes = []string{"b"} }, false},
		"no client":      {func(r *record) { r.ClientID = "" }, false},
		"other address":  {func(r *record) { r.RedirectURI = "http://127.0.0.1:2/callback" }, false},
		"other issuer":   {func(r *record) { r.Issuer = "https://other.example" }, false},
		"other endpoint": {func(r *record) { r.TokenURL = "https://other.example/token" }, false},
	} {
		a := New(Config{URL: "https://h.example/mcp", Store: new(Memory)})
		defer a.Close()
		was := known
		test.change(&was)
		r, err := a.client(t.Context(), found, was, redirect)
		if !test.want {
			assert.ErrorContains(t, err, "registers no clients by itself", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, []string{"c", "s", "client_secret_post", redirect}, []string{r.ClientID, r.ClientSecret, r.AuthMethod, r.RedirectURI}, name)
		assert.Equal(t, was.ClientScopes, r.ClientScopes, name)
	}
}

func TestAnswerIsOfTheIssuer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		issuer   string
		promises bool
		said     string
		want     string // in the error; "" for none
	}{
		{"https://h.example", false, "code=x", ""},
		{"https://h.example", true, "code=x", "does not say whose it is"},
		{"https://h.example", true, "iss=", "does not say whose it is"},
		{"https://h.example", true, "iss=https://h.example", ""},
		{"https://h.example", false, "iss=https://h.example", ""},
		{"https://h.example", true, "iss=https://other.example", "from another authorization server"},
		{"https://h.example", false, "iss=https://other.example", "from another authorization server"},
		{"https://h.example", true, "iss=https://h.example&iss=https://other.example", "from another authorization server"},
		{"", false, "iss=https://other.example", ""},
	} {
		said, err := url.ParseQuery(test.said)
		require.NoError(t, err)
		d := discovery{metadata: &transport.AuthServerMetadata{Issuer: test.issuer}, promises: test.promises}
		if err = d.fromIssuer(said); test.want == "" {
			assert.NoError(t, err, test.said)
		} else {
			assert.ErrorContains(t, err, test.want, test.said)
		}
	}
}

// Only a client of the settings with a secret is trusted somewhere.
func TestTrust(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		oauth config.OAuth
		want  string
	}{
		{config.OAuth{}, ""}, {config.OAuth{ClientID: "c", TokenURL: "t"}, ""}, {config.OAuth{ClientSecret: "s", TokenURL: "t"}, ""},
		{config.OAuth{ClientID: "c", ClientSecret: "s"}, firstUse},
		{config.OAuth{ClientID: "c", ClientSecret: "s", MetadataURL: "m"}, "m"},
		{config.OAuth{ClientID: "c", ClientSecret: "s", MetadataURL: "m", TokenURL: "t"}, "t"},
	} {
		assert.Equal(t, test.want, (&Config{OAuth: test.oauth}).trust(), "%v", test.oauth)
	}
}

// A record that somebody has changed in the store leads no secret of the settings elsewhere,
// nor the refresh token.
func TestRefreshGoesWhereTheSettingsSay(t *testing.T) {
	t.Parallel()
	var asked []string
	a := New(Config{
		OAuth: config.OAuth{ClientID: "c", ClientSecret: "s", AuthorizationURL: "https://h.example/a", TokenURL: "https://h.example/token"}, URL: "https://h.example/mcp", Store: new(Memory), Log: slog.New(slog.DiscardHandler),
		HTTP: roundTripper(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.Host)
			return answer(r, 200, []byte(`{"access_token":"new","token_type":"Bearer","refresh_token":"newer"}`)), nil
		}),
	})
	defer a.Close()
	r := record{URL: a.cfg.URL, TokenURL: "https://evil.example/token", ClientID: "c", Trust: a.cfg.trust(), AccessToken: "a", RefreshToken: "r"}
	got, err := a.refresh(t.Context(), r, endpoints{})
	require.NoError(t, err)
	assert.Equal(t, "", got.AccessToken+got.RefreshToken)
	assert.Empty(t, asked)
	r.TokenURL = a.cfg.TokenURL
	got, err = a.refresh(t.Context(), r, endpoints{})
	require.NoError(t, err)
	assert.Equal(t, "new newer", got.AccessToken+" "+got.RefreshToken)
	assert.Equal(t, []string{"h.example"}, asked)
}

// What is no challenge is skipped, character by character.
func TestChallengesAfterNoise(t *testing.T) {
	t.Parallel()
	for _, noise := range []string{"", " ", ",", "=", `"`, ", =,", `=="`, `"",`} {
		assert.Equal(t, []challenge{{"Bearer", map[string]string{"scope": "a"}}}, challengesIn(noise+"Bearer scope=a"), "%q", noise)
	}
}

// A login that was for scopes that the server wants is counted, so that it is not asked for
// without end.
func TestLoginCountsStepUps(t *testing.T) {
	t.Parallel()
	kept := new(Memory)
	a, _ := account(t, kept)
	change := func(do func(map[string]any)) (now map[string]any) {
		require.NoError(t, kept.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
			if err := json.Unmarshal(document, &now); err != nil {
				return nil, err
			}
			do(now)
			return json.Marshal(now)
		}))
		return now
	}
	assert.Nil(t, change(func(r map[string]any) { r["wanted"] = []string{"more"} })["step_ups"])
	require.NoError(t, a.Login(t.Context(), func(_ context.Context, page Page) (string, error) {
		mcptest.Browse(t, page.URL)
		return "", nil
	}))
	now := change(func(map[string]any) {})
	assert.EqualValues(t, 1, now["step_ups"])
	assert.Equal(t, []any{"more"}, now["tried"])
}
