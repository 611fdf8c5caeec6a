package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/nearest"
)

// A dialect is how one client writes its file. The keys of a server mean the same in
// all dialects, apart from what is said here.
type dialect struct {
	name   string
	at     []string // where the servers are: keys, joined by dots; the first that is there counts
	files  []string // patterns of the ends of paths by which the file is recognized
	marks  []string // keys of a server, or key=text, that no other client with this place writes
	beside []string // keys beside the servers that no other client with this place writes

	seconds   bool // a number as "timeout" means seconds, else milliseconds
	start     bool // it bounds starting the server, as ours does
	call      bool // it bounds each call
	dollar    bool // $VAR is a reference
	commands  bool // $(…) runs a command
	braces    bool // {env:VAR} and {file:path} are references
	inFolder  bool // servers run in the workspace
	envNumber bool // a number may be the value of an environment variable
	ownTools  bool // a false in "tools" is about the client's own tools

	// Objects with settings that count in one release or on one platform. Nobody knows
	// which one it is, so what any of them switches off is off.
	within []string

	// What stands before a tool's own name in the list that has the client's own tools too.
	// * stands for the server's name. nil stands for anyPrefixes.
	toolPrefixes []string

	// Types of servers that the client itself has.
	inside []string

	// rewrite, if not nil, makes a file with "mcpServers" and "inputs" of one that
	// describes a server in other words, and notes what it leaves out.
	rewrite func(object, *notes) (object, error)
}

// dialects are in the order in which they are recognized. Of several with one place
// and no mark, the first stands for all.
var dialects = []dialect{
	{name: "mcphybrid", at: []string{"mcpServers"}, start: true},
	{name: "claude-desktop", at: []string{"mcpServers"}, files: []string{"claude_desktop_config.json"}, start: true},
	{name: "claude-code", at: []string{"mcpServers"}, files: []string{".mcp.json", ".claude.json", ".claude-plugin/plugin.json"}, marks: []string{"headersHelper", "alwaysLoad"}, call: true},
	{name: "cursor", at: []string{"mcpServers"}, files: []string{".cursor/mcp.json"}, marks: []string{"auth"}, start: true, inFolder: true},
	{name: "windsurf", at: []string{"mcpServers"}, files: []string{"mcp_config.json"}, marks: []string{"serverUrl"}, start: true},
	{
		name: "cline", at: []string{"mcpServers"}, files: []string{"cline_mcp_settings.json", "mcp_settings.json", ".roo/mcp.json"},
		marks:   []string{"autoApprove", "alwaysAllow", "transportType", "remoteConfigured"},
		seconds: true, call: true,
	},
	{name: "cherry-studio", at: []string{"mcpServers"}, marks: []string{"baseUrl", "registryUrl", "providerUrl", "logoUrl", "longRunning", "type=inMemory"}, seconds: true, call: true},
	{
		name: "gemini", at: []string{"mcpServers"}, files: []string{".gemini/settings.json", "gemini-extension.json"},
		marks: []string{"httpUrl", "trust", "includeTools", "excludeTools", "authProviderType"}, beside: []string{"mcp.allowed", "mcp.excluded"},
		start: true, call: true, dollar: true, ownTools: true,
	},
	{name: "continue", at: []string{"mcpServers"}, files: []string{"*.yaml", "*.yml", ".continue/mcpServers/*.json"}, marks: []string{"requestOptions", "connectionTimeout"}, start: true},
	{
		name: "goose", at: []string{"extensions"}, files: []string{"*.yaml", "*.yml"},
		seconds: true, start: true, call: true, dollar: true,
		inside: []string{"builtin", "platform", "frontend", "inline_python"},
	},
	{name: "amp", at: []string{"amp.mcpServers"}, files: []string{"amp/settings.json", ".amp/settings.json"}, start: true},
	{name: "vscode", at: []string{"servers", "mcp.servers"}, files: []string{".vscode/mcp.json", ".vscode/settings.json"}, start: true, inFolder: true, envNumber: true},
	{
		name: "zed", at: []string{"context_servers"}, files: []string{"zed/settings.json", ".zed/settings.json"},
		seconds: true, call: true,
		within: []string{"dev", "nightly", "preview", "stable", "linux", "macos", "windows"},
	},
	{
		name: "opencode", at: []string{"mcp.servers", "mcp"}, files: []string{"opencode.json", "opencode.jsonc"},
		marks: []string{"type=local", "type=remote", "environment"},
		start: true, call: true, braces: true, inFolder: true, toolPrefixes: []string{"*_"},
	},
	{
		name: "crush", at: []string{"mcp"}, files: []string{"crush.json", ".crush.json"},
		marks:   []string{"type=stdio", "type=http", "type=sse", "disabled_tools"},
		seconds: true, start: true, dollar: true, commands: true, ownTools: true, toolPrefixes: []string{"mcp_*_"},
	},
	{name: "codex", at: []string{"mcp_servers"}, files: []string{"*.toml"}, start: true, ownTools: true},
	{name: "mcpb", at: []string{"server.mcp_config"}, files: []string{"manifest.json"}, start: true, rewrite: readBundle},
	{name: "registry", at: []string{"packages", "remotes"}, files: []string{"server.json"}, start: true, rewrite: readPublished},
}

// sharedKeys have servers in files of one client, and other settings in those of others.
var sharedKeys = []string{"server", "remotes", "packages", "extensions", "mcp"}

// dialectNames returns the names of the clients.
func dialectNames() (names []string) {
	for _, d := range dialects {
		names = append(names, d.name)
	}
	return names
}

// recognize returns the dialect of a file with the members of top, and its servers.
func recognize(top object, o *source) (*dialect, json.RawMessage, error) {
	if o.Dialect != "" {
		i := slices.IndexFunc(dialects, func(d dialect) bool { return d.name == o.Dialect })
		if i < 0 {
			return nil, nil, fmt.Errorf("there is no dialect %q: want one of %s", o.Dialect, strings.Join(dialectNames(), ", "))
		}
		d := &dialects[i]
		servers, _, err := d.find(top)
		if err == nil && servers == nil {
			err = fmt.Errorf("no %q object, where %s has its servers", d.at[0], d.name)
		}
		return d, servers, err
	}
	type candidate struct {
		*dialect
		key     string // of top
		servers json.RawMessage
	}
	var found []candidate
	keys := make(map[string]bool)
	for i := range dialects {
		d := &dialects[i]
		servers, key, err := d.find(top)
		if err != nil {
			return nil, nil, err
		}
		if servers == nil {
			continue
		}
		if d.owns(o.path) {
			return d, servers, nil
		}
		found = append(found, candidate{d, key, servers})
		keys[key] = true
	}
	for _, key := range sharedKeys {
		if len(keys) > 1 {
			delete(keys, key)
		}
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return !keys[c.key] })
	switch {
	case len(found) == 0 && o.isTOML():
		return nil, nil, errors.New(`no "mcp_servers" table`)
	case len(found) == 0:
		return nil, nil, fmt.Errorf(`no "mcpServers" object%s`, misplaced(top))
	case len(keys) > 1:
		return nil, nil, fmt.Errorf("different clients' servers are in it: name one of the dialects %s", strings.Join(dialectNames(), ", "))
	}
	if i := slices.IndexFunc(found, func(c candidate) bool { return c.markedBeside(top) }); i >= 0 {
		return found[i].dialect, found[i].servers, nil
	}
	best := found[0]
	if marked := slices.DeleteFunc(found, func(c candidate) bool { return !c.marked(c.servers) }); len(marked) == 1 {
		best = marked[0]
	}
	return best.dialect, best.servers, nil
}

// misplaced says what stands in a file where "mcpServers" should, or "".
func misplaced(top object) string {
	for _, key := range top.names {
		if isServer(top.values[key]) {
			return fmt.Sprintf(`: %q looks like a server, one level too high: write {"mcpServers": {…}} around the servers`, plainWord(key))
		}
	}
	if kind(top.values["command"]) == "string" || kind(top.values["url"]) == "string" {
		return `: the file is one server: write {"mcpServers": {"a-name": …}} around it`
	}
	if near := nearest.Names("mcpServers", slices.Values(top.names), 1); len(near) > 0 && near[0] != "mcpServers" && kind(top.values[near[0]]) == "object" {
		return fmt.Sprintf(`: %q is not known: did you mean "mcpServers"?`, plainWord(near[0]))
	}
	return ""
}

// isServer reports whether something says how to reach a server.
func isServer(raw json.RawMessage) bool {
	var s struct{ Command, URL any }
	if kind(raw) != "object" || json.Unmarshal(raw, &s) != nil {
		return false
	}
	_, command := s.Command.(string)
	_, url := s.URL.(string)
	return command || url
}

// find returns the servers and the key of top that they are in, or nil.
func (d *dialect) find(top object) (servers json.RawMessage, key string, err error) {
	for _, place := range d.at {
		key, _, _ := strings.Cut(place, ".")
		if servers, err := top.at(place); servers != nil || err != nil {
			return servers, key, err
		}
	}
	return nil, "", nil
}

// owns reports whether the client keeps its servers in a file with that path.
func (d *dialect) owns(file string) bool {
	parts := strings.Split(filepath.ToSlash(file), "/")
	return slices.ContainsFunc(d.files, func(pattern string) bool {
		n := strings.Count(pattern, "/") + 1
		ok, _ := path.Match(pattern, strings.Join(parts[max(0, len(parts)-n):], "/"))
		return ok
	})
}

// markedBeside reports whether the file has one of the keys of beside.
func (d *dialect) markedBeside(top object) bool {
	return slices.ContainsFunc(d.beside, func(key string) bool { raw, _ := top.at(key); return raw != nil })
}

// marked reports whether a server has one of the marks.
func (d *dialect) marked(servers json.RawMessage) bool {
	all, _ := membersOf(servers)
	for _, m := range all {
		one, _ := parseObject(m.Value)
		if slices.ContainsFunc(d.marks, func(mark string) bool {
			key, want, exact := strings.Cut(mark, "=")
			value, ok := one.values[key]
			return ok && (!exact || string(value) == `"`+want+`"`)
		}) {
			return true
		}
	}
	return false
}
