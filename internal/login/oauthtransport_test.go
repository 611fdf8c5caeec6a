package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func holdNothing(string, ...string) {}

// A redirect is followed at the host that was asked, if nothing was sent, and not for ever.
func TestRedirectsOfAuthorities(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { assert.Fail(t, "another host was asked") }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var n int
		if r.URL.Path == "/other" {
			http.Redirect(out, r, other.URL, http.StatusTemporaryRedirect)
		} else if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err == nil && n > 0 {
			http.Redirect(out, r, fmt.Sprintf("/%d", n-1), http.StatusTemporaryRedirect)
		} else {
			_, _ = io.WriteString(out, "{}")
		}
	}))
	defer s.Close()
	client := (&oauthTransport{hold: holdNothing, base: http.DefaultTransport}).client()
	for path, want := range map[string]bool{"/0": true, "/1": true, "/9": true, "/10": false, "/other": false} {
		resp, err := client.Get(s.URL + path)
		if want {
			require.NoError(t, err, path)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, http.StatusOK, resp.StatusCode)
		} else {
			assert.ErrorContains(t, err, "refused a redirect to host ", path)
		}
	}
	_, err := client.PostForm(s.URL+"/1", nil)
	assert.ErrorContains(t, err, "refused a redirect to host ", "what was sent goes nowhere else")
}

// What is sent is a form that can be read, with the resource, and over TLS if the server has that.
func TestFormsThatAreSent(t *testing.T) {
	t.Parallel()
	sent := errors.New("not sent")
	body := ""
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		assert.EqualValues(t, len(data), r.ContentLength)
		again, err := r.GetBody()
		require.NoError(t, err)
		same, err := io.ReadAll(again)
		require.NoError(t, err)
		assert.Equal(t, data, same)
		body = string(data)
		return nil, sent
	})
	post := func(c *oauthTransport, address, kind, form string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form))
		require.NoError(t, err)
		r.Header.Set("Content-Type", kind)
		resp, err := c.RoundTrip(r)
		assert.Nil(t, resp)
		return err
	}
	const form = "application/x-www-form-urlencoded"
	for _, test := range []struct {
		c             *oauthTransport
		address, form string
		want          string
		sent          string
	}{
		{&oauthTransport{hold: holdNothing, base: base}, "http://a.example", "a=1", "not sent", "a=1"},
		{&oauthTransport{hold: holdNothing, base: base, resource: "https://r.example"}, "http://a.example", "a=1&resource=x", "not sent", "a=1&resource=https%3A%2F%2Fr.example"},
		{&oauthTransport{hold: holdNothing, base: base}, "http://a.example", "a=%zz", "the form is malformed", ""},
		{&oauthTransport{hold: holdNothing, base: base, secure: true}, "http://a.example", "a=1", `refused to send a request to host "a.example" without TLS`, ""},
		{&oauthTransport{hold: holdNothing, base: base, secure: true}, "https://a.example", "a=1", "not sent", "a=1"},
	} {
		body = ""
		assert.ErrorContains(t, post(test.c, test.address, form, test.form), test.want)
		assert.Equal(t, test.sent, body)
	}
	assert.ErrorIs(t, post(&oauthTransport{hold: holdNothing, base: base}, "http://a.example", "application/json", "no JSON"), sent)
	assert.Equal(t, "no JSON", body)
}

// An answer has a limit, and one that fails says in a form that mcp-go reads why, without what was sent.
func TestAnswersOfAuthorities(t *testing.T) {
	t.Parallel()
	status, said := 200, ""
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"X-A": {"1"}}, Body: io.NopCloser(strings.NewReader(said))}, nil
	})
	get := func() (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/x", nil)
		require.NoError(t, err)
		resp, err := (&oauthTransport{hold: holdNothing, base: base}).RoundTrip(r)
		if err != nil {
			return "", err
		}
		assert.Equal(t, status, resp.StatusCode)
		assert.Equal(t, "1", resp.Header.Get("X-A"))
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(data), nil
	}
	said = strings.Repeat(" ", maxAnswer)
	got, err := get()
	require.NoError(t, err)
	assert.Len(t, got, maxAnswer)
	said += " "
	_, err = get()
	assert.EqualError(t, err, fmt.Sprintf("the answer has more than %d bytes", maxAnswer))
	status, said = 400, "<html>"
	got, err = get()
	require.NoError(t, err)
	assert.Equal(t, "{}", got)
	for _, status = range []int{200, 400} {
		said = `{"error":"invalid","error_description":"no","other":1}`
		got, err = get()
		require.NoError(t, err)
		var members map[string]string
		require.NoError(t, json.Unmarshal([]byte(got), &members))
		assert.Equal(t, map[string]string{"error": "invalid", "error_description": "no"}, members)
	}
}
