package login

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const machineSecret = "the+secret of/a machine"

// machine returns an account that signs in as itself.
func machine(t *testing.T, authority *mcptest.Authority, tokens store.Tokens, change func(*config.OAuth)) *Account {
	oauth := config.OAuth{GrantType: config.ClientCredentials, ClientID: "machine", ClientSecret: machineSecret}
	if change != nil {
		change(&oauth)
	}
	a := New(Config{OAuth: oauth, URL: authority.Server, Key: "k", Store: tokens, HTTP: http.DefaultTransport, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(a.Close)
	return a
}

// refusal is that of a request with a header to the server of an authority.
func refusal(t *testing.T, authority *mcptest.Authority, header string) *Refusal {
	resp, err := http.Get(authority.Server)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return &Refusal{Header: header, Challenges: resp.Header.Values("WWW-Authenticate")}
}

func knows(authority *mcptest.Authority, client func(*http.Request) bool) {
	authority.Mu.Lock()
	defer authority.Mu.Unlock()
	authority.Knows = client
}

func says(authority *mcptest.Authority, metadata map[string]any) {
	authority.Mu.Lock()
	defer authority.Mu.Unlock()
	authority.Says = metadata
}

func byPost(r *http.Request) bool {
	return r.Header.Get("Authorization") == "" && r.PostForm.Get("client_id") == "machine" && r.PostForm.Get("client_secret") == machineSecret
}

func byBasic(r *http.Request) bool {
	id, secret, ok := r.BasicAuth()
	return ok && id == "machine" && secret == url.QueryEscape(machineSecret) && !r.PostForm.Has("client_secret") && !r.PostForm.Has("client_id")
}

// pemOf returns a private key as files have it.
func pemOf(t testing.TB, key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// byAssertion is a client that shows an assertion of a key for an audience, which tests see.
func byAssertion(key crypto.Signer, algorithm, keyID string, audience *string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		parts := strings.Split(r.PostForm.Get("client_assertion"), ".")
		if len(parts) != 3 || r.PostForm.Has("client_secret") || r.Header.Get("Authorization") != "" || r.PostForm.Get("client_id") != "machine" ||
			r.PostForm.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
			return false
		}
		var raw [3][]byte
		for i, part := range parts {
			var err error
			if raw[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
				return false
			}
		}
		var header struct{ Alg, Kid, Typ string }
		var claims struct {
			Iss, Sub, Aud, Jti string
			Iat, Exp           int64
		}
		if json.Unmarshal(raw[0], &header) != nil || json.Unmarshal(raw[1], &claims) != nil {
			return false
		}
		*audience = claims.Aud
		now := time.Now().Unix()
		return header.Alg == algorithm && header.Kid == keyID && header.Typ == "JWT" && claims.Iss == "machine" && claims.Sub == "machine" &&
			len(claims.Jti) >= 16 && claims.Iat <= now && claims.Iat > now-60 && claims.Exp-claims.Iat == 300 &&
			verified(key.Public(), algorithm, []byte(parts[0]+"."+parts[1]), raw[2])
	}
}

func verified(key crypto.PublicKey, algorithm string, message, signature []byte) bool {
	short, middle, long := sha256.Sum256(message), sha512.Sum384(message), sha512.Sum512(message)
	switch key := key.(type) {
	case *rsa.PublicKey:
		if algorithm == "PS256" {
			return rsa.VerifyPSS(key, crypto.SHA256, short[:], signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, short[:], signature) == nil
	case *ecdsa.PublicKey:
		digest := map[string][]byte{"ES256": short[:], "ES384": middle[:], "ES512": long[:]}[algorithm]
		size := (key.Curve.Params().BitSize + 7) / 8
		return len(signature) == 2*size && ecdsa.Verify(key, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature)
	}
	return false
}

func newKeys(t testing.TB) (p256, p384, p521, edwards, bigRSA crypto.Signer) {
	var err error
	for curve, to := range map[elliptic.Curve]*crypto.Signer{elliptic.P256(): &p256, elliptic.P384(): &p384, elliptic.P521(): &p521} {
		*to, err = ecdsa.GenerateKey(curve, rand.Reader)
		require.NoError(t, err)
	}
	_, edwards, err = signerPair(ed25519.GenerateKey(rand.Reader))
	require.NoError(t, err)
	bigRSA, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return p256, p384, p521, edwards, bigRSA
}

func signerPair(public ed25519.PublicKey, private ed25519.PrivateKey, err error) (crypto.PublicKey, crypto.Signer, error) {
	return public, private, err
}

// A client that signs in as itself gets a token when the server refuses it, keeps it, and
// gets another when that is refused; no page opens. It proves who it is in each way that
// authorization servers take.
func TestSpecH7ClientCredentials(t *testing.T) {
	t.Parallel()
	p256, p384, p521, edwards, bigRSA := newKeys(t)
	methods := func(names ...string) map[string]any {
		return map[string]any{"token_endpoint_auth_methods_supported": names, "authorization_endpoint": "", "code_challenge_methods_supported": []string{"plain"}}
	}
	var audience string // each test sets it before it reads it
	ec, err := x509.MarshalECPrivateKey(p256.(*ecdsa.PrivateKey))
	require.NoError(t, err)
	opensslEC := string(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 0}})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ec}))
	opensslRSA := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(bigRSA.(*rsa.PrivateKey))}))
	for _, c := range []struct {
		name  string
		says  map[string]any
		key   string
		keyID string
		knows func(*http.Request) bool
	}{
		{"nothing said", nil, "", "", byPost},
		{"tokens for those who are away", map[string]any{"scopes_supported": []string{"read", "write", "offline_access"}}, "", "", byPost},
		{"post", methods("client_secret_post"), "", "", byPost},
		{"basic", methods("client_secret_basic"), "", "", byBasic},
		{"P-256", methods("private_key_jwt"), pemOf(t, p256), "", byAssertion(p256, "ES256", "", &audience)},
		{"P-256 of openssl", nil, opensslEC, "", byAssertion(p256, "ES256", "", &audience)},
		{"P-384 with a name", methods("private_key_jwt", "client_secret_basic"), pemOf(t, p384), "key-1", byAssertion(p384, "ES384", "key-1", &audience)},
		{"P-521", nil, pemOf(t, p521), "", byAssertion(p521, "ES512", "", &audience)},
		{"Ed25519", nil, pemOf(t, edwards), "", byAssertion(edwards, "EdDSA", "", &audience)},
		{"RSA", nil, opensslRSA, "", byAssertion(bigRSA, "RS256", "", &audience)},
		{"RSA of a server that wants PSS", map[string]any{"token_endpoint_auth_signing_alg_values_supported": []string{"PS256"}}, pemOf(t, bigRSA), "", byAssertion(bigRSA, "PS256", "", &audience)},
	} {
		t.Run(c.name, func(t *testing.T) {
			authority := mcptest.NewAuthority(t, http.NotFoundHandler())
			says(authority, c.says)
			knows(authority, c.knows)
			tokens := new(Memory)
			a := machine(t, authority, tokens, func(o *config.OAuth) {
				if c.key != "" {
					o.ClientSecret, o.PrivateKey, o.KeyID = "", c.key, c.keyID
				}
			})
			audience = authority.URL
			header, err := a.Header(t.Context(), nil)
			require.NoError(t, err)
			assert.Empty(t, header, "the server may want none")
			first, err := a.Header(t.Context(), refusal(t, authority, ""))
			require.NoError(t, err)
			require.NotEmpty(t, first)
			assert.Equal(t, authority.URL, audience)
			again, err := a.Header(t.Context(), nil)
			require.NoError(t, err)
			assert.Equal(t, first, again)
			second, err := a.Header(t.Context(), refusal(t, authority, first))
			require.NoError(t, err)
			assert.NotEqual(t, first, second)

			other := machine(t, authority, tokens, func(o *config.OAuth) { *o = a.cfg.OAuth }) // another process
			shared, err := other.Header(t.Context(), nil)
			require.NoError(t, err)
			assert.Equal(t, second, shared)
			assert.Equal(t, mcptest.Counts{Itself: 2}, authority.Count())
			authority.Mu.Lock()
			defer authority.Mu.Unlock()
			assert.Equal(t, "read write", authority.Scopes, "those that the server asked for")
			assert.Equal(t, map[string]bool{authority.Server: true}, authority.Resources)
			assert.NotContains(t, string(tokens.documents["k"]), machineSecret)
			assert.NotContains(t, string(tokens.documents["k"]), "PRIVATE")
		})
	}
}

// Login asks for a token without a page, and Logout has it revoked, with the client's proof.
func TestLoginOfTheClientItself(t *testing.T) {
	t.Parallel()
	p256, _, _, _, _ := newKeys(t)
	audience := ""
	for name, c := range map[string]struct {
		key   string
		knows func(*http.Request) bool
	}{"secret": {"", byPost}, "key": {pemOf(t, p256), byAssertion(p256, "ES256", "", &audience)}} {
		t.Run(name, func(t *testing.T) {
			authority := mcptest.NewAuthority(t, http.NotFoundHandler())
			proved := 0
			knows(authority, c.knows)
			authority.Mu.Lock()
			authority.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/revoke" {
					require.NoError(t, r.ParseForm())
					if c.knows(r) {
						proved++
					}
				}
				return false
			}
			authority.Mu.Unlock()
			a := machine(t, authority, new(Memory), func(o *config.OAuth) {
				if c.key != "" {
					o.ClientSecret, o.PrivateKey = "", c.key
				}
			})
			for range 2 {
				require.NoError(t, a.Login(t.Context(), nil))
			}
			header, err := a.Header(t.Context(), nil)
			require.NoError(t, err)
			assert.NotEmpty(t, header)
			assert.Equal(t, 2, authority.Count().Itself)
			_ = a.Logout(t.Context(), func() error { return nil }) // the small authority does not know the client of such tokens
			assert.Equal(t, 1, proved)
			header, err = a.Header(t.Context(), nil)
			require.NoError(t, err)
			assert.Empty(t, header)
		})
	}
}

// A revocation endpoint that was not there at the first use gets no assertion.
func TestAssertionGoesWhereItMay(t *testing.T) {
	t.Parallel()
	p256, _, _, _, _ := newKeys(t)
	audience := ""
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, byAssertion(p256, "ES256", "", &audience))
	a := machine(t, authority, new(Memory), func(o *config.OAuth) { o.ClientSecret, o.PrivateKey = "", pemOf(t, p256) })
	require.NoError(t, a.Login(t.Context(), nil))
	revocations := 0
	says(authority, map[string]any{"revocation_endpoint": authority.URL + "/other"})
	authority.Mu.Lock()
	authority.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/other" {
			return false
		}
		revocations++
		assert.Empty(t, r.FormValue("client_assertion"))
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_client"}`)
		return true
	}
	authority.Mu.Unlock()
	require.NoError(t, a.Login(t.Context(), nil))
	err := a.Logout(t.Context(), func() error { return nil })
	assert.ErrorContains(t, err, "an assertion by OAuth.PrivateKey was not sent there: no trusted metadata name the endpoint")
	assert.Equal(t, 1, revocations)
}

// Of many callers, also in several processes, whose token was refused, one asks for another.
func TestOneAsksForAll(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, byPost)
	tokens := new(Memory)
	all := []*Account{machine(t, authority, tokens, nil), machine(t, authority, tokens, nil)}
	for refused := ""; authority.Count().Itself < 2; {
		said := refusal(t, authority, refused)
		headers := make([]string, 40)
		var wait sync.WaitGroup
		for i := range headers {
			wait.Go(func() {
				var err error
				headers[i], err = all[i%len(all)].Header(t.Context(), said)
				assert.NoError(t, err)
			})
		}
		wait.Wait()
		require.NotEmpty(t, headers[0])
		require.Len(t, slices.Compact(headers), 1)
		refused = headers[0]
	}
	assert.Equal(t, 2, authority.Count().Itself)
}

// The proof of the client goes where the settings say, or where it was first used, and
// never to a guess.
func TestProofGoesWhereItMay(t *testing.T) {
	t.Parallel()
	hostile := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(hostile, func(*http.Request) bool { return true })
	leads := func(t *testing.T) *mcptest.Authority { // first to itself, then to the hostile one
		authority := mcptest.NewAuthority(t, http.NotFoundHandler())
		knows(authority, byPost)
		return authority
	}
	t.Run("first use", func(t *testing.T) {
		authority := leads(t)
		a := machine(t, authority, new(Memory), nil)
		header, err := a.Header(t.Context(), refusal(t, authority, ""))
		require.NoError(t, err)
		authority.Mu.Lock()
		authority.Moved = hostile
		authority.Mu.Unlock()
		_, err = a.Header(t.Context(), refusal(t, authority, header))
		assert.ErrorContains(t, err, fmt.Sprintf("OAuth.ClientSecret was first used at %q, and the server now names %q", authority.URL+"/token", hostile.URL+"/token"))
	})
	t.Run("settings", func(t *testing.T) {
		for name, change := range map[string]func(*config.OAuth, string){
			"token":    func(o *config.OAuth, at string) { o.TokenURL = at + "/token" },
			"metadata": func(o *config.OAuth, at string) { o.MetadataURL = at + oauthMetadata },
		} {
			authority := leads(t)
			authority.Mu.Lock()
			authority.Moved = hostile
			authority.Mu.Unlock()
			hostile.Mu.Lock()
			hostile.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				assert.Fail(t, "the hostile one was asked", "%s %s", name, r.URL)
				return false
			}
			hostile.Mu.Unlock()
			a := machine(t, authority, new(Memory), func(o *config.OAuth) { change(o, authority.URL) })
			header, err := a.Header(t.Context(), refusal(t, authority, ""))
			require.NoError(t, err, name)
			assert.NotEmpty(t, header, name)
			assert.Equal(t, 1, authority.Count().Itself, name)
		}
	})
	t.Run("guess", func(t *testing.T) {
		asked := 0
		server := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				asked++
			}
			w.WriteHeader(http.StatusUnauthorized)
		}), "127.0.0.1:0")
		a := New(Config{OAuth: config.OAuth{GrantType: config.ClientCredentials, ClientID: "machine", ClientSecret: machineSecret}, URL: server, Store: new(Memory), HTTP: http.DefaultTransport})
		defer a.Close()
		_, err := a.Header(t.Context(), &Refusal{})
		assert.ErrorContains(t, err, "finding the authorization server: nothing names one: set OAuth.TokenURL or OAuth.MetadataURL")
		assert.Zero(t, asked)
	})
	assert.Zero(t, hostile.Count().Itself)
	hostile.Mu.Lock()
	defer hostile.Mu.Unlock()
	assert.Empty(t, hostile.Secrets)
}

// A server on the public internet can't have the proof sent to an internal address.
func TestProofStaysOutside(t *testing.T) {
	t.Parallel()
	const server, outside = "203.0.113.5", "http://198.51.100.7"
	n := &names{leads: map[string]string{"inside.example": "127.0.0.1"}}
	for _, host := range []string{"inside.example", "127.0.0.1", "localhost"} {
		for _, step := range []string{"issuer", "token"} {
			port, requests := counted(t, leading(server, outside, nil))
			inside := "http://" + host + ":" + port
			issuer, m := outside, metadataOf(outside, outside, inside)
			if step == "issuer" {
				issuer, m = inside, nil
			}
			a := newAccount(t, Config{
				OAuth: config.OAuth{GrantType: config.ClientCredentials, ClientID: "machine", ClientSecret: machineSecret},
				URL:   "http://" + server + "/mcp", HTTP: proxied(t, leading(server, issuer, m), server, "198.51.100.7"),
			}, n)
			_, err := a.Header(t.Context(), &Refusal{})
			assert.ErrorContains(t, err, fmt.Sprintf("refused to send a request to host %q", host), step)
			assert.Zero(t, requests(), step)
		}
	}
}

// Errors name the authorization server and its reason, and nothing of what was sent.
func TestRefusedClient(t *testing.T) {
	t.Parallel()
	p256, _, _, _, _ := newKeys(t)
	for _, key := range []string{"", pemOf(t, p256)} {
		authority := mcptest.NewAuthority(t, http.NotFoundHandler())
		a := machine(t, authority, new(Memory), func(o *config.OAuth) {
			if key != "" {
				o.ClientSecret, o.PrivateKey = "", key
			}
		})
		_, err := a.Header(t.Context(), refusal(t, authority, ""))
		assert.EqualError(t, err, fmt.Sprintf(`asking %q for a token of the client "machine": OAuth error: invalid_client - not with [hidden]`, strings.TrimPrefix(authority.URL, "http://")))
		for answer, want := range map[string]string{
			`{"access_token":"a b"}`:                  "the access token has characters that no header can have",
			`{"access_token":"a","token_type":"mac"}`: `the access token is of type "mac", want Bearer`,
			`{}`: "the authorization server sent no access token",
			`[]`: "the answer is not the JSON of a token",
			`{"access_token":"a","expires_in":"for ever"}`: "the answer is not the JSON of a token",
		} {
			answers("/token", 200, answer)(authority)
			a.pace = pace{}
			_, err := a.Header(t.Context(), refusal(t, authority, ""))
			assert.ErrorContains(t, err, want, answer)
		}
		answers("/token", 503, "please wait")(authority)
		a.pace = pace{}
		_, err = a.Header(t.Context(), refusal(t, authority, ""))
		assert.ErrorContains(t, err, "the authorization server answers with status 503")
	}
}

// Settings that lack something are told before anything is sent.
func TestIncompleteCredentials(t *testing.T) {
	t.Parallel()
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, func(*http.Request) bool { return true })
	encrypted := string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
	broken := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	for key, want := range map[string]string{
		"":              "OAuth.ClientID is missing, or OAuth.ClientSecret and OAuth.PrivateKey are",
		"a passphrase":  "OAuth.PrivateKey is not a private key in PEM",
		encrypted:       "OAuth.PrivateKey is encrypted: decrypt it first",
		broken:          `OAuth.PrivateKey is not a private key that can be read, in the block "PRIVATE KEY"`,
		pemOf(t, small): "OAuth.PrivateKey is of a kind that can't sign here",
	} {
		a := machine(t, authority, new(Memory), func(o *config.OAuth) { o.ClientSecret, o.PrivateKey = "", key })
		_, err := a.Header(t.Context(), refusal(t, authority, ""))
		assert.ErrorContains(t, err, want)
	}
	assert.Zero(t, authority.Count().Itself)
}

// Without a token endpoint there is nothing to ask.
func TestNoTokenEndpoint(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, func(*http.Request) bool { return true })
	says(authority, map[string]any{"token_endpoint": ""})
	header, err := machine(t, authority, new(Memory), nil).Header(t.Context(), refusal(t, authority, ""))
	assert.ErrorContains(t, err, "token")
	assert.Empty(t, header)
	assert.Zero(t, authority.Count().Itself)
}

// The scopes of the settings are asked for, also one alone; without any, none is.
func TestScopesOfTheSettings(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]string{{"one"}, {"one", "two"}} {
		authority := mcptest.NewAuthority(t, http.NotFoundHandler())
		knows(authority, byPost)
		a := machine(t, authority, new(Memory), func(o *config.OAuth) { o.Scopes = scopes })
		_, err := a.Header(t.Context(), refusal(t, authority, ""))
		require.NoError(t, err)
		authority.Mu.Lock()
		assert.Equal(t, strings.Join(scopes, " "), authority.Scopes)
		authority.Mu.Unlock()
	}
}

// An address of a record that is malformed is asked for nothing.
func TestMalformedEndpoint(t *testing.T) {
	t.Parallel()
	a := machine(t, mcptest.NewAuthority(t, http.NotFoundHandler()), new(Memory), nil)
	body, err := a.post(t.Context(), "https://a.example\x7f/token", new(record), proof{}, url.Values{})
	assert.EqualError(t, err, "the address is malformed")
	assert.Nil(t, body)
}

// Scopes that a call lacks are asked for at once, as long as that helps.
func TestScopesOfTheClientItself(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, byPost)
	a := machine(t, authority, new(Memory), nil)
	header, err := a.Header(t.Context(), refusal(t, authority, ""))
	require.NoError(t, err)
	more, err := a.Header(t.Context(), &Refusal{Header: header, Scopes: []string{"admin"}})
	require.NoError(t, err)
	assert.NotEqual(t, header, more)
	authority.Mu.Lock()
	assert.Equal(t, "read write admin", authority.Scopes)
	authority.Grant = func(string) string { return "read" }
	authority.Mu.Unlock()
	_, err = a.Header(t.Context(), &Refusal{Header: more, Scopes: []string{"admin"}})
	assert.ErrorContains(t, err, `the server wants the scopes "admin" for this, which the login has or was refused before`)
	less, err := a.Header(t.Context(), &Refusal{Header: more, Scopes: []string{"root"}})
	require.NoError(t, err)
	_, err = a.Header(t.Context(), &Refusal{Header: less, Scopes: []string{"root"}})
	assert.ErrorContains(t, err, `the server wants the scopes "root" for this, which the login has or was refused before`)
	assert.Equal(t, 3, authority.Count().Itself)
}

// A login of a user is not used by the client itself, nor the other way round.
func TestGrantsAreApart(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, byPost)
	tokens := new(Memory)
	user := func(o *config.OAuth) { o.GrantType = "authorization_code" }
	itself := machine(t, authority, tokens, nil)
	require.NoError(t, itself.Login(t.Context(), nil))
	header, err := machine(t, authority, tokens, user).Header(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, header)
	require.NoError(t, machine(t, authority, tokens, user).Login(t.Context(), browse(t)))
	header, err = machine(t, authority, tokens, nil).Header(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, header)
}

// A token that the store can't keep is used all the same.
func TestStoreFailsForTheClientItself(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, byPost)
	tokens := &failing{}
	a := machine(t, authority, tokens, nil)
	header, err := a.Header(t.Context(), refusal(t, authority, ""))
	require.NoError(t, err)
	require.NotEmpty(t, header)
	again, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, header, again)
	assert.Equal(t, 1, authority.Count().Itself)
}

// garbled is a store in which somebody has overwritten where secrets were first used.
type garbled struct{ Memory }

func (g *garbled) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	return g.Memory.Update(ctx, key, func(document []byte) ([]byte, error) {
		if strings.HasPrefix(key, "client/") {
			document = []byte("{")
		}
		return change(document)
	})
}

// Where nobody can tell any more where a secret was first used, it goes nowhere.
func TestFirstUseThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	authority := mcptest.NewAuthority(t, http.NotFoundHandler())
	knows(authority, byPost)
	header, err := machine(t, authority, new(garbled), nil).Header(t.Context(), refusal(t, authority, ""))
	assert.ErrorContains(t, err, "the token store has a document that we did not write")
	assert.Empty(t, header)
	assert.Zero(t, authority.Count().Itself)
}

// failing is a store that can't save logins.
type failing struct{ Memory }

func (f *failing) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	return f.Memory.Update(ctx, key, func(document []byte) ([]byte, error) {
		changed, err := change(document)
		if err == nil && key == "k" && len(changed) > len(document) {
			return nil, fmt.Errorf("the disk is full")
		}
		return changed, err
	})
}

// answering is a server and its authority in memory, which answer at once.
type answering struct {
	mu     sync.Mutex
	token  func(made int) (status int, body string)
	asked  int
	passed []time.Duration // since the first token was asked for
	begun  time.Time
}

func (s *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, body := 404, ""
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		status, body = 200, `{"resource":"https://mcp.example/mcp","authorization_servers":["https://login.example"]}`
	case oauthMetadata:
		status, body = 200, `{"issuer":"https://login.example","token_endpoint":"https://login.example/token"}`
	case "/token":
		if s.asked++; s.asked == 1 {
			s.begun = time.Now()
		}
		s.passed = append(s.passed, time.Since(s.begun))
		status, body = s.token(s.asked)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (s *answering) account() *Account {
	return New(Config{
		OAuth: config.OAuth{GrantType: config.ClientCredentials, ClientID: "machine", ClientSecret: machineSecret},
		URL:   "https://mcp.example/mcp", Key: "k", Store: new(Memory), HTTP: s, Log: slog.New(slog.DiscardHandler),
	})
}

// A token that has expired is replaced before the next request, for as long as there are
// requests.
func TestTokenOfTheClientItselfExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &answering{token: func(made int) (int, string) {
			return 200, fmt.Sprintf(`{"access_token":"token-%d","expires_in":30,"refresh_token":"ignored"}`, made)
		}}
		a := s.account()
		defer a.Close()
		header, err := a.Header(t.Context(), &Refusal{})
		require.NoError(t, err)
		assert.Equal(t, "Bearer token-1", header)
		for i := 2; i < 40; i++ {
			time.Sleep(28 * time.Second)
			header, err := a.Header(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("Bearer token-%d", i), header)
		}
		assert.Empty(t, a.record.RefreshToken, "there should be none")
	})
}

// Requests in vain have pauses between them, whether the authorization server refuses, or
// the server refuses its tokens. Login does not wait.
func TestTokensInVain(t *testing.T) {
	for name, token := range map[string]func(int) (int, string){
		"no token":       func(int) (int, string) { return 400, `{"error":"invalid_client","error_description":"who?"}` },
		"refused tokens": func(made int) (int, string) { return 200, fmt.Sprintf(`{"access_token":"token-%d"}`, made) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &answering{token: token}
				a := s.account()
				defer a.Close()
				sent := ""
				var last error
				for range 10 * 60 * 5 { // ten minutes
					header, err := a.Header(t.Context(), &Refusal{Header: sent})
					if err == nil {
						sent = header
					} else {
						last = err
					}
					time.Sleep(200 * time.Millisecond)
				}
				assert.LessOrEqual(t, s.asked, 20)
				assert.GreaterOrEqual(t, s.asked, 15, "it goes on")
				assert.Less(t, s.passed[2], time.Second, "the first ones are quick")
				assert.ErrorContains(t, last, "tokens were asked for in vain, and the next one is not before ")
				if name == "no token" {
					assert.ErrorContains(t, last, "invalid_client - who?")
				} else {
					assert.ErrorContains(t, last, "the server refuses each of them")
				}
				before := s.asked
				time.Sleep(2 * time.Minute)
				for range 3 {
					_, _ = a.Header(t.Context(), &Refusal{Header: a.record.header()})
				}
				assert.Equal(t, before+3, s.asked, "it is quick again")
				for range 4 {
					err := a.Login(t.Context(), nil)
					assert.Equal(t, name == "no token", err != nil)
				}
				assert.Equal(t, before+7, s.asked)
			})
		})
	}
}

// No text makes a private key, or an answer of an authorization server, do harm.
func FuzzClientCredentials(f *testing.F) {
	p256, _, _, edwards, bigRSA := newKeys(f)
	for _, key := range []crypto.Signer{p256, edwards, bigRSA} {
		f.Add(pemOf(f, key), `{"access_token":"a","expires_in":3600}`)
	}
	f.Add("-----BEGIN EC PARAMETERS-----\nBgA=\n-----END EC PARAMETERS-----\n", `{"access_token":"a\nb"}`)
	f.Fuzz(func(t *testing.T, key, body string) {
		if token, err := assertion(key, "", "machine", "https://login.example", nil); err == nil {
			require.Equal(t, 2, strings.Count(token, "."))
		}
		s := &answering{token: func(int) (int, string) { return 200, body }}
		a := s.account()
		defer a.Close()
		header, err := a.Header(t.Context(), &Refusal{})
		if err == nil {
			require.NotEmpty(t, header)
			require.False(t, strings.ContainsAny(header, "\r\n"))
		}
		require.LessOrEqual(t, s.asked, 1)
	})
}
