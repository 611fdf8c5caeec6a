package web

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/figures"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// certificateFiles returns files with the certificate of httptest and its key, and a client that trusts it.
func certificateFiles(t *testing.T) (cert, key string, client *http.Client) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	pair := s.TLS.Certificates[0]
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	cert = commandtest.WriteFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	key = commandtest.WriteFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	require.NoError(t, os.Chmod(key, 0o600))
	return cert, key, s.Client()
}

// A certificate has a file and a key that is ours alone. What can't be used leaves the one that is.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificateFiles(t)
	none := commandtest.WriteFile(t, "none.pem", "x")
	require.NoError(t, os.Chmod(none, 0o600))
	c := &certificate{certFile: cert, keyFile: key}
	require.NoError(t, c.read())
	current := c.current.Load()
	require.NotNil(t, current)
	for _, test := range []struct{ cert, key, want string }{
		{"", key, "-tls-cert and -tls-key belong together"},
		{cert, "", "-tls-cert and -tls-key belong together"},
		{cert, key + "x", "-tls-key: "},
		{cert + "x", key, "-tls-cert: "},
		{none, key, "-tls-cert " + none + ", -tls-key " + key + ": "},
		{cert, none, "-tls-cert " + cert + ", -tls-key " + none + ": "},
	} {
		c.certFile, c.keyFile = test.cert, test.key
		assert.ErrorContains(t, c.read(), test.want)
		assert.Same(t, current, c.current.Load())
	}
}

// Others on this machine must not read the key.
func TestKeyIsOurs(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	t.Parallel()
	cert, key, _ := certificateFiles(t)
	require.NoError(t, os.Chmod(key, 0o644))
	assert.ErrorContains(t, (&certificate{certFile: cert, keyFile: key}).read(), "-tls-key: ")
}

// With a certificate, the site speaks HTTP/1.1 over TLS 1.2 or newer, and says so in its addresses.
func TestServesWithTLS(t *testing.T) {
	t.Setenv(tokens.Variable, "")
	cert, key, client := certificateFiles(t)
	_, err := Listen("127.0.0.1:0", Options{Cert: cert})
	assert.ErrorContains(t, err, "belong together")
	w, err := Listen("127.0.0.1:0", Options{Cert: cert, Key: key, Debug: true})
	require.NoError(t, err)
	assert.Len(t, w.Follows, 1, "the two files")
	at := w.listener.Addr().String()
	assert.Equal(t, "https://"+at+Endpoint, w.URL())
	assert.Equal(t, "https://"+at+DebugPath, w.Page())
	assert.Equal(t, "https://"+at, w.own)
	w.debug = false
	assert.Empty(t, w.Page())
	w.Within(limits.Limits{}.WithDefaults(), figures.New())
	s := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { _, _ = out.Write([]byte(r.Proto)) })}
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(s) }()
	transport := client.Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = true
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + at)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "HTTP/1.1", resp.Proto)
	old := transport.TLSClientConfig.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	_, err = tls.Dial("tcp", at, old)
	assert.Error(t, err)
	require.NoError(t, s.Close())
	assert.ErrorIs(t, <-ended, http.ErrServerClosed)
}
