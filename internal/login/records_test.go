package login

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// The secret of the settings is given for an address that is trusted, to the client of the
// settings, as they trusted it; and a client that was registered has its own.
func TestSecretOfARecord(t *testing.T) {
	t.Parallel()
	a := New(Config{OAuth: config.OAuth{ClientID: "c", ClientSecret: "settings", TokenURL: "https://h.example/token"}, URL: "https://h.example/mcp", Store: new(Memory)})
	defer a.Close()
	for _, test := range []struct {
		r       record
		trusted bool
		want    string
	}{
		{record{ClientID: "c", Trust: "https://h.example/token", ClientSecret: "own"}, true, "settings"},
		{record{ClientID: "c", Trust: "https://h.example/token"}, false, ""},
		{record{ClientID: "d", Trust: "https://h.example/token"}, true, ""},
		{record{ClientID: "c", Trust: firstUse}, true, ""},
		{record{ClientID: "c", ClientSecret: "own"}, true, "own"},
		{record{ClientID: "d", ClientSecret: "own"}, false, "own"},
	} {
		assert.Equal(t, test.want, a.secret(&test.r, test.trusted), "%+v", test)
	}
}

// What the store has counts only if it is of this server and of the settings as they are now.
func TestRecordIsOfTheSettings(t *testing.T) {
	t.Parallel()
	settings := config.OAuth{ClientID: "c", ClientSecret: "s", TokenURL: "https://h.example/token"}
	for name, test := range map[string]struct {
		change   func(*record)
		settings func(*config.OAuth)
		want     bool
	}{
		"as it was":       {func(*record) {}, func(*config.OAuth) {}, true},
		"another server":  {func(r *record) { r.URL += "/" }, func(*config.OAuth) {}, false},
		"another service": {func(*record) {}, func(o *config.OAuth) { o.TokenURL += "/" }, false},
		"another client":  {func(*record) {}, func(o *config.OAuth) { o.ClientID = "d" }, false},
		"no more trust":   {func(*record) {}, func(o *config.OAuth) { o.TokenURL = "" }, false},
		"no more secret":  {func(*record) {}, func(o *config.OAuth) { o.ClientSecret = "" }, false},
		"no more client":  {func(*record) {}, func(o *config.OAuth) { o.ClientID = "" }, true}, // the known one is used
		"trust elsewhere": {func(r *record) { r.Trust = firstUse }, func(*config.OAuth) {}, false},
	} {
		r := record{URL: "https://h.example/mcp", TokenURL: settings.TokenURL, ClientID: "c", Trust: settings.TokenURL, AccessToken: "a"}
		test.change(&r)
		document, err := r.document(nil)
		require.NoError(t, err)
		now := settings
		test.settings(&now)
		a := New(Config{OAuth: now, URL: "https://h.example/mcp", Store: new(Memory)})
		defer a.Close()
		got, err := a.parse(document)
		require.NoError(t, err)
		assert.Equal(t, test.want, got.AccessToken == "a", name)
	}
}

// A document may have so many bytes, when it is read and when it is written, and an empty record
// leaves it as it is.
func TestSizeOfADocument(t *testing.T) {
	t.Parallel()
	r := record{URL: "u"}
	document, err := r.document(nil)
	require.NoError(t, err)
	r.AccessToken = strings.Repeat("a", maxDocument-len(document)-len(`"access_token":"",`))
	document, err = r.document(nil)
	require.NoError(t, err)
	require.Len(t, document, maxDocument)
	got, err := parse(document)
	require.NoError(t, err)
	assert.Equal(t, r, got)
	_, err = parse(append(document, ' '))
	assert.ErrorContains(t, err, "65537 bytes, more than the limit of 65536")
	_, err = parse([]byte("{"))
	assert.ErrorContains(t, err, "that we did not write")
	r.AccessToken += "a"
	_, err = r.document(nil)
	assert.ErrorContains(t, err, "65537 bytes, more than the limit of 65536")
	document, err = new(record).document([]byte("old"))
	require.NoError(t, err)
	assert.Equal(t, "old", string(document))
	got, err = parse(nil)
	require.NoError(t, err)
	assert.Equal(t, record{}, got)
}

// A token is sent until it expires, unless it was just refused.
func TestTokenThatIsUsable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, test := range []struct {
			r       record
			refused string
			want    bool
		}{
			{record{AccessToken: "a"}, "", true}, {record{}, "", false}, {record{}, "Bearer b", false},
			{record{AccessToken: "a"}, "Bearer a", false}, {record{AccessToken: "a"}, "Bearer b", true},
			{record{AccessToken: "a", ExpiresAt: now.Add(1)}, "", true}, {record{AccessToken: "a", ExpiresAt: now}, "", false},
		} {
			assert.Equal(t, test.want, test.r.usable(test.refused), "%+v", test)
		}
	})
}

// The page is at an https address, or at one of the server's own kind, and asks for what is
// known; its address has at most maxPage bytes.
func TestPageOfALogin(t *testing.T) {
	t.Parallel()
	at := func(server, page string) (string, error) {
		a := New(Config{OAuth: config.OAuth{AuthorizationURL: page}, URL: server, Store: new(Memory)})
		defer a.Close()
		return a.page(&discovery{metadata: &transport.AuthServerMetadata{AuthorizationEndpoint: "https://other.example/a"}, scopes: []string{"x", "y"}}, &record{ClientID: "c", Resource: "r"}, "http://127.0.0.1:1/callback", "state", "verifier")
	}
	page, err := at("https://h.example/mcp", "https://h.example/a?b=1&state=mine")
	require.NoError(t, err)
	u, err := url.Parse(page)
	require.NoError(t, err)
	assert.Equal(t, "h.example", u.Host)
	assert.Equal(t, url.Values{
		"b": {"1"}, "response_type": {"code"}, "client_id": {"c"}, "redirect_uri": {"http://127.0.0.1:1/callback"}, "state": {"state"}, "resource": {"r"},
		"code_challenge": {transport.GenerateCodeChallenge("verifier")}, "code_challenge_method": {"S256"}, "scope": {"x y"},
	}, u.Query())
	page, err = at("https://h.example/mcp", "")
	require.NoError(t, err)
	assert.Contains(t, page, "https://other.example/a?")
	for _, bad := range []string{"http://h.example/a", "ftp://h.example/a", "https:///a", "/a", "https://h.example/%zz", "javascript:alert(1)"} {
		_, err := at("https://h.example/mcp", bad)
		assert.ErrorContains(t, err, "is not an https URL", bad)
	}
	_, err = at("http://127.0.0.1:2/mcp", "http://127.0.0.1:1/a")
	assert.NoError(t, err)
	_, err = at("http://127.0.0.1:2/mcp", "ftp://127.0.0.1:1/a")
	assert.Error(t, err)
	page, err = at("https://h.example/mcp", "https://h.example/")
	require.NoError(t, err)
	path := strings.Repeat("a", maxPage-len(page))
	page, err = at("https://h.example/mcp", "https://h.example/"+path)
	require.NoError(t, err)
	assert.Len(t, page, maxPage)
	_, err = at("https://h.example/mcp", "https://h.example/a"+path)
	assert.ErrorContains(t, err, "32769 bytes, more than the limit of 32768")
}

// An answer is read to its end and closed, if it is not too long.
func TestExchangeReadsAndCloses(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{0: "", maxAnswer: "", maxAnswer + 1: "the answer has more than 1048576 bytes"} {
		body := &closing{Reader: strings.NewReader(strings.Repeat("x", size))}
		resp, err := exchange(roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{Body: body}, nil }), nil)
		assert.True(t, body.closed)
		if want != "" {
			assert.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Len(t, data, size)
	}
	_, err := exchange(roundTripper(func(*http.Request) (*http.Response, error) { return nil, http.ErrAbortHandler }), nil)
	assert.ErrorIs(t, err, http.ErrAbortHandler)
}

type closing struct {
	*strings.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// A server that is not reached by our own connections is internal only if its address says so.
func TestServerThatIsNotReached(t *testing.T) {
	t.Parallel()
	assert.False(t, new(reach).isInternal(t.Context()))
	assert.True(t, (&reach{internal: true}).isInternal(t.Context()))
	assert.False(t, (&reach{internal: true, public: true}).isInternal(t.Context()))
	assert.False(t, (&reach{public: true}).isInternal(t.Context()))
}

// An assertion is made for the client of the settings only, as they trust it, and for an address
// that is trusted. No secret goes with it.
func TestProofOfARecord(t *testing.T) {
	t.Parallel()
	_, _, _, key, _ := newKeys(t)
	a := New(Config{OAuth: config.OAuth{ClientID: "c", PrivateKey: pemOf(t, key), TokenURL: "https://h.example/token"}, URL: "https://h.example/mcp", Store: new(Memory)})
	defer a.Close()
	for _, test := range []struct {
		r       record
		trusted bool
		want    bool
	}{
		{record{ClientID: "c", Trust: a.cfg.trust(), ClientSecret: "own"}, true, true},
		{record{ClientID: "c", Trust: a.cfg.trust()}, false, false},
		{record{ClientID: "d", Trust: a.cfg.trust()}, true, false},
		{record{ClientID: "c", Trust: firstUse}, true, false},
		{record{ClientID: "c"}, true, false},
	} {
		p, err := a.proof(&test.r, test.trusted)
		require.NoError(t, err)
		assert.Equal(t, test.want, p.assertion != "", "%+v", test)
		assert.Empty(t, p.secret, "%+v", test)
	}
}

// Who waits for a document in vain changes nothing.
func TestMemoryIsWaitedForInVain(t *testing.T) {
	t.Parallel()
	m := new(Memory)
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, m.Update(t.Context(), "k", func([]byte) ([]byte, error) {
		err := m.Update(ended, "k", func([]byte) ([]byte, error) {
			t.Error("it is used")
			return nil, nil
		})
		assert.ErrorIs(t, err, context.Canceled)
		return []byte("x"), nil
	}))
	require.NoError(t, m.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
		assert.Equal(t, "x", string(document))
		return document, nil
	}))
}
