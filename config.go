package mcphybrid

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/clients"
)

// A ServerConfig describes one MCP server. Set exactly one of Command, URL and
// InProcess: it says how to reach the server.
//
// Errors and logs never show the secrets in Args, Env, URL and Headers. Printing
// or logging a ServerConfig shows none of their values either. Its JSON does.
type ServerConfig struct {
	// Name identifies the server. It must not be empty and must be unique among
	// the Manager's servers. A tool is registered as mcp_<name>__<tool>.
	Name string

	// Command is a program to run as a child process, with Args, in the
	// directory Dir (if empty, that of this process). The Manager talks to it
	// over its standard input and output. The child's environment is Env, plus
	// the few variables of this process without which programs do not run, such
	// as PATH, HOME and LANG.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string

	// URL is the address of a server that speaks streamable HTTP or, if it
	// refuses that or SSE is true, the older HTTP with SSE. Headers are sent with
	// each request. HeadersHelper is a command for the shell that prints
	// more of them, as a JSON object of strings, within 10 seconds. It runs for
	// each connection, and again when the server refuses the headers with status
	// 401: then the request is sent once more.
	//
	// HeaderFunc, if not nil, returns more headers for each request, and is asked
	// once more after status 401. It may be called concurrently. Of headers with
	// one name, the one of HeaderFunc is sent, else the one of HeadersHelper. All
	// that they return counts as secret.
	URL           string
	SSE           bool
	Headers       map[string]string
	HeadersHelper string
	HeaderFunc    func(context.Context) (http.Header, error) `json:"-"`

	// HTTPClient, if not nil, makes the requests, for example with a proxy or a
	// certificate. Its Timeout is not used: see StartTimeout. Redirects to other
	// hosts are refused whatever its CheckRedirect says.
	HTTPClient *http.Client `json:"-"`

	// OAuth has what [Manager.Login] can't find out by itself. The token of a
	// login is sent in requests without another Authorization header.
	OAuth *OAuthConfig

	// InProcess is a server in this process: an MCPServer of mcp-go.
	// [Manager.Close] does not shut it down. Its tool handlers run on the
	// goroutine of the call. They must heed their context, which ends when the
	// call times out.
	InProcess InProcessServer `json:"-"`

	// Disabled keeps the server out of the Manager.
	Disabled bool

	// Eager makes [Manager.Start] start the server even if its tools are known
	// from [Options.Cache].
	Eager bool

	// Tools says which of the server's tools to use. The Manager ignores the
	// others. Each entry is also about the tool's own name, whatever its form.
	Tools Access

	// Needs says which other tools of this server a tool needs, by their own
	// names; a key may be a pattern: see [Options.Needs].
	Needs map[string][]string

	// Prefix replaces the server's name in the registered names of its tools.
	// If two servers share a prefix, the first keeps it for the lifetime of the
	// Manager, and the other gets one with a hash: see [CollisionError].
	Prefix string

	// StartTimeout bounds starting the server and listing its tools,
	// CallTimeout each call. If zero, those of the [Options] apply. They must
	// not be negative.
	StartTimeout time.Duration
	CallTimeout  time.Duration

	// LogLevel, if not empty, asks the server for log messages of at least that
	// level. OnNotification receives them.
	LogLevel mcp.LoggingLevel

	// OnNotification, if not nil, is called with each notification of the
	// server except the progress of calls, for which there is [WithProgress].
	// It runs on the goroutine that reads the server's messages: it must return
	// soon and must not call the server. Don't trust the content of a
	// notification.
	OnNotification func(mcp.JSONRPCNotification) `json:"-"`

	secrets []string // from inputs and files; never changed
}

// ServerLimits bound what a server may take and send.
type ServerLimits struct {
	// StartTimeout and CallTimeout hold for servers that have none of their
	// own. They default to 20 seconds ([DefaultStartTimeout]) and 60 seconds, and
	// must not be negative.
	StartTimeout time.Duration
	CallTimeout  time.Duration

	// IdleTimeout is how long a server runs without a call before it is
	// stopped; the next call starts it again. Servers in this process are not
	// stopped. If zero or negative, none is.
	IdleTimeout time.Duration

	// Reconnect is how long after a server was lost, or could not be started,
	// it is started again; after each further failure twice as long, up to a
	// minute. A connection that lasted less than a minute counts as a failure, too.
	// If a server was lost, a call of one of its tools starts it at once and waits
	// for it. If the last start failed, the call fails at once; it starts the server
	// in the background if Reconnect has passed.
	//
	// It defaults to 500 ms. If negative, a server that is down stays
	// down, and calls of its tools fail at once, until [Manager.Restart] or
	// [Manager.Login]. A call still starts one that rests after IdleTimeout, or that
	// is known from [Options.Cache] and was not tried yet.
	Reconnect time.Duration

	// Refresh is how often the tools of a server are listed, besides whenever
	// it says that they have changed. It defaults to 5 minutes. If
	// negative, they are listed only then.
	Refresh time.Duration

	// MaxMessage is how many bytes a message of a server may have, such as a
	// result. MaxDefinition is how many the definition of one tool, resource or
	// prompt may have. MaxTools is how many of these together a server may list,
	// on at most MaxPages pages. They default to 16 MiB,
	// 256 KiB, 10,000 and 1,000, and must not be negative.
	MaxMessage    int
	MaxDefinition int
	MaxTools      int
	MaxPages      int

	// MaxListing is how many bytes all that one server lists may have together, and
	// MaxCatalog how many all that all servers list; each user's servers are
	// counted apart. A list that exceeds one of them is refused: the server keeps
	// its earlier list, or can't be started. They default to
	// 16 MiB and 64 MiB, and must not be negative.
	MaxListing int
	MaxCatalog int

	// MaxTimeouts is how many calls in a row a server may leave without an answer
	// within their timeout. Then its calls fail at once with [ErrServerDown], for
	// as long as the call timeout but at most a minute. After this pause one call
	// is sent. If it has no answer either, the next pause is twice as long, up to 8
	// times the first. An answer to any call ends this.
	//
	// It defaults to 3. If negative, calls are always sent.
	MaxTimeouts int

	// MaxUnasked is how many messages a server may send within a second beside
	// its answers: notifications, requests, and what is neither. The
	// connection to one that sends more is given up, as if it was lost.
	// Servers in this process are not counted. It defaults to
	// 1,000 and must not be negative. The bytes of these messages
	// are bounded, too: by MaxMessage at once, and a sixteenth of it per second.
	MaxUnasked int
}

// OAuthConfig has the settings with which a client signs in to a server. Each may
// be empty: then the server and its authorization server tell it.
type OAuthConfig struct {
	// ClientID and ClientSecret are of a client that is registered there. Without
	// ClientID, [Manager.Login] registers one. The secret goes to TokenURL, or where
	// MetadataURL says; without both, to where it was first used, and nowhere else.
	ClientID     string
	ClientSecret string

	// RedirectURI is where the browser comes back to. By default, that is a free
	// port of 127.0.0.1. A port of this machine is listened to during a login;
	// for any other address, [Options.OpenURL] returns what came back.
	RedirectURI string

	Scopes   []string
	Resource string // of RFC 8707; the server's address if neither this nor the server names one

	// The addresses of the authorization server: of its metadata, of the page for
	// the user, and of its tokens. The metadata at MetadataURL may name any issuer;
	// others count only where that issuer publishes them.
	MetadataURL, AuthorizationURL, TokenURL string
}

// An InProcessServer is a server in this process, as mcp-go's MCPServer is one. A
// program that has none does not contain the code of mcp-go's.
type InProcessServer interface {
	HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage
	RegisterSession(ctx context.Context, session mcpserver.ClientSession) error
	UnregisterSession(ctx context.Context, sessionID string)
	WithContext(ctx context.Context, session mcpserver.ClientSession) context.Context
}

// A Config is the result of [LoadConfig].
type Config struct {
	// Servers are in the order of the file. Those of TOML are in the order of
	// their names.
	Servers []ServerConfig

	// Dialect is the client for which the file is written. See
	// [ConfigOptions.Dialect].
	Dialect string

	// Notes tell what has no effect here: keys that we don't know, and keys of
	// other clients. Each names file, server and key, and none has a secret.
	// There are at most 101.
	Notes []string
}

// ConfigOptions say how to read a file. The zero value is the default.
type ConfigOptions struct {
	// Dialect names the client for which the file is written: claude-desktop,
	// claude-code, cursor, windsurf, cline, cherry-studio, gemini, vscode, zed,
	// opencode, crush, codex, or mcphybrid for none of them. If empty, it is
	// recognized by the path, by where the servers are, and by keys that only one
	// client has.
	Dialect string

	// Workspace is the folder of the project, for ${workspaceFolder}. If empty,
	// it is the folder of the file, or the one above if that is a dot folder
	// such as .vscode. Of the projects in a .claude.json, the default is that of
	// the working directory.
	Workspace string

	// Input asks the user for a value, for ${input:…}. It is called once for
	// each input of a server that is switched on and has no other problem. If
	// nil, servers with inputs are problems.
	Input func(ConfigInput) (string, error)

	// TOML converts TOML to JSON, for Codex: use ToJSON of the package toml. If
	// nil, TOML is an error.
	TOML func([]byte) ([]byte, error)
}

// A ConfigInput is a value for which a file asks the user.
type ConfigInput struct {
	ID          string
	Description string   // for the user
	Password    bool     // the value is a secret
	Default     string   // what to offer
	Choices     []string // the values to choose from; if none, any value
}

// LoadConfig is [LoadConfigWith] without options.
func LoadConfig(path string) (*Config, error) { return LoadConfigWith(path, nil) }

// LoadConfigWith reads a file of at most 4 MiB in which an MCP client keeps its
// servers. It is JSON with or without comments, and has an object "mcpServers" or
// the one of another client: see [ConfigOptions.Dialect]. A server has either
//
//	"command", "args", "env", "cwd"   for a child process, or
//	"url", "headers"                  for streamable HTTP, and optionally
//
//	"disabled"      true to leave it out
//	"eager"         see [ServerConfig.Eager]
//	"tools"         {"allow": […], "deny": […]}: names or patterns, see [Access]
//	"needs"         {"edit_file": ["read_file"]}: see [ServerConfig.Needs]
//	"prefix"        see [ServerConfig.Prefix]
//	"timeout"       see [ServerConfig.StartTimeout]: "20s" or milliseconds
//	"callTimeout"   see [ServerConfig.CallTimeout]: likewise
//
// docs/clients.md has the keys of all clients and what becomes of them. Whatever
// switches off a server or a tool holds. In strings, ${VAR} stands for an
// environment variable, and ${VAR:-text} for text if the variable is unset. A
// reference without a value is a problem.
//
// The error joins one error for each problem. They name the file and the server.
// The Config is never nil and holds the servers that have no problem.
func LoadConfigWith(path string, opts *ConfigOptions) (*Config, error) {
	o := opts.reader()
	o.Path = path
	file, err := clients.Load(o)
	cfg, problems := newConfig(file)
	for i, note := range cfg.Notes {
		cfg.Notes[i] = path + ": " + note
	}
	if err = cmp.Or(err, problems); err != nil {
		return cfg, fmt.Errorf("mcphybrid: %s: %w", path, err)
	}
	return cfg, nil
}

// reader returns the options of internal/clients.
func (o *ConfigOptions) reader() clients.Options {
	to := clients.Options{Env: os.LookupEnv}
	if o == nil {
		return to
	}
	to.Dialect, to.Workspace, to.TOML = o.Dialect, o.Workspace, o.TOML
	if o.Input != nil {
		to.Input = func(in clients.Input) (string, error) { return o.Input(ConfigInput(in)) }
	}
	return to
}

// newConfig returns the servers of a file that have no problem, and the problems,
// joined.
func newConfig(file clients.File) (*Config, error) {
	cfg := &Config{Dialect: file.Dialect, Notes: file.Notes}
	var problems []error
	for _, s := range file.Servers {
		if s.Err != nil {
			problems = append(problems, fmt.Errorf("server %q: %w", s.Name, s.Err))
			continue
		}
		cfg.Servers = append(cfg.Servers, ServerConfig{
			Name: s.Name, Disabled: s.Disabled, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir,
			URL: s.URL, SSE: s.SSE, Headers: s.Headers, HeadersHelper: s.HeadersHelper, OAuth: (*OAuthConfig)(s.OAuth),
			Tools: Access{Allow: s.Allow, Deny: s.Deny}, Needs: s.Needs, Prefix: s.Prefix, Eager: s.Eager,
			StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout, secrets: s.Secrets,
		})
	}
	return cfg, errors.Join(problems...)
}

// clone returns a copy that shares nothing that can be changed.
func (sc ServerConfig) clone() ServerConfig {
	sc.Args, sc.Env, sc.Headers, sc.Tools = slices.Clone(sc.Args), maps.Clone(sc.Env), maps.Clone(sc.Headers), sc.Tools.clone()
	sc.Needs = cloneNeeds(sc.Needs)
	if sc.OAuth != nil {
		oauth := *sc.OAuth
		oauth.Scopes = slices.Clone(oauth.Scopes)
		sc.OAuth = &oauth
	}
	return sc
}

// String describes the server without its secrets. It shows only the number of
// the Args, the host of the URL, and the names in Env and Headers.
func (sc ServerConfig) String() string {
	if sc.InProcess != nil {
		return fmt.Sprintf("server %q in this process", sc.Name)
	}
	return sc.written().String()
}

// GoString is [ServerConfig.String], for %#v.
func (sc ServerConfig) GoString() string { return sc.String() }

// LogValue is [ServerConfig.String], for any [slog.Handler].
func (sc ServerConfig) LogValue() slog.Value { return slog.StringValue(sc.String()) }

// validate returns every problem of sc, joined, without the server's name.
func (sc *ServerConfig) validate() error {
	return sc.written().Validate(sc.InProcess != nil, sc.HeaderFunc != nil || sc.HTTPClient != nil)
}

// written returns what a file would have to say for sc to be reached so.
func (sc *ServerConfig) written() *clients.Server {
	return &clients.Server{
		Name: sc.Name, Command: sc.Command, Args: sc.Args, Env: sc.Env, Dir: sc.Dir, URL: sc.URL, Headers: sc.Headers, HeadersHelper: sc.HeadersHelper,
		OAuth: (*clients.OAuth)(sc.OAuth), StartTimeout: sc.StartTimeout, CallTimeout: sc.CallTimeout,
	}
}
