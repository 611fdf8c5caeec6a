package servers

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/config"
)

func written(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The flags of both kinds of commands have the same names.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-config", "a", "-dialect", "vscode", "-tokens", "b"}} {
		var f File
		var s Sources
		for _, add := range []func(*flag.FlagSet){func(flags *flag.FlagSet) { f.AddFlags(flags, "the file") }, s.AddFlags} {
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			add(flags)
			require.NoError(t, flags.Parse(args))
		}
		if args == nil {
			assert.Equal(t, File{Path: "mcp.json"}, f)
			assert.Equal(t, Sources{Config: "mcp.json"}, s)
			assert.Nil(t, s.TokenStore(), "nowhere")
		} else {
			assert.Equal(t, File{"a", "vscode", "b"}, f)
			assert.Equal(t, Sources{"a", "vscode", "b"}, s)
			assert.NotNil(t, s.TokenStore())
			assert.Equal(t, "b", f.Logins())
		}
	}
	assert.EqualError(t, Unexpected("x"), `unexpected argument "x": name the file by -config`)
}

// Logins are in the folder of the flag, in the user's, or nowhere.
func TestLogins(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, folder)
	}
	t.Setenv("HOME", folder)
	var f File
	assert.Contains(t, f.Logins(), filepath.Join("mcphybrid", "tokens"))
	opts := f.Options(&config.File{Servers: []mcphybrid.ServerConfig{{Name: "a"}}})
	assert.NotNil(t, opts.TokenStore)
	assert.NotNil(t, opts.Select)
	assert.Len(t, opts.Servers, 1)
	assert.Negative(t, opts.Limits.Reconnect, "each is tried once")
	for _, name := range []string{"XDG_CONFIG_HOME", "AppData", "HOME"} {
		t.Setenv(name, "")
	}
	assert.Empty(t, f.Logins())
	assert.Nil(t, f.Options(&config.File{}).TokenStore)
}

// Whether a login can be saved is tried: by a file in the folder, which leaves nothing behind.
func TestCheckLogins(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, (&File{Tokens: folder}).CheckLogins())
	left, err := os.ReadDir(folder)
	require.NoError(t, err, "it is made")
	assert.Empty(t, left)
	blocked := written(t, "x")
	assert.EqualError(t, (&File{Tokens: blocked}).CheckLogins(), "no login can be saved in "+blocked+": not a directory")
	unwritable := commandtest.Unwritable(t)
	err = (&File{Tokens: unwritable}).CheckLogins()
	assert.ErrorContains(t, err, "no login can be saved in "+unwritable+": ")
	assert.NotContains(t, err.Error(), ".tmp")
}

// A problem of one server is logged, and the others are used. If there are no others, it is an error.
func TestLoad(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		servers, problems int
		says, want        string
	}{
		`{"mcpServers": {"a": {"command": "a"}}}`:                      {1, 0, "", ""},
		`{"mcpServers": {"a": {"command": "a"}, "b": {"command": 5}}}`: {1, 1, "level=WARN", ""},
		`{"mcpServers": {"b": {"command": 5}}}`:                        {0, 1, "", "command"},
		`{"mcpServers": {"b": {"command": 5}, "c": {"url": 5}}}`:       {0, 2, "", "command"},
		`{`: {0, 1, "", "unexpected"},
		`{"mcpServers": {"a": {"command": "a", "env": {"X": "${NOT_SET_ANYWHERE}"}}}}`: {1, 1, "", ""},
	} {
		var log bytes.Buffer
		s := &Sources{Config: written(t, text)}
		cfg, err := s.Load(slog.New(slog.NewTextHandler(&log, nil)))
		if test.want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, test.want, text)
		}
		assert.Len(t, cfg.Servers, test.servers, text)
		if test.says == "" {
			assert.NotContains(t, log.String(), "WARN", text)
		} else {
			assert.Contains(t, log.String(), test.says, text)
		}
		cfg, err = s.Read()
		assert.Len(t, Problems(cfg, err), test.problems, text)
	}
	noted := written(t, `{"mcpServers": {"a": {"command": "a", "disabled": true}, "b": {"command": "b", "zzz": 1}}}`)
	var log bytes.Buffer
	cfg, err := (&Sources{Config: noted}).Load(slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	for _, note := range cfg.Notes {
		assert.Contains(t, log.String(), "level=INFO", note)
	}
	f := File{Dialect: "vscode"}
	_, err = f.Load(noted)
	assert.ErrorContains(t, err, `no "servers" object`, "it is read in that dialect")
	_, err = (&Sources{Config: noted, Dialect: "vscode"}).Read()
	assert.ErrorContains(t, err, `no "servers" object`)
}

// A person learns where to log in.
func TestShowPage(t *testing.T) {
	t.Parallel()
	to, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	_, err = ShowPage(to)(t.Context(), mcphybrid.LoginPage{Server: "a", URL: "https://a.example/"})
	require.NoError(t, err)
	require.NoError(t, to.Close())
	said, err := os.ReadFile(to.Name())
	require.NoError(t, err)
	assert.Equal(t, "To log in to a, open this page:\nhttps://a.example/\n", string(said))
	_, err = ShowPage(to)(t.Context(), mcphybrid.LoginPage{})
	assert.Error(t, err, "nobody can read it")
}

// Servers that are at work are waited for, until a person goes.
func TestAwaitWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		servers := func() []mcphybrid.ServerStatus {
			list := []mcphybrid.ServerStatus{{State: mcphybrid.StateReady}, {State: mcphybrid.StateConnecting}}
			if time.Since(begun) > 950*time.Millisecond {
				list[1].State = mcphybrid.StateDown
			}
			return list
		}
		awaitWork(t.Context(), servers)
		assert.Equal(t, time.Second, time.Since(begun))
		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		awaitWork(ctx, servers)
		assert.Equal(t, 300*time.Millisecond, time.Since(begun))
	})
}

// Who sees nothing drawn is told after a second what is waited for, and then less often.
func TestTellWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var said []string
		servers := func() (list []mcphybrid.ServerStatus) {
			for i, name := range strings.Fields("a b c d e f g h") {
				st := mcphybrid.ServerStatus{Name: name, State: mcphybrid.StateConnecting}
				if time.Since(begun) > time.Duration(i)*2*time.Second {
					st.State = mcphybrid.StateReady
				}
				list = append(list, st)
			}
			queued := mcphybrid.ServerStatus{Name: "z", State: mcphybrid.StateConfigured}
			if time.Since(begun) > 10*time.Second {
				queued.State = mcphybrid.StateReady
			}
			return append(list, queued, mcphybrid.ServerStatus{Name: "down", State: mcphybrid.StateDown})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tellWaits(ctx, servers, func(line ...string) {
			said = append(said, fmt.Sprintf("%v: %s", time.Since(begun), line[0]))
		})
		assert.Equal(t, []string{"1s: waiting for b, c, d, e, f and 3 more to start", "4s: waiting for c, d, e, f, g and 2 more to start", "13s: waiting for h to start"}, said)
	})
}

func TestStartInterrupted(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: []mcphybrid.ServerConfig{{Name: "gone", Command: "no-such-program-anywhere"}}, Limits: config.Limits{Reconnect: -1}})
	defer mgr.Close()
	require.NoError(t, Start(t.Context(), mgr, null), "what is wrong with a server is its status")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, Start(ctx, mgr, null), ErrInterrupted)
	lines := starting(mgr.Servers)()
	require.Len(t, lines, 2)
	assert.Equal(t, "0 of 1 server is ready", lines[0])
	assert.Contains(t, lines[1], "✗ gone ")
}

// Of a token that was refused a person can log in again, but should know why.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	s := mcphybrid.ServerStatus{Name: "a", State: mcphybrid.StateUnauthorized}
	assert.Contains(t, startLine(s, time.Now()), "wants a login: mcphybrid login a")
	s.Err = errors.New("other")
	assert.Contains(t, startLine(s, time.Now()), "wants a login: mcphybrid login a")
}
