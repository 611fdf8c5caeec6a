package mcphybrid

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everyText returns the texts of err and of all errors that it wraps.
func everyText(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v %+v %#v\n", err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		text += everyText(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			text += everyText(err)
		}
	}
	return text
}

// However a server behaves, nothing that the host or the model sees has a
// secret of the configuration, except the results of tools.
func TestSecrets(t *testing.T) {
	const mark = "Z~7" // part of each secret; in no hash in base64
	t.Setenv("MY_TOKEN", "variable"+mark)
	dying := func(after string) ServerConfig {
		cfg := child(t, "bad", "confess")
		for key, value := range map[string]string{
			"AFTER": after, "API_KEY": `key"\<` + mark + `é 1`, "PIN": "pin-" + mark + "-pin", "PEM": "-----BEGIN\nabcdefgh" + mark + "\nijklmnop" + mark + "\n-----END",
			"DATABASE": "postgres://me:pw" + mark + "@db/x", "LONG": strings.Repeat("long"+mark, 300), "EMPTY": "",
		} {
			cfg.Env[key] = value
		}
		cfg.Args = []string{
			"--api-key=arg" + mark, "--token", "next" + mark, "--header", "Authorization: Bearer bear" + mark, "-e", "SECRET=e" + mark,
			"postgres://me:argpw" + mark + "@db/x?sslkey=q" + mark, "variable" + mark,
		}
		return cfg
	}
	// loaded has its secrets from a file and from the user.
	loaded := func() ServerConfig {
		path := filepath.Join(t.TempDir(), "mcp.json")
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "key"), []byte("file"+mark+"\n"), 0o600))
		base := child(t, "bad", "confess")
		base.Env["AFTER"] = "initialize"
		data, err := json.Marshal(map[string]any{
			"inputs":  []any{map[string]any{"id": "pin", "type": "promptString", "password": true}},
			"servers": map[string]any{"bad": map[string]any{"command": base.Command, "env": base.Env, "args": []string{"${file:key}", "x${input:pin}y"}}},
		})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		cfg, err := config.Load(path, &config.Options{Input: func(config.Input) (string, error) { return "user" + mark, nil }})
		require.NoError(t, err)
		require.Equal(t, []string{"file" + mark, "xuser" + mark + "y"}, cfg.Servers[0].Args)
		return cfg.Servers[0]
	}
	serve := mcpserver.NewStreamableHTTPServer(func() *mcpserver.MCPServer {
		s := mcpserver.NewMCPServer("web", "1")
		s.AddTools(echoTool("a", ""))
		return s
	}())
	// web serves normally until the method after. It answers that method and
	// all later ones by f.
	web := func(after string, f http.HandlerFunc) ServerConfig {
		var reached bool
		var mu sync.Mutex
		address := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			reached = reached || after == "" || strings.Contains(string(body), `"`+after+`"`)
			bad := reached
			mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bad {
				f(w, r)
			} else {
				serve.ServeHTTP(w, r)
			}
		}), "127.0.0.1:0")
		return ServerConfig{
			Name: "bad", URL: strings.Replace(address, "http://", "http://me:pass"+mark+"%2F@", 1) + "/s/0123456789abc" + mark + "?key=query" + mark + "%26x&plain" + mark,
			Headers: map[string]string{"X-Key": "head" + mark, "Cookie": "a=b; session=cookie" + mark},
		}
	}
	echo := func(w http.ResponseWriter, r *http.Request) string {
		w.Header().Set("X-Echo", r.URL.String())
		return fmt.Sprintf("%s %q %s %s", r.URL, r.Header, r.URL.Query(), r.Header)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text := echo(w, r)
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}
	}
	rpc := func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&in)
		message, _ := json.Marshal(echo(w, r))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, in.ID, message)
	}
	garbage := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":%q}\n\n", echo(w, r), echo(w, r))
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.Scheme, u.Host = "http", r.Header.Get("X-Key")
		http.Redirect(w, r, u.String()+"&"+r.Header.Get("X-Key"), http.StatusTemporaryRedirect)
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	configs := map[string]ServerConfig{
		"dies": dying(""), "dies when initialized": dying("initialize"), "dies when listed": dying("tools/list"), "dies of a call": dying("tools/call"),
		"dies, loaded from a file": loaded(),
		"no command":               {Command: "no-such --password=pw" + mark, Args: []string{"--key", "k" + mark}},
		"no address":               {Args: []string{"--key", "k" + mark}, Env: map[string]string{"TOKEN=t" + mark: ""}},
		"bad header":               {URL: "http://localhost", Headers: map[string]string{"X-Key: h" + mark: "", "X": "h" + mark + "\n"}},
		"bad url":                  {URL: "http://h/%zz?key=k" + mark},
		"refused":                  {URL: "http://me:pass" + mark + "@127.0.0.1:1/mcp?key=query" + mark},
		"malformed url":            {URL: "http://me:pass" + mark + "@:1:1/"},
	}
	for name, f := range map[string]http.HandlerFunc{
		"401": status(401), "404": status(404), "500": status(500), "JSON-RPC error": rpc, "garbage": garbage, "redirect": redirect, "hang up": hangUp,
	} {
		for _, after := range []string{"", "tools/list", "tools/call"} {
			configs[name+" at "+after] = web(after, f)
		}
	}
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			cfg.Name = "bad"
			log := new(mcptest.Log)
			logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			standard := slog.Default()
			slog.SetDefault(logger)
			defer slog.SetDefault(standard)
			file := filepath.Join(t.TempDir(), "cache")
			o := Options{Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{cfg}, Logger: logger, Cache: store.File(file), OnEvent: LogEvents(logger, slog.LevelDebug)}
			m := NewManager(&o)
			defer m.Close()
			var seen strings.Builder
			note := func(v any) {
				if err, ok := v.(error); ok {
					v = everyText(err)
				}
				fmt.Fprintf(&seen, "%v\n", v)
			}
			err := m.Start(t.Context())
			note(err)
			note(m.AddServer(t.Context(), func() ServerConfig { c := cfg; c.Name = "more"; return c }()))
			result, callErr := m.Call(t.Context(), "mcp_bad__a", "{}")
			note(callErr)
			note(mustJSON(t, result))
			if strings.HasPrefix(name, "dies") {
				soon(t, func() bool { return m.Servers()[0].State == StateDown })
			}
			assert.True(t, err != nil || callErr != nil, "it must go wrong")
			for _, st := range m.Servers() {
				note(st)
				note(st.Err)
			}
			note(errors.Join(m.Problems()...))
			note(m.PromptSections(PromptFull))
			note(string(m.Default().Save()))
			require.NoError(t, m.Close())
			cached, _ := os.ReadFile(file)
			note(string(cached))
			fmt.Fprintf(&seen, "%v %+v %#v %s %v %+v %#v\n", cfg, cfg, cfg, cfg, &cfg, o, config.File{Servers: []ServerConfig{cfg}})
			slog.New(slog.NewJSONHandler(&seen, nil)).Info("", "server", cfg)
			note(log.String())
			text := seen.String()
			if i := strings.Index(text, mark); i >= 0 {
				t.Errorf("a secret is seen: …%s…", text[max(0, i-100):min(len(text), i+50)])
			}
			for _, basic := range []string{"me:pass" + mark + "/", "me:pass" + mark} {
				assert.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(basic)))
			}
		})
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// A part of a secret that can be used alone, or that is left where a text was cut,
// is as secret as the whole.
func TestPartsOfSecrets(t *testing.T) {
	t.Parallel()
	const token = "ghp_0123456789abcdefghij"
	basic := base64.StdEncoding.EncodeToString([]byte("someone:opensesame"))
	for name, test := range map[string]struct {
		url     func(address string) string
		headers map[string]string
		echo    func(r *http.Request) string // the text of the server's error
		hidden  []string
	}{
		"user name that is a token": {
			url:    func(a string) string { return strings.Replace(a, "://", "://"+token+"@", 1) },
			echo:   func(r *http.Request) string { return r.Header.Get("Authorization") },
			hidden: []string{base64.StdEncoding.EncodeToString([]byte(token + ":"))},
		},
		"user name that is a token, decoded": {
			url:    func(a string) string { return strings.Replace(a, "://", "://"+token+":x-oauth-basic@", 1) },
			echo:   func(r *http.Request) string { user, _, _ := r.BasicAuth(); return "no user " + user },
			hidden: []string{token},
		},
		"bearer token alone": {
			headers: map[string]string{"X-Forwarded": "Bearer " + token},
			echo:    func(r *http.Request) string { return "bad token " + token },
			hidden:  []string{token},
		},
		"password of Basic": {
			headers: map[string]string{"Authorization": "Basic " + basic},
			echo: func(r *http.Request) string {
				user, pw, _ := r.BasicAuth()
				return user + " has not the password " + pw
			},
			hidden: []string{"opensesame"},
		},
		"cookie alone": {
			headers: map[string]string{"Cookie": "theme=dark; sid=" + token},
			echo:    func(r *http.Request) string { c, _ := r.Cookie("sid"); return "no session " + c.Value },
			hidden:  []string{token},
		},
		"secret that overlaps another": {
			headers: map[string]string{"X-Key": "abcdefghijkl", "X-Token": "ghijklmnopqr"},
			echo:    func(*http.Request) string { return "abcdefghijklmnopqr" },
			hidden:  []string{"abcd", "mnopqr"},
		},
		"secret within a longer one": {
			headers: map[string]string{"X-Key": "abcdefgh", "X-Token": "abcdefghijklmnop"},
			echo:    func(*http.Request) string { return "abcdefghijklmnop" },
			hidden:  []string{"abcd", "ijkl"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "refused: "+test.echo(r), http.StatusInternalServerError)
			}), "127.0.0.1:0")
			if test.url != nil {
				address = test.url(address)
			}
			m := NewManager(&Options{Limits: config.Limits{Reconnect: -1}, Servers: []ServerConfig{{Name: "bad", URL: address, Headers: test.headers}}})
			defer m.Close()
			err := m.Start(t.Context())
			require.ErrorContains(t, err, "refused: ")
			assert.Contains(t, err.Error(), "[hidden]")
			for _, secret := range test.hidden {
				assert.NotContains(t, everyText(err), secret)
			}
		})
	}

	t.Run("name of a tool, cut", func(t *testing.T) {
		t.Parallel()
		secret := strings.Repeat("0123456789", 20)
		cfg := child(t, "bad", "raw")
		cfg.Env["LIST"] = `{"tools":[{"name":"x` + secret + `","inputSchema":true}]}`
		cfg.Env["KEY"] = secret
		m := NewManager(&Options{Servers: []ServerConfig{cfg}})
		defer m.Close()
		require.NoError(t, m.Start(t.Context()))
		text := errors.Join(m.Problems()...).Error()
		assert.Contains(t, text, "[hidden]…")
		assert.NotContains(t, text, "0123456789")
	})
}

// A server that knows a secret of its configuration writes it into all that may
// become a problem.
func TestProblemsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-5ecret5ecret"
	tool := func(name, description string, needs any) mcpserver.ServerTool {
		return mcpserver.ServerTool{Tool: mcp.Tool{Name: name, Description: description, InputSchema: mcp.ToolInputSchema{Type: "object"}, Meta: mcp.NewMetaFromMap(map[string]any{"mcphybrid/needs": needs})}}
	}
	log := new(mcptest.Log)
	m, _ := newTestManager(t, &Options{Trust: TrustQuarantine, Logger: slog.New(slog.NewTextHandler(log, nil))})
	s := mcpserver.NewMCPServer("bad", "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(
		tool("missing", "", []string{secret}), tool("itself_"+secret, "", []string{"itself_" + secret}), tool("malformed_"+secret, "", map[string]any{secret: 1}),
		tool("one_"+secret, "", []string{"other"}), tool("other", "", []string{"one_" + secret}), tool("changes_"+secret, "was", nil),
	)
	cfg := ServerConfig{Name: "bad", InProcess: s, Env: map[string]string{"TOKEN": secret}, Needs: map[string][]string{"none": nil}}
	require.NoError(t, m.AddServer(t.Context(), cfg))
	s.AddTools(tool("changes_"+secret, "is", nil))
	var changed *ChangedError
	soon(t, func() bool { return errors.As(errors.Join(m.Problems()...), &changed) })
	assert.Equal(t, "changes_"+secret, changed.Tool)
	said := fmt.Sprint(m.Problems())
	for _, part := range []string{"needs missing tools", "needs itself", "malformed needs", "need each other", "has needs for", "has changed"} {
		assert.Contains(t, said, part)
		soon(t, func() bool { return strings.Contains(log.String(), part) })
	}
	assert.Contains(t, said, "[hidden]")
	assert.NotContains(t, said+log.String(), secret)
}

// Servers that repeat a part of an address may write its escapes in lower case.
func TestSecretsInLowerCaseEscapes(t *testing.T) {
	t.Parallel()
	server := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such key: "+strings.ToLower(url.QueryEscape(r.Header.Get("X-Api-Key"))), http.StatusInternalServerError)
	}), "127.0.0.1:0")
	m := NewManager(&Options{Servers: []ServerConfig{{Name: "web", URL: server, Headers: map[string]string{"X-Api-Key": "quite/secret+key"}}}})
	defer m.Close()
	err := m.Start(t.Context())
	require.ErrorContains(t, err, "no such key: [hidden]")
	assert.NotContains(t, everyText(err)+everyText(m.Servers()[0].Err), "secret")
}
