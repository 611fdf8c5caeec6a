package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// signingKey returns a private key in PEM, and its public half as a JWK.
func signingKey(t *testing.T) (private, public string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	point, err := key.PublicKey.Bytes() // 4, x and y
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	jwk, err := json.Marshal(map[string]string{"kty": "EC", "crv": "P-256", "kid": "key-1", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:])})
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(jwk)
}

// Clients that sign in as themselves at a published authorization server: without a page,
// past the end of their tokens, and with words for what is wrong.
func TestSpecH7ClientCredentialsAtAPublishedAuthority(t *testing.T) {
	private, public := signingKey(t)
	another, _ := signingKey(t)
	t.Setenv("SIGNER_KEY", public)
	issuer := startAuthority(t, 1)
	const secret = "robot-secret-of-this-test"
	for name, oauth := range map[string]config.OAuth{
		"secret": {ClientID: "robot", ClientSecret: secret},
		"key":    {ClientID: "signer", PrivateKey: private, KeyID: "key-1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := protect(t, issuer, "one")
			oauth.GrantType = config.ClientCredentials
			h := newLoginHost(t, t.TempDir(), mcphybrid.ServerConfig{Name: "one", URL: p.address, OAuth: &oauth})
			defer h.Close()
			require.NoError(t, h.Start(t.Context()))
			require.NoError(t, h.call("one", 2), "the token expires meanwhile")
			require.NoError(t, h.call("one", 0))
			require.NoError(t, h.Login(t.Context(), "one"))
			require.NoError(t, h.Logout(t.Context(), "one"))
			require.NoError(t, h.call("one", 0))
			assert.EqualValues(t, 3, p.calls.Load())
			assert.Zero(t, h.pages.Load())
			files, err := filepath.Glob(filepath.Join(h.folder, "*"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, path := range files {
				kept, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.NotContains(t, string(kept), secret)
				assert.NotContains(t, string(kept), "PRIVATE KEY")
			}
			assert.NotContains(t, h.said.String(), secret)
			assert.NotContains(t, h.said.String(), "PRIVATE KEY")
		})
	}
	for name, oauth := range map[string]config.OAuth{
		"another secret": {ClientID: "robot", ClientSecret: "another-secret-of-this-test"},
		"another key":    {ClientID: "signer", PrivateKey: another, KeyID: "key-1"},
		"another client": {ClientID: "nobody", ClientSecret: secret},
	} {
		t.Run(name, func(t *testing.T) {
			p := protect(t, issuer, "one")
			oauth.GrantType = config.ClientCredentials
			h := newLoginHost(t, t.TempDir(), mcphybrid.ServerConfig{Name: "one", URL: p.address, OAuth: &oauth})
			defer h.Close()
			err := h.Start(t.Context())
			assert.ErrorContains(t, err, `server "one"`)
			assert.ErrorContains(t, err, `for a token of the client "`+oauth.ClientID+`": OAuth error: invalid_client`)
			assert.NotContains(t, err.Error()+h.said.String(), "-secret-of-this-test")
			assert.Zero(t, p.calls.Load())
		})
	}
}
