package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// renaming serves a gateway under the names that its only server "u" has for its tools and
// prompts, and with a token. Nothing else changes on the way.
func renaming(t *testing.T, gateway, token string) (address string) {
	to, err := url.Parse(gateway)
	require.NoError(t, err)
	var own string
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
			r.Out.Header.Del("Accept-Encoding")
			if r.Out.Host = r.In.Host; r.In.Host == own {
				r.Out.Host = to.Host
			}
			if r.In.Header.Get("Origin") == "http://"+own {
				r.Out.Header.Set("Origin", "http://"+to.Host)
			}
			if r.In.Method != http.MethodPost {
				return
			}
			body, _ := io.ReadAll(r.In.Body) // what is not whole is not JSON
			method, body := renamed(body)
			if name := r.In.Header.Get("Mcp-Name"); name != "" && (method == "tools/call" || method == "prompts/get") {
				r.Out.Header.Set("Mcp-Name", registered(name))
			}
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			lines, end := io.Pipe()
			from := r.Body
			go func() {
				for in := bufio.NewReader(from); ; {
					line, err := in.ReadBytes('\n')
					if _, gone := end.Write(bytes.ReplaceAll(line, []byte(prefixOfU), nil)); gone != nil || err != nil {
						end.CloseWithError(err)
						return
					}
				}
			}()
			r.Body = struct {
				io.Reader
				io.Closer
			}{lines, from}
			return nil
		},
	}
	s := httptest.NewUnstartedServer(proxy)
	t.Cleanup(s.Close)
	own = s.Listener.Addr().String()
	s.Start()
	return s.URL + to.Path
}

const prefixOfU = "mcp_u__"

func registered(name string) string {
	if name == "" || strings.HasPrefix(name, "mcp_") {
		return name
	}
	return prefixOfU + name
}

// renamed returns the method of a message, and the message with the registered name of the
// tool or prompt that it is about.
func renamed(message []byte) (method string, out []byte) {
	var m, params map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m["method"], &method) != nil || json.Unmarshal(m["params"], &params) != nil {
		return method, message
	}
	rename := func(in map[string]json.RawMessage) {
		var name string
		if json.Unmarshal(in["name"], &name) == nil {
			in["name"], _ = json.Marshal(registered(name))
		}
	}
	switch method {
	case "tools/call", "prompts/get":
		rename(params)
	case "completion/complete":
		var ref map[string]json.RawMessage
		if json.Unmarshal(params["ref"], &ref) == nil {
			rename(ref)
			params["ref"], _ = json.Marshal(ref)
		}
	default:
		return method, message
	}
	m["params"], _ = json.Marshal(params)
	out, _ = json.Marshal(m)
	return method, out
}
