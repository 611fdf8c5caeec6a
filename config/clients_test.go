package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A clientFile is a file as a client's documentation says to write it, and what it
// becomes.
type clientFile struct {
	path    string // below testdata/clients
	dialect string
	env     map[string]string
	options Options
	servers []Server          // apart from those that are off
	off     []string          // names
	refused map[string]string // by name, a part of the error
	notes   []string          // parts, one each
}

func clientFiles(t *testing.T) []clientFile {
	folder, err := filepath.Abs("testdata/clients")
	require.NoError(t, err)
	in := func(path string) string { return filepath.Join(folder, filepath.FromSlash(path)) }
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	ask := func(in Input) (string, error) { return "<" + in.ID + ">", nil }
	noApprovals := "there are no approvals here, so it has no effect"
	return []clientFile{
		{
			path: "claude-desktop/claude_desktop_config.json", dialect: "claude-desktop",
			servers: []Server{{
				Name: "notes", Command: "npx", Args: []string{"-y", "@example/notes-server", "/home/ann/notes"}, Env: map[string]string{"NOTES_LANG": "en"},
			}},
		},
		{
			path: "claude-code/.mcp.json", dialect: "claude-code",
			env: map[string]string{"TICKETS_TOKEN": "t", "TOOLS": "/opt/tools", "DSN": "db://x"},
			servers: []Server{
				{Name: "tickets", URL: "https://tickets.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}, CallTimeout: 10 * time.Minute},
				{Name: "database", Command: "/opt/tools/db-server", Args: []string{"--dsn", "db://x"}, Env: map[string]string{"MODE": "read"}},
				{Name: "intranet", URL: "https://intranet.example.com/mcp", HeadersHelper: "/opt/bin/intranet-headers"},
				{Name: "calendar", URL: "https://calendar.example.com/mcp", OAuth: &OAuth{
					ClientID: "calendar-cli", RedirectURI: "http://localhost:8080/callback", Scopes: []string{"read", "write"},
				}},
				{Name: "stream", URL: "https://stream.example.com/sse", SSE: true},
			},
			refused: map[string]string{
				"socket": `type "ws" is not supported: want stdio, http or sse`,
			},
			notes: []string{`server "tickets": "alwaysLoad": its tools are deferred like all others: pin them by Options.Pins`},
		},
		{
			path: "claude-code/.claude.json", dialect: "claude-code", options: Options{Workspace: "/home/ann/shop"},
			servers: []Server{
				{Name: "search", Command: "search-server", Env: map[string]string{}},
				{Name: "files", Command: "shop-files"},
				{Name: "shop", Command: "shop-server"},
			},
			off:   []string{"browser"},
			notes: []string{`this client also has "permissions", which is not read`},
		},
		{
			path: "claude-code/.claude.json", dialect: "claude-code", options: Options{Workspace: "/home/ann/blog"},
			servers: []Server{
				{Name: "browser", Command: "browser-server"},
				{Name: "files", Command: "files-server"},
				{Name: "blog", Command: "blog-server"},
			},
			off:   []string{"search"},
			notes: []string{`this client also has "permissions", which is not read`},
		},
		{
			path: "claude-code/.claude.json", dialect: "claude-code", options: Options{Workspace: "/home/ann/lab"},
			servers: []Server{{Name: "files", Command: "files-server"}},
			off:     []string{"search", "browser"},
			notes:   []string{`this client also has "permissions", which is not read`},
		},
		{
			path: "cherry-studio/mcp.json", dialect: "cherry-studio",
			servers: []Server{
				{
					Name: "search", Command: "npx", Args: []string{"-y", "@example/search-server"}, Env: map[string]string{"SEARCH_KEY": "k"},
					Tools: Access{Deny: []string{"delete_index"}}, CallTimeout: 2 * time.Minute,
				},
				{Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}},
			},
			off:     []string{"off"},
			refused: map[string]string{"built-in": `type "inMemory" is not supported: want stdio, http or sse`},
			notes: []string{
				`server "search": "registryUrl": packages come from where their launcher looks`,
				`server "search": "disabledAutoApproveTools": ` + noApprovals,
				`server "search": "longRunning": only its client knows what it is for`,
			},
		},
		{
			path: "cursor/.cursor/mcp.json", dialect: "cursor",
			env: map[string]string{"API_KEY": "from the environment", "TOKEN": "t", "CLIENT_ID": "id", "CLIENT_SECRET": "hunter2"},
			servers: []Server{
				{
					Name: "local", Command: filepath.Join(in("cursor"), "bin", "server"), Args: []string{"--name", "cursor", "--home", home}, Dir: in("cursor"),
					Env: map[string]string{"API_KEY": "from the environment", "REGION": "eu-1", "PASSWORD": "pa$$word#1"},
				},
				{Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}},
				{Name: "login", URL: "https://login.example.com/mcp", OAuth: &OAuth{ClientID: "id", ClientSecret: "hunter2", Scopes: []string{"read"}}},
			},
		},
		{
			path: "vscode/.vscode/mcp.json", dialect: "vscode", options: Options{Input: ask},
			servers: []Server{
				{
					Name: "weather", Command: "node", Args: []string{in("vscode") + "/weather.js", "--region=<region>"}, Dir: in("vscode"),
					Env:     map[string]string{"WEATHER_KEY": "<weather-key>", "PORT": "8080", "UNITS": "metric"},
					Secrets: []string{"<weather-key>"},
				},
				{Name: "docs", URL: "https://docs.example.com/mcp", Headers: map[string]string{"X-Key": "<weather-key>", "X-Region": "<region>"}, Secrets: []string{"<weather-key>"}},
			},
			off: []string{"off"},
			refused: map[string]string{
				"boxed":  `"sandboxEnabled": servers do not run in a sandbox here: remove it to run the server without one`,
				"picker": `"${input:picked}": an input of type "command" is not supported: want promptString or pickString`,
				"asks":   `"${input:unknown}": "inputs" does not have it`,
			},
			notes: []string{`server "weather": "dev": only its client knows what it is for, so it has no effect`},
		},
		{
			path: "windsurf/mcp_config.json", dialect: "windsurf", env: map[string]string{"AUTH_TOKEN": "t"},
			servers: []Server{
				{
					Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"API_KEY": "Bearer t", "X-File": "t0ken-of-a-file"},
					Secrets: []string{"t0ken-of-a-file"},
					Tools:   Access{Deny: []string{"delete_all"}},
				},
				{Name: "local", Command: "local-server", Args: []string{"-v"}, Env: map[string]string{"A": "b"}},
			},
			off:   []string{"off"},
			notes: []string{`server "local": "alwaysAllow": ` + noApprovals},
		},
		{
			path: "cline/cline_mcp_settings.json", dialect: "cline",
			servers: []Server{
				{Name: "local", Command: "node", Args: []string{"/srv/server.js"}, Env: map[string]string{"API_KEY": "k"}, CallTimeout: 2 * time.Minute},
				{
					Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"},
					Tools: Access{Deny: []string{"drop"}}, CallTimeout: 30 * time.Second,
				},
				{Name: "older", URL: "https://older.example.com/sse"},
			},
			off:   []string{"off"},
			notes: []string{`server "local": "autoApprove": ` + noApprovals, `server "local": "alwaysAllow": ` + noApprovals},
		},
		{
			path: "gemini/.gemini/settings.json", dialect: "gemini", env: map[string]string{"ARGS_DIR": "/args", "DB_URL": "db://x", "API_KEY": "k"},
			servers: []Server{
				{
					Name: "python", Command: "python", Args: []string{"-m", "server", "/args/x"}, Dir: "./servers/python",
					Env:          map[string]string{"DATABASE_URL": "db://x", "API_KEY": "k", "PRICE": "5$"},
					StartTimeout: 15 * time.Second, CallTimeout: 15 * time.Second, Tools: Access{Deny: []string{"format?disk"}},
				},
				{
					Name: "http", URL: "https://http.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer k"},
					StartTimeout: 5 * time.Second, CallTimeout: 5 * time.Second, Tools: Access{Deny: []string{"format?disk"}},
				},
				{Name: "plain", URL: "https://plain.example.com/mcp", Tools: Access{Deny: []string{"format?disk"}}},
				{Name: "filtered", Command: "filtered", Tools: Access{Allow: []string{"safe", "read(path)", "read"}, Deny: []string{"read", "format?disk"}}},
			},
			off:     []string{"excluded", "unlisted"},
			refused: map[string]string{"google": `"authProviderType": signing in with credentials of Google is not supported`},
			notes:   []string{`server "python": "trust": ` + noApprovals},
		},
		{
			path: "zed/settings.json", dialect: "zed",
			servers: []Server{
				{Name: "local", Command: "some-command", Args: []string{"arg-1", "arg-2"}, Env: map[string]string{}, CallTimeout: 90 * time.Second},
				{Name: "custom", Command: "other"},
				{Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}},
				{Name: "login", URL: "https://login.example.com/mcp", OAuth: &OAuth{ClientID: "zed"}},
			},
			off: []string{"off"},
			refused: map[string]string{
				"extension": `"source": an extension of Zed starts the server: write its "command"`,
			},
		},
		{
			path: "opencode/opencode.jsonc", dialect: "opencode", env: map[string]string{"KEY": "k"},
			servers: []Server{
				{
					Name: "local", Command: "npx", Args: []string{"-y", "my-server"}, Env: map[string]string{"KEY": "k", "SECRET": "s3cret"},
					Secrets:      []string{"s3cret"},
					StartTimeout: 8 * time.Second, CallTimeout: 8 * time.Second, Tools: Access{Deny: []string{"delete*"}},
				},
				{
					Name: "remote", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer k"},
					Tools: Access{Deny: []string{"*?drop", "drop"}},
				},
				{Name: "login", URL: "https://login.example.com/mcp", OAuth: &OAuth{ClientID: "k", Scopes: []string{"tools:read", "tools:execute"}}},
				{Name: "quiet.one", Command: "quiet", Tools: Access{Deny: []string{"*"}}},
			},
			off:   []string{"off", "jira"},
			notes: []string{`this client also has "permission", which is not read`},
		},
		{
			path: "opencode-v2/opencode.json", dialect: "opencode",
			servers: []Server{{Name: "local", Command: "npx", Args: []string{"-y", "my-server"}, Dir: in("opencode-v2/sub")}},
			off:     []string{"off"},
		},
		{
			path: "crush/crush.json", dialect: "crush", env: map[string]string{"TOOLS": "/opt/tools", "GH_PAT": "t"},
			servers: []Server{
				{
					Name: "files", Command: "node", Args: []string{"/opt/tools/files.js"}, Env: map[string]string{"NODE_ENV": "production"},
					StartTimeout: 2 * time.Minute, Tools: Access{Deny: []string{"some-tool", "remove"}},
				},
				{Name: "github", URL: "https://github.example.com/mcp/", Headers: map[string]string{"Authorization": "Bearer t"}},
				{Name: "events", URL: "https://events.example.com/sse", SSE: true},
			},
			off:     []string{"off"},
			refused: map[string]string{"echo": `"$(…)" runs a command, which is not done here`},
		},
		{
			path: "amp/settings.json", dialect: "amp", env: map[string]string{"ISSUES_TOKEN": "t"},
			servers: []Server{
				{Name: "browser", Command: "npx", Args: []string{"-y", "@example/browser-server"}, Tools: Access{Allow: []string{"navigate_*", "click"}, Deny: []string{"builtin:edit?file", "mcp??issues??delete?issue"}}},
				{
					Name: "issues", URL: "https://issues.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"},
					Tools: Access{Deny: []string{"builtin:edit?file", "delete?issue", "mcp??issues??delete?issue"}},
				},
			},
			notes: []string{`this client also has "amp.permissions", which is not read`},
		},
		{
			path: "jetbrains/mcp.json", dialect: "mcphybrid",
			servers: []Server{{Name: "build", Command: "java", Args: []string{"-jar", "server.jar"}, Env: map[string]string{"MODE": "build"}, Dir: "/home/ann/project"}},
		},
		{
			path: "list/mcp.json", dialect: "mcphybrid",
			servers: []Server{{Name: "notes", Command: "notes-server", Args: []string{"--read"}}, {Name: "web", URL: "https://web.example.com/mcp"}},
			off:     []string{"off"},
		},
		{
			path: "plugin/.mcp.json", dialect: "claude-code", env: map[string]string{"CLAUDE_PLUGIN_ROOT": "/elsewhere"},
			servers: []Server{{
				Name: "database", Command: in("plugin") + "/servers/db-server", Args: []string{"--config", in("plugin") + "/config.json"}, Env: map[string]string{"DB_PATH": in("plugin") + "/data"},
			}},
		},
		{
			path: "plugin/.claude-plugin/plugin.json", dialect: "claude-code",
			servers: []Server{{Name: "database", Command: in("plugin") + "/servers/db-server", Dir: in("plugin")}},
		},
		{
			path: "gemini-copy/gemini.json", dialect: "gemini", env: map[string]string{"SEARCH_TOKEN": "t"},
			servers: []Server{
				{Name: "search", URL: "https://search.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}, StartTimeout: 5 * time.Second, CallTimeout: 5 * time.Second},
				{Name: "files", Command: "files-server", Tools: Access{Allow: []string{"read"}}},
			},
			off:     []string{"other"},
			refused: map[string]string{"secret": "environment variables not set: UNSET_TOKEN"},
			notes:   []string{`server "files": "trust": ` + noApprovals},
		},
		{
			path: "mcpb/manifest.json", dialect: "mcpb", options: Options{Input: ask},
			servers: []Server{{
				Name: "file-search", Command: "node", Args: []string{in("mcpb") + "/server/index.js", "--max=10", home + "/Desktop", home + "/Documents"},
				Env: map[string]string{"API_KEY": "<user_config.api_key>", "VERBOSE": "false"}, Secrets: []string{"<user_config.api_key>"},
			}},
		},
		{
			path: "mcpb/manifest.json", dialect: "mcpb",
			refused: map[string]string{"file-search": `"${input:user_config.api_key}": the user must be asked for "Your key"`},
		},
		{
			path: "registry/server.json", dialect: "registry", options: Options{Input: ask},
			servers: []Server{{
				Name: "weather", Command: "npx", Args: []string{"-y", "--", "@example/weather-server@1.4.0", "serve", "--units", "metric", "--area", "de/<city>"},
				Env: map[string]string{"WEATHER_KEY": "<WEATHER_KEY>", "LOG_LEVEL": "info"}, Secrets: []string{"<WEATHER_KEY>"},
			}},
			notes: []string{`the argument "--cache" has no value, so it is left out`},
		},
		{
			path: "registry/server.json", dialect: "registry",
			refused: map[string]string{"weather": `"${input:WEATHER_KEY}": the user must be asked for "Key of the weather service"`},
			notes:   []string{`the argument "--cache" has no value, so it is left out`},
		},
		{
			path: "registry-remote/server.json", dialect: "registry", options: Options{Input: ask},
			servers: []Server{{
				Name: "analytics", URL: "https://eu.analytics.example.com/mcp", Headers: map[string]string{"X-Client": "registry", "Authorization": "Bearer <token>"}, Secrets: []string{"<token>"},
			}},
		},
		{
			path: "codex/config.toml", dialect: "codex",
			env: map[string]string{"HOME_TOKEN": "${NOT}", "OTHER": "o", "FIGMA_TOKEN": "$t", "FIGMA_ORG": "org"},
			servers: []Server{
				{
					Name: "docs", Command: "npx", Args: []string{"-y", "docs-server"}, Dir: "/srv/docs",
					Env:   map[string]string{"LOG": "info", "HOME_TOKEN": "${NOT}", "OTHER": "o"},
					Tools: Access{Allow: []string{"search", "read", "delete"}, Deny: []string{"delete"}}, StartTimeout: 20 * time.Second, CallTimeout: 90*time.Second + 500*time.Millisecond,
				},
				{
					Name: "figma", URL: "https://figma.example.com/mcp",
					Headers: map[string]string{"X-Region": "eu", "X-Org": "org", "Authorization": "Bearer $t"},
				},
				{Name: "hidden", URL: "https://hidden.example.com/mcp", HeadersHelper: "python3 /opt/headers.py", Tools: Access{Deny: []string{"*"}}},
				{Name: "login", URL: "https://login.example.com/mcp", OAuth: &OAuth{ClientID: "codex", Scopes: []string{"read"}}},
				{Name: "none", Command: "none", Tools: Access{Deny: []string{"*"}}},
				{Name: "upfront", Command: "upfront"},
			},
			off: []string{"off"},
			refused: map[string]string{
				"newer":  `"omit_tools_from" has "elsewhere": want direct, deferred and code_mode`,
				"inline": `"bearer_token": Codex does not read it: write "bearer_token_env_var"`,
			},
			notes: []string{
				`server "docs": "tools.read.approval_mode": ` + noApprovals,
				`server "docs": "default_tools_approval_mode": ` + noApprovals,
				`server "figma": "required": a server that fails stops nothing`,
				`server "figma": "env_http_headers": UNSET_ORG is not set, so the header "X-None" is not sent`,
				`server "upfront": "omit_tools_from": there is no code mode here`,
			},
		},
	}
}

// Each client's file becomes the servers that the client would start, or an error
// says what to change.
func TestClientFiles(t *testing.T) {
	for i, file := range clientFiles(t) {
		t.Run(fmt.Sprint(i, " ", file.path), func(t *testing.T) {
			for name, value := range file.env {
				t.Setenv(name, value)
			}
			path := filepath.Join("testdata", "clients", filepath.FromSlash(file.path))
			cfg, err := Load(path, &file.options)
			assert.Equal(t, file.dialect, cfg.Dialect)
			var servers []Server
			var off []string
			unset := 0
			for _, sc := range cfg.Servers {
				if sc.Disabled {
					off = append(off, sc.Name)
				} else if sc.Unset != nil {
					assert.ErrorContains(t, sc.Validate(), file.refused[sc.Name])
					unset++
				} else {
					servers = append(servers, sc)
				}
			}
			if assert.Len(t, servers, len(file.servers)) {
				for i := range servers {
					assert.Equal(t, file.servers[i], servers[i])
				}
			}
			assert.Equal(t, file.off, off)
			var problems []error
			if err != nil {
				problems = errors.Unwrap(err).(interface{ Unwrap() []error }).Unwrap()
				assert.True(t, strings.HasPrefix(err.Error(), "mcphybrid: "+path+": server "), err)
				assert.NotContains(t, err.Error(), "hunter2")
			}
			assert.Len(t, problems, len(file.refused)-unset)
			for _, name := range slices.Sorted(maps.Keys(file.refused)) {
				if strings.HasPrefix(file.refused[name], "environment variables not set: ") {
					continue
				}
				assert.ErrorContains(t, err, fmt.Sprintf("server %q: ", name))
				assert.ErrorContains(t, err, file.refused[name])
			}
			if assert.Len(t, cfg.Notes, len(file.notes), cfg.Notes) {
				for i, note := range file.notes {
					assert.Contains(t, cfg.Notes[i], path+": "+note)
				}
			}

			// Named, a client's file reads the same.
			file.options.Dialect = file.dialect
			named, namedErr := Load(path, &file.options)
			assert.Equal(t, cfg, named)
			assert.Equal(t, fmt.Sprint(err), fmt.Sprint(namedErr))
		})
	}
}

// loadText loads a file of that name with that content.
func loadText(t *testing.T, name, text string, o *Options) (*File, error) {
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Load(path, o)
}

// Claude Code writes the real path of a workspace, or the one by which it was opened. What
// stands under either counts.
func TestWorkspaceBehindALink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	real, link := filepath.Join(folder, "real"), filepath.Join(folder, "link")
	require.NoError(t, os.Mkdir(real, 0o700))
	if err := os.Symlink(real, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	real, err := filepath.EvalSymlinks(real) // the temporary folder may be behind one too
	require.NoError(t, err)
	load := func(workspace string, projects map[string]string) *File {
		members := []string{}
		for _, path := range slices.Sorted(maps.Keys(projects)) {
			members = append(members, fmt.Sprintf("%q: %s", path, projects[path]))
		}
		cfg, err := loadText(t, ".claude.json", `{"mcpServers": {"jira": {"command": "x"}}, "projects": {`+strings.Join(members, ", ")+`}}`, &Options{Workspace: workspace})
		require.NoError(t, err)
		return cfg
	}
	const off, more = `{"disabledMcpServers": ["jira"]}`, `{"mcpServers": {"git": {"command": "y"}}}`
	assert.True(t, load(link, map[string]string{real: off}).Servers[0].Disabled)
	assert.True(t, load(link, map[string]string{link: off}).Servers[0].Disabled)
	both := load(link, map[string]string{link: more, real: off})
	assert.Equal(t, []Server{{Name: "jira", Disabled: true}, {Name: "git", Command: "y"}}, both.Servers)
	assert.Empty(t, both.Notes)
	assert.Equal(t, []Server{{Name: "jira", Command: "x"}}, load(folder, map[string]string{folder: "{}"}).Servers)

	_, err = loadText(t, ".claude.json", fmt.Sprintf(`{"projects": {%q: {"mcpServers": {"git": {"command": "y", "disabled": true}}}, %q: %s}}`, real, link, more), &Options{Workspace: link})
	assert.ErrorContains(t, err, `server "git": it is defined 2 times`)

	none := load(folder, map[string]string{real: off})
	assert.Equal(t, []Server{{Name: "jira", Command: "x"}}, none.Servers)
	require.Len(t, none.Notes, 1)
	assert.Contains(t, none.Notes[0], `"projects" does not have the workspace, so it has no effect: set config.Options.Workspace`)
}

// The user is asked only for what is of use.
func TestInputIsNotAskedInVain(t *testing.T) {
	t.Parallel()
	asked := 0
	o := &Options{Input: func(Input) (string, error) { asked++; return "http://host/x.env", nil }}
	load := func(server string) (*File, error) {
		return loadText(t, ".vscode/mcp.json", `{"inputs": [{"id": "a", "type": "promptString"}], "servers": {"jira": {`+server+`}}}`, o)
	}
	for server, want := range map[string]string{
		`"command": "x", "url": "http://x/", "env": {"T": "${input:a}"}`:        "want exactly one of command and url",
		`"headers": {"x": "${input:a}"}`:                                        "want exactly one of command and url",
		`"url": "ftp://x", "headers": {"x": "${input:a}"}`:                      "the url is not an http or https URL",
		`"url": "http://x", "headers": {"x y": "${input:a}"}`:                   "is malformed",
		`"command": "x", "envFile": "none.env", "env": {"T": "${input:a}"}`:     `"envFile" "none.env": no such file`,
		`"command": "x", "env": {"T=1": "${input:a}"}`:                          "can't be set",
		`"command": "x", "args": ["${input:a}", "${NOT_SET_ANYWHERE}"]`:         "not set: NOT_SET_ANYWHERE",
		`"command": "x", "args": ["${input:a}", "${file:/none}"]`:               "no such file",
		`"url": "${input:a}", "headers": {"x": "${file:none}", "y": "a\nb"}`:    "no such file",
		`"url": "http://h:${input:a}/", "headers": {"y": "a\nb${input:a}"}`:     "is malformed",
		`"command": "x", "args": ["${input:a}"], "timeout": "soon"`:             "want a positive duration",
		`"command": "x", "args": ["${input:a}"], "envFile": "${input:unknown}"`: "does not have it",
	} {
		cfg, err := load(server)
		if err == nil && len(cfg.Servers) == 1 {
			err = cfg.Servers[0].Validate()
		}
		assert.ErrorContains(t, err, want, server)
		assert.Zero(t, asked, server)
	}
	for _, server := range []string{`"url": "${input:a}"`, `"command": "${input:a}"`, `"url": "http://x/${input:a}"`, `"command": "x", "env": {"T": "${input:a}"}`} {
		before := asked
		cfg, err := load(server)
		require.NoError(t, err, server)
		assert.Len(t, cfg.Servers, 1)
		assert.Equal(t, before+1, asked, server)
		assert.Contains(t, fmt.Sprint(cfg.Servers[0].URL, cfg.Servers[0].Command, cfg.Servers[0].Env), "http://host/x.env", server)
	}
	asked = 0
	_, err := load(`"command": "x", "envFile": "${input:a}"`)
	assert.ErrorContains(t, err, `"envFile" "${input:a}": no such file`)
	assert.Equal(t, 1, asked, "its name was missing")
}
