package weaviatestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secret is an API key with characters that JSON and Go quote.
const secret = `wv-<1234>&"5678"\end`

// against returns a store that sends the secret to a server.
func against(t *testing.T, handler http.HandlerFunc) *Store {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return open(t, Options{URL: server.URL + "/", APIKey: secret})
}

func TestOptions(t *testing.T) {
	s, err := New(Options{URL: "https://weaviate.example.com/behind/a/proxy//"})
	require.NoError(t, err)
	assert.Equal(t, DefaultClass, s.opts.Class)
	assert.Equal(t, "https://weaviate.example.com/behind/a/proxy", s.url)
	assert.Equal(t, defaultTimeout, s.client.Timeout)
	assert.Nil(t, http.DefaultClient.CheckRedirect)
	for _, bad := range []string{
		"", "localhost:8080", "ftp://h", "http://", "http://:8080", "http:h", "http://u:" + "p4ss@h", "http://h?x=p4ss", "http://h?", "http://h#p4ss", "http://p4ss\n",
	} {
		_, err := New(Options{URL: bad})
		assert.ErrorContains(t, err, "weaviatestore: the URL must be http:// or https://", bad)
		assert.NotContains(t, fmt.Sprint(err), "p4ss")
	}
	for _, bad := range []string{"p4ss\n", "p4 ss", "p4ssé"} {
		_, err := New(Options{URL: "http://h", APIKey: bad})
		assert.EqualError(t, err, "weaviatestore: the API key has a space or a character that is not ASCII")
	}
	for _, bad := range []string{"tools", "T-1", "Tools\n", "T{x}", "Ü", "T/../x"} {
		_, err := New(Options{URL: "http://h", Class: bad})
		assert.ErrorContains(t, err, fmt.Sprintf("weaviatestore: %q is no name of a class", bad))
	}
}

// The real server accepts the right key. With a wrong one, every method returns
// an error that says why and not which.
func TestAPIKey(t *testing.T) {
	opts := newOptions(t)
	if own == nil {
		t.Skipf("the keys of the server that %s names are unknown", addrVariable)
	}
	opts.APIKey = serverKey
	s := open(t, opts)
	require.NoError(t, s.Upsert(t.Context(), "u", []vector.Record{tool("a", 1, 0)}))
	assert.Equal(t, []string{"a"}, search(t, s, "u", vector.Query{Words: "text", Limit: 1}))
	opts.APIKey = "wrong-key"
	for doing, err := range everything(t.Context(), open(t, opts)) {
		assert.ErrorContains(t, err, `weaviatestore: scope "u": `+doing+": ")
		assert.ErrorContains(t, err, ": 401 Unauthorized: ")
		assert.NotContains(t, fmt.Sprint(err), "wrong-key")
	}
}

// Errors name the request, the status and the server's message, in brief and on
// one line.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{422, `{"error":[{"message":"no\nsuch\u0000 thing"},{"message":"x"}]}`, "422 Unprocessable Entity: no such thing"},
		{401, `{"code":401,"message":"not you"}`, "401 Unauthorized: not you"},
		{500, "", "500 Internal Server Error"},
		{500, `{"error":[null,{}]}`, `500 Internal Server Error: {"error":[null,{}]}`},
		{502, "<html>\n  bad gateway", "502 Bad Gateway: <html> bad gateway"},
		{204, "", "204 No Content"},
		{599, long, "599: " + long[:2*maxShown] + "…"},
		{200, `{"errors":[{"message":"` + long + `"}],"data":5}`, long[:2*maxShown] + "…"},
		{200, `{"errors":[null]}`, "refused without a reason"},
		{200, `<html>`, "an answer of another shape: invalid character '<' looking for beginning of value"},
		{200, ``, "an answer of another shape: unexpected end of JSON input"},
		{200, `{}`, `the answer has no objects under "words"`},
		{200, `{"data":{"words":{"Other":[]}}}`, `the answer has no objects under "words"`},
	} {
		s := against(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet { // the class is there
				w.Write([]byte("{}"))
				return
			}
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		})
		_, err := s.Search(t.Context(), "u", vector.Query{Words: "x", Limit: 1})
		assert.EqualError(t, err, `weaviatestore: scope "u": searching: POST /v1/graphql: `+test.want)
	}
}

// A record counts as stored or deleted only if the engine says so.
func TestRefused(t *testing.T) {
	for _, reply := range []string{
		``, `null`, `{}`, `[]`, `[{},{}]`, `[{}]`, `[null]`, `[{"result":null}]`, `[{"result":{"status":"FAILED"}}]`, `[{"result":{"status":"PENDING"}}]`,
		`[{"result":{"status":"SUCCESS","errors":{"error":[null]}}}]`,
	} {
		assert.Error(t, stored([]byte(reply), 1), reply)
	}
	assert.NoError(t, stored([]byte(`[{"result":{"status":"SUCCESS"}}]`), 1))
	err := stored([]byte(`[{"result":{"status":"SUCCESS"}},{"result":{"status":"FAILED","errors":{"error":[{"message":"no"}]}}}]`), 2)
	assert.Equal(t, "no", messageOf(err))

	for _, reply := range []string{``, `null`, `{}`, `{"results":{"failed":1}}`, `{"results":{"failed":"0"}}`} {
		assert.Error(t, deleted([]byte(reply)), reply)
	}
	assert.NoError(t, deleted([]byte(`{"results":{"failed":0,"matches":2}}`)))
}

// No error has the key, wherever a server repeats it.
func TestKeyIsHidden(t *testing.T) {
	for _, reply := range []string{
		"HTTP/1.1 401 Unauthorized\r\n\r\n" + secret,
		"HTTP/1.1 401 Unauthorized\r\n\r\n" + strings.Repeat("x", maxShown-5) + secret,
		"HTTP/1.1 401 Unauthorized\r\n\r\n{\"x\":" + literal(secret),
		"HTTP/1.1 401 Unauthorized\r\n\r\n{\"error\":[{\"message\":" + literal(secret) + "}]}",
		"HTTP/1.1 200 OK\r\n\r\n{\"errors\":[{\"message\":" + literal(secret) + "}]}",
		"HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n",
		secret + "\r\n\r\n",
	} {
		var got atomic.Value
		s := against(t, func(w http.ResponseWriter, r *http.Request) {
			got.Store(r.Header.Get("Authorization"))
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				io.WriteString(conn, reply)
				conn.Close()
			}
		})
		_, err := s.Sums(t.Context(), "u")
		assert.ErrorContains(t, err, `weaviatestore: scope "u": listing: POST /v1/graphql: `)
		assert.NotContains(t, fmt.Sprint(err), "1234", reply)
		assert.Contains(t, fmt.Sprint(err), "…", reply)
		assert.Equal(t, "Bearer "+secret, got.Load())
	}
}

// A redirect is an error. Neither the key nor the tools go elsewhere.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect is followed") }))
		defer other.Close()
		s := against(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		for doing, err := range everything(t.Context(), s) {
			assert.ErrorContains(t, err, `weaviatestore: scope "u": `+doing+": ")
			assert.ErrorContains(t, err, fmt.Sprint(": ", status, " ", http.StatusText(status)))
		}
	}
}

// An endless answer costs no more than the limit, whatever its status.
func TestEndlessReply(t *testing.T) {
	for _, status := range []int{200, 500} {
		var sent atomic.Int64
		s := against(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for {
				n, err := w.Write(bytes.Repeat([]byte(" "), 1<<20))
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		_, err := s.roundTrip(t.Context(), http.MethodPost, "/v1/graphql", "x")
		if status == 200 {
			assert.EqualError(t, err, fmt.Sprintf("the answer has more than %d bytes", maxReply+6*len(`"x"`)))
		} else {
			assert.Equal(t, 500, statusOf(err))
		}
		s.client.CloseIdleConnections()
		assert.Less(t, sent.Load(), int64(2*maxReply))
	}
}

// A request over a connection that the server has just closed is sent again.
func TestIdleConnection(t *testing.T) {
	var requests atomic.Int64
	s := against(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 {
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				conn.Close()
			}
			return
		}
		io.WriteString(w, `{"data":{"all":{"McphybridTools":[]}}}`)
	})
	for range 2 {
		_, err := s.Sums(t.Context(), "u")
		assert.NoError(t, err)
	}
	assert.Equal(t, int64(3), requests.Load())
}

// Pages that make no progress end with an error.
func TestSamePage(t *testing.T) {
	page := `{"data":{"all":{"McphybridTools":[` + strings.Repeat(`{},`, sumsPage-1) + `{"_additional":{"id":"x"}}]}}}`
	s := against(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, page) })
	_, err := s.Sums(t.Context(), "u")
	assert.EqualError(t, err, `weaviatestore: scope "u": listing: the engine's pages are not in the order of the ids`)
}

// A roundTripper is a server without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whatever a server answers, every method ends with a result or an error, and
// errors are short lines without the key.
func FuzzReplies(f *testing.F) {
	good := `{"class":"McphybridTools","vectorizer":"none","vectorIndexConfig":{"distance":"cosine"},"multiTenancyConfig":{"enabled":true,"autoTenantCreation":true},
		"properties":[{"name":"tool_name","dataType":["text"]},{"name":"origin","dataType":["text"]},{"name":"origin_sha256","dataType":["text"],"indexFilterable":true},
		{"name":"text","dataType":["text"],"indexSearchable":true},{"name":"sum","dataType":["text"]},{"name":"scope","dataType":["text"]},
		{"name":"dimensions","dataType":["int"],"indexFilterable":true}]}`
	row := `{"tool_name":"a","origin":"s","sum":"1","dimensions":2,"_additional":{"id":"` + objectID("a") + `","distance":0.5,"score":"1"}}`
	for _, reply := range []string{
		`{"data":{"words":{"McphybridTools":[` + row + `]},"similar":{"McphybridTools":[` + row + `]},"all":{"McphybridTools":[` + row + `]},"any":{"McphybridTools":[` + row + `]}}}`,
		`{"data":{"all":{"McphybridTools":[` + strings.Repeat("null,", sumsPage) + row + `]}}}`,
		`{"errors":[{"message":"tenant not found"}]}`, `{"errors":[{"message":"vector lengths don't match"}]}`, `[{"result":{"status":"SUCCESS"}}]`,
		`[{"result":{"status":"FAILED","errors":{"error":[{"message":"` + strings.Repeat("no ", 200) + `"}]}}}]`, `{"results":{"failed":0}}`,
		`{"error":[{"message":"no"}]}`, `{"message":` + literal(secret) + `}`, secret, ``, `null`, `[]`, `[null]`, `{}`, `"x"`, `{"data":null}`, "\xff\x00",
	} {
		for _, status := range []int{200, 404, 422} {
			f.Add(status, good, status, reply)
		}
	}
	f.Fuzz(func(t *testing.T, classStatus int, class string, status int, reply string) {
		requests := 0
		s, err := New(Options{URL: "http://weaviate", APIKey: secret, Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if requests++; requests > 100 {
				t.Error("it does not end")
				return nil, errors.New("too many requests")
			}
			answer := &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(reply)), Header: http.Header{}, Request: r}
			if r.Method == http.MethodGet {
				answer.StatusCode, answer.Body = classStatus, io.NopCloser(strings.NewReader(class))
			}
			return answer, nil
		})}})
		require.NoError(t, err)
		for doing, err := range everything(context.Background(), s) {
			if err == nil {
				continue
			}
			assert.True(t, strings.HasPrefix(err.Error(), `weaviatestore: scope "u": `+doing+": "), "%v", err)
			assert.NotContains(t, err.Error(), secret)
			assert.LessOrEqual(t, utf8.RuneCountInString(err.Error()), 3*maxShown)
			assert.NotContains(t, err.Error(), "\n")
		}
	})
}

// Connections are reused: many requests in turn need one.
func TestConnectionsAreReused(t *testing.T) {
	var conns atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		io.WriteString(w, `{"error":[{"message":"tenant not found"}]}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := open(t, Options{URL: server.URL})
	for range 10 {
		assert.Empty(t, search(t, s, "u", vector.Query{Words: "x", Limit: 1}))
	}
	assert.Equal(t, int64(1), conns.Load())
}
