package mcphybrid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/text"
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

	// URL is the address of a server that speaks streamable HTTP. Headers are
	// sent with each request.
	URL     string
	Headers map[string]string

	// InProcess is a server in this process. [Manager.Close] does not shut it
	// down. Its tool handlers run on the goroutine of the call. They must heed
	// their context, which ends when the call times out.
	InProcess *mcpserver.MCPServer

	// Disabled keeps the server out of the Manager.
	Disabled bool

	// Eager makes [Manager.Start] start the server even if its tools are known
	// from [Options.Cache].
	Eager bool

	// Tools says which of the server's tools to use, by their own names. The
	// Manager ignores the others.
	Tools Access

	// Needs says which other tools of this server a tool needs, by their own
	// names: see [Options.Needs].
	Needs map[string][]string

	// Prefix replaces the server's name in the registered names of its tools.
	// If two servers share a prefix, the first keeps it for the lifetime of the
	// Manager, and the names of the other's tools end in a hash.
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
}

// A Config is the result of [LoadConfig]: the servers in the order of the file.
type Config struct {
	Servers []ServerConfig
}

// maxConfigBytes bounds a configuration file; a real one has a few kilobytes.
const maxConfigBytes = 4 << 20

// LoadConfig reads the JSON file with an "mcpServers" object that MCP clients
// use, of at most 4 MiB. The servers keep the order of the file. A server has
// either
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
// LoadConfig ignores all other keys, which belong to other clients. In command,
// args, env, cwd, url and headers, ${VAR} stands for an environment variable, and
// ${VAR:-text} for text if the variable is unset.
//
// The error joins one error for each problem. They name the file and the server.
// The Config is never nil and holds the servers that have no problem.
func LoadConfig(path string) (*Config, error) {
	cfg, err := readConfig(path)
	if err != nil {
		return cfg, fmt.Errorf("mcphybrid: %s: %w", path, err)
	}
	return cfg, nil
}

func readConfig(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return &Config{}, errors.Unwrap(err) // the path is already named
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return &Config{}, errors.Unwrap(err)
	}
	return parseConfig(data, os.LookupEnv)
}

// parseConfig is [LoadConfig] for bytes; lookup reads the environment.
func parseConfig(data []byte, lookup func(string) (string, bool)) (*Config, error) {
	cfg := &Config{}
	if len(data) > maxConfigBytes {
		return cfg, fmt.Errorf("larger than %d bytes", maxConfigBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return cfg, text.JSONError(data, err)
	}
	servers, ok := file["mcpServers"]
	if !ok {
		return cfg, errors.New(`no "mcpServers" object`)
	}
	members, err := text.Members(servers)
	if err != nil {
		return cfg, fmt.Errorf(`"mcpServers": %w`, err)
	}
	var problems []error
	seen := make(map[string]bool)
	for _, m := range members {
		sc, err := parseServer(m.Name, m.Value, lookup)
		if err == nil && seen[m.Name] {
			err = errors.New("it is defined twice")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("server %q: %w", m.Name, err))
			continue
		}
		seen[m.Name] = true
		cfg.Servers = append(cfg.Servers, sc)
	}
	return cfg, errors.Join(problems...)
}

func parseServer(name string, data []byte, lookup func(string) (string, bool)) (ServerConfig, error) {
	var in struct {
		Type     string            `json:"type"`
		Command  string            `json:"command"`
		Args     []string          `json:"args"`
		Env      map[string]string `json:"env"`
		Dir      string            `json:"cwd"`
		URL      string            `json:"url"`
		Headers  map[string]string `json:"headers"`
		Disabled bool              `json:"disabled"`
		Eager    bool              `json:"eager"`
		Tools    struct {
			Allow []string `json:"allow"`
			Deny  []string `json:"deny"`
		} `json:"tools"`
		Needs       map[string][]string `json:"needs"`
		Prefix      string              `json:"prefix"`
		Timeout     json.RawMessage     `json:"timeout"`
		CallTimeout json.RawMessage     `json:"callTimeout"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return ServerConfig{}, text.JSONError(data, err)
	}
	var start, call timeout
	if err := start.UnmarshalJSON(in.Timeout); err != nil {
		return ServerConfig{}, fmt.Errorf(`"timeout": %w`, err)
	}
	if err := call.UnmarshalJSON(in.CallTimeout); err != nil {
		return ServerConfig{}, fmt.Errorf(`"callTimeout": %w`, err)
	}
	sc := ServerConfig{
		Name: name, Command: in.Command, Args: in.Args, Env: in.Env, Dir: in.Dir,
		URL: in.URL, Headers: in.Headers, Disabled: in.Disabled, Eager: in.Eager, Tools: Access(in.Tools), Needs: in.Needs, Prefix: in.Prefix,
		StartTimeout: time.Duration(start), CallTimeout: time.Duration(call),
	}
	if sc.Disabled {
		return sc, nil // a disabled server need not be complete
	}
	switch in.Type {
	case "", "stdio", "http", "streamable-http", "streamableHttp", "streamable_http":
	default:
		return sc, fmt.Errorf("type %q is not supported: want stdio or http", in.Type)
	}
	if (in.Type == "stdio" && in.URL != "") || (in.Type != "stdio" && in.Type != "" && in.Command != "") {
		return sc, fmt.Errorf("type %q contradicts the other keys: stdio goes with command, http with url", in.Type)
	}
	if err := sc.expand(lookup); err != nil {
		return sc, err
	}
	return sc, sc.validate()
}

// expand replaces ${VAR} in every string that the server gets.
func (sc *ServerConfig) expand(lookup func(string) (string, bool)) error {
	var missing []string
	expand := func(s *string) {
		*s = variable.ReplaceAllStringFunc(*s, func(ref string) string {
			m := variable.FindStringSubmatch(ref)
			if value, ok := lookup(m[1]); ok {
				return value
			}
			if m[2] == "" && !slices.Contains(missing, m[1]) {
				missing = append(missing, m[1])
			}
			return strings.TrimPrefix(m[2], ":-")
		})
	}
	expandMap := func(values map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			v := values[key]
			expand(&v)
			values[key] = v
		}
	}
	expand(&sc.Command)
	for i := range sc.Args {
		expand(&sc.Args[i])
	}
	expandMap(sc.Env)
	expand(&sc.Dir)
	expand(&sc.URL)
	expandMap(sc.Headers)
	if missing != nil {
		return fmt.Errorf("environment variables not set: %s", strings.Join(missing, ", "))
	}
	return nil
}

// variable matches ${VAR} and ${VAR:-text}; its groups are VAR and ":-text".
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// clone returns a copy that shares nothing that can be changed.
func (sc ServerConfig) clone() ServerConfig {
	sc.Args, sc.Env, sc.Headers, sc.Tools = slices.Clone(sc.Args), maps.Clone(sc.Env), maps.Clone(sc.Headers), sc.Tools.clone()
	sc.Needs = cloneNeeds(sc.Needs)
	return sc
}

// String describes the server without its secrets. It shows only the number of
// the Args, the host of the URL, and the names in Env and Headers.
func (sc ServerConfig) String() string {
	text := fmt.Sprintf("server %q", sc.Name)
	switch {
	case sc.InProcess != nil:
		text += " in this process"
	case sc.URL != "":
		u, err := url.Parse(sc.URL)
		if err != nil {
			u = new(url.URL)
		}
		text += fmt.Sprintf(" at %s://%s, headers %q", u.Scheme, u.Host, keyNames(sc.Headers))
	default:
		program, _, _ := strings.Cut(sc.Command, " ")
		text += fmt.Sprintf(" by %q with %d arguments, environment %q", program, len(sc.Args), keyNames(sc.Env))
	}
	return text
}

func keyNames(values map[string]string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		names = append(names, nameOnly(key))
	}
	return names
}

// GoString is [ServerConfig.String], for %#v.
func (sc ServerConfig) GoString() string { return sc.String() }

// LogValue is [ServerConfig.String], for any [slog.Handler].
func (sc ServerConfig) LogValue() slog.Value { return slog.StringValue(sc.String()) }

// validate returns every problem of sc, joined, without the server's name.
func (sc *ServerConfig) validate() error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format, args...))
	}
	if sc.Name == "" {
		problem("the name is empty")
	}
	ways := 0
	for _, given := range []bool{sc.Command != "", sc.URL != "", sc.InProcess != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		problem("want exactly one of command and url")
	}
	if sc.URL != "" {
		// Parse's error would repeat the URL, which may hold a secret.
		if u, err := url.Parse(sc.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			problem("the url is not an http or https URL")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sc.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(sc.Env[key], 0) {
			problem("the environment variable %q can't be set", nameOnly(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sc.Headers)) {
		if !headerName.MatchString(key) || strings.ContainsAny(sc.Headers[key], "\r\n\x00") {
			problem("the header %q is malformed", nameOnly(key))
		}
	}
	if sc.StartTimeout < 0 || sc.CallTimeout < 0 {
		problem("a timeout is negative")
	}
	return errors.Join(problems...)
}

// nameOnly returns the part of key that is surely a name. By mistake, a secret may
// follow it.
func nameOnly(key string) string {
	if i := strings.IndexAny(key, "=: ") + 1; i > 0 && i < len(key) {
		return key[:i] + "…"
	}
	return key
}

// headerName matches a token of RFC 9110, section 5.6.2.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// A timeout is a duration in a configuration file.
type timeout time.Duration

// minTimeout is the smallest number that we accept as milliseconds. The author of
// a smaller one most likely meant seconds, as some clients read it.
const minTimeout = 100

func (t *timeout) UnmarshalJSON(data []byte) error {
	if text.IsNull(data) {
		return nil // as if it were not there
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf(`timeout %q: want a positive duration such as "20s"`, text)
		}
		*t = timeout(d)
		return nil
	}
	var ms int64
	if err := json.Unmarshal(data, &ms); err != nil {
		return fmt.Errorf(`timeout %s: want a duration such as "20s", or milliseconds`, data)
	}
	if ms < minTimeout || ms > int64(24*time.Hour/time.Millisecond) {
		hint := ""
		if 0 < ms && ms < minTimeout {
			hint = fmt.Sprintf(`; or write "%ds"`, ms)
		}
		return fmt.Errorf(`timeout %d: a number means milliseconds, from %d up to a day%s`, ms, minTimeout, hint)
	}
	*t = timeout(time.Duration(ms) * time.Millisecond)
	return nil
}

// cloneNeeds returns a copy that shares nothing with needs.
func cloneNeeds(needs map[string][]string) map[string][]string {
	needs = maps.Clone(needs)
	for name, list := range needs {
		needs[name] = slices.Clone(list)
	}
	return needs
}
