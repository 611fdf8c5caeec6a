package config

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A Server describes one MCP server. Set exactly one of Command, URL and
// InProcess: it says how to reach the server.
//
// Errors and logs never show the secrets in Args, Env, URL and Headers. Printing
// or logging a Server shows none of their values either. Its JSON does, also
// where a [slog.JSONHandler] writes a list of Servers or a struct with one.
type Server struct {
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

	// OAuth has what Manager.Login can't find out by itself. The token of a
	// login is sent in requests without another Authorization header.
	OAuth *OAuth

	// Protocol, if not empty, is the version of MCP to speak with the server, such as
	// "2025-11-25". A server that does not have it can't be connected. Otherwise it is
	// the newest that the server has. But over HTTP and in process, if the Manager's
	// Options.Ask can answer questions, and the server has a version before 2026-07-28 too,
	// it is the newest of these: in the later ones a tool can't ask in the middle of its
	// work, as most that ask do. Over standard input and output, earlier versions don't
	// say whose call a question is of. The older HTTP with SSE has only earlier ones.
	Protocol string

	// InProcess is a server in this process: an MCPServer of mcp-go.
	// Manager.Close does not shut it down. Its tool handlers run on the
	// goroutine of the call. They must heed their context, which ends when the
	// call times out.
	InProcess InProcessServer `json:"-"`

	// Disabled keeps the server out of the Manager.
	Disabled bool

	// Eager makes Manager.Start start the server even if its tools are known
	// from the Manager's Options.Cache.
	Eager bool

	// KeepFailed makes Manager.AddServer keep the server if its first start fails: it is
	// listed with the reason and tried again, as Manager.Start does with servers.
	KeepFailed bool `json:"-"`

	// NoInstructions leaves out the server's instructions: what it says of itself and how
	// to use it. Otherwise models read the first sentence, and the whole on demand.
	NoInstructions bool

	// NoSkills leaves out the server's skills: nobody sees or loads them, or reads their
	// files.
	NoSkills bool

	// UnlistedResources lets sessions ask the server for resources that it lists nowhere, if
	// the access lists permit their URIs, as MCP permits a server to have them. Otherwise
	// sessions read only what Session.ReadResource of the Manager's package says.
	UnlistedResources bool

	// Tools says which of the server's tools to use. The Manager ignores the
	// others. Each entry is also about the tool's own name, whatever its form.
	Tools Access

	// Needs says which other tools of this server a tool needs, by their own
	// names; a key may be a pattern: see the Manager's Options.Needs.
	Needs map[string][]string

	// ResultSelect has expressions by the tools' own names. Of a tool's results models get
	// what its expression selects in the structured content or, if there is none or it only
	// wraps the text, in the text. The whole is kept, and models read it as they read on in
	// a long result. A result in which nothing is selected, or the expression fails, stays
	// as it is, with a note. Results for apps, and those that are errors, are not selected
	// from. The Manager's Options.Select evaluates the expressions; a server with one that
	// it does not take is not started.
	ResultSelect map[string]string

	// Prefix replaces the server's name in the registered names of its tools.
	// If two servers share a prefix, the first keeps it for the lifetime of the
	// Manager, and the other gets one with a hash: see CollisionError.
	Prefix string

	// StartTimeout bounds starting the server and listing its tools,
	// CallTimeout each call. If zero, those of the Manager's [Limits] apply. They must
	// not be negative.
	StartTimeout time.Duration
	CallTimeout  time.Duration

	// LogLevel, if not empty, asks the server for log messages of at least that
	// level. OnNotification receives them.
	LogLevel mcp.LoggingLevel

	// OnNotification, if not nil, is called with each notification of the
	// server except the progress of calls, for which there is WithProgress.
	// It runs on the goroutine that reads the server's messages: it must return
	// soon and must not call the server. Don't trust the content of a
	// notification.
	OnNotification func(mcp.JSONRPCNotification) `json:"-"`

	// Unset names the environment variables that references in its file need and that are not
	// set. [Load] sets it. Such a server has nothing else but its name, and is not started:
	// Manager.Start fails for it, and says which variables.
	Unset []string

	// Secrets are further texts that errors and logs must not show. [Load] adds the
	// answers to inputs for passwords and the content of files.
	Secrets []string `json:"-"`
}

// ClientCredentials is the [OAuth.GrantType] of a client that signs in as itself.
const ClientCredentials = "client_credentials"

// OAuth has the settings with which a client signs in to a server. Each may
// be empty: then the server and its authorization server tell it. Printing or
// logging an OAuth does not show the secret or the private key. Its JSON does.
type OAuth struct {
	// GrantType is [ClientCredentials] for a client that signs in as itself. Then nobody
	// logs in: a token is asked for when the server wants one, and again when it has expired
	// or is refused. The client needs a ClientID, and a ClientSecret or a PrivateKey. If
	// GrantType is empty or "authorization_code", a user logs in by Manager.Login.
	GrantType string

	// ClientID and ClientSecret are of a client that is registered there. Without
	// ClientID, Manager.Login registers one. The secret goes to TokenURL, or where
	// MetadataURL says; without both, to where it was first used, and nowhere else.
	ClientID     string
	ClientSecret string

	// PrivateKey, in PEM, is what a client that signs in as itself can have instead of a
	// secret: RSA, ECDSA with P-256, P-384 or P-521, or Ed25519. It signs an assertion for
	// each token (RFC 7523), which goes where a secret would, and goes nowhere itself. KeyID, if
	// not empty, names it to the authorization server.
	PrivateKey string
	KeyID      string

	// ClientMetadataURL is the https address at which the host publishes what it is as a
	// client: a client ID metadata document, which has this address as client_id. It is the
	// ClientID at authorization servers that read such documents. At others, one
	// is registered.
	ClientMetadataURL string

	// RedirectURI is where the browser comes back to. By default, that is a free
	// port of 127.0.0.1. A port of this machine is listened to during a login;
	// for any other address, the Manager's OpenURL returns what came back.
	RedirectURI string

	Scopes   []string
	Resource string // of RFC 8707; the server's address if neither this nor the server names one

	// The addresses of the authorization server: of its metadata, of the page for
	// the user, and of its tokens. The metadata at MetadataURL may name any issuer and
	// any address; others count only where that issuer publishes them, and can't lead
	// from a server on the public internet to an address that is not. Without TokenURL and
	// MetadataURL, a code whose answer does not say whose it is goes only to the host of
	// the page, or to one below or above it.
	MetadataURL, AuthorizationURL, TokenURL string
}

// Access says by name which tools may be used. Each entry is a name or a pattern:
// * stands for any number of characters, ? for exactly one. What a pattern matches
// depends on its form:
//
//	github/create_*        a server's name and the tool's own name
//	mcp_github__create_*   the registered name: the pattern begins with mcp_
//	create_*, *_delete_*   the own name or the registered name
//
// No other character is a wildcard. Manager.Problems and Session.Problems report
// entries that match no tool, and those with [, ] or a backslash at once.
//
// The zero value permits every tool.
type Access struct {
	// Allow, if not empty, permits only the tools that it matches.
	Allow []string

	// Deny forbids the tools that it matches, even if Allow matches them too.
	// It also forbids a tool whose registered name it would match without
	// other servers: see CollisionError.
	Deny []string
}

// An InProcessServer is a server in this process, as mcp-go's MCPServer is one. A
// program that has none does not contain the code of mcp-go's.
type InProcessServer interface {
	HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage
	RegisterSession(ctx context.Context, session mcpserver.ClientSession) error
	UnregisterSession(ctx context.Context, sessionID string)
	WithContext(ctx context.Context, session mcpserver.ClientSession) context.Context
}

// Clone returns a copy. A change of its lists, maps and OAuth does not change s.
func (s Server) Clone() Server {
	s.Args, s.Env, s.Headers, s.Tools, s.Unset, s.Secrets = slices.Clone(s.Args), maps.Clone(s.Env), maps.Clone(s.Headers), s.Tools.Clone(), slices.Clone(s.Unset), slices.Clone(s.Secrets)
	s.Needs, s.ResultSelect = maps.Clone(s.Needs), maps.Clone(s.ResultSelect)
	for name, needs := range s.Needs {
		s.Needs[name] = slices.Clone(needs)
	}
	if s.OAuth != nil {
		oauth := *s.OAuth
		oauth.Scopes = slices.Clone(oauth.Scopes)
		s.OAuth = &oauth
	}
	return s
}

// Clone returns a copy that shares no list with a.
func (a Access) Clone() Access {
	return Access{Allow: slices.Clone(a.Allow), Deny: slices.Clone(a.Deny)}
}

// String describes the server without its secrets. It shows only the number of
// the Args, the host of the URL, and the names in Env and Headers.
func (s Server) String() string {
	if s.InProcess != nil {
		return fmt.Sprintf("server %q in this process", s.Name)
	}
	if s.URL == "" {
		program, _, _ := strings.Cut(s.Command, " ")
		return fmt.Sprintf("server %q by %q with %d arguments, environment %q", s.Name, program, len(s.Args), keysOnly(s.Env))
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		u = new(url.URL)
	}
	return fmt.Sprintf("server %q at %s://%s, headers %q", s.Name, u.Scheme, u.Host, keysOnly(s.Headers))
}

// GoString is [Server.String], for %#v.
func (s Server) GoString() string { return s.String() }

// LogValue is [Server.String], for any [slog.Handler].
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String describes the settings without the secret, the private key and the addresses.
func (o OAuth) String() string {
	secret := "no secret"
	switch {
	case o.ClientSecret != "":
		secret = "a secret"
	case o.PrivateKey != "":
		secret = "a private key"
	}
	return fmt.Sprintf("OAuth client %q with %s, scopes %q", o.ClientID, secret, o.Scopes)
}

// GoString is [OAuth.String], for %#v.
func (o OAuth) GoString() string { return o.String() }

// LogValue is [OAuth.String], for any [slog.Handler].
func (o OAuth) LogValue() slog.Value { return slog.StringValue(o.String()) }
