package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A dialect is how one client writes its file. The keys of a server mean the same in
// all dialects, apart from what is said here.
type dialect struct {
	name  string
	at    []string // where the servers are: keys, joined by dots; the first that is there counts
	files []string // patterns of the ends of paths by which the file is recognized
	marks []string // keys of a server, or key=text, that no other client with this place writes

	seconds   bool // a number as "timeout" means seconds, else milliseconds
	start     bool // it bounds starting the server, as ours does
	call      bool // it bounds each call
	dollar    bool // $VAR is a reference
	commands  bool // $(…) runs a command
	braces    bool // {env:VAR} and {file:path} are references
	inFolder  bool // servers run in the workspace
	envNumber bool // a number may be the value of an environment variable
	ownTools  bool // a false in "tools" is about the client's own tools

	// Keys beside the servers that are about other things: agents, extensions,
	// languages. Their switches are not ours, whatever they name.
	others []string

	// Objects with settings that count in one release or on one platform. Nobody knows
	// which one it is, so what any of them switches off is off.
	within []string

	// Lists of tools for all servers name a tool by one of these before its own
	// name. * stands for the server's name.
	toolPrefixes []string
}

// dialects are in the order in which they are recognized. Of several with one place
// and no mark, the first stands for all.
var dialects = []dialect{
	{name: "mcphybrid", at: []string{"mcpServers"}, start: true},
	{
		name: "claude-desktop", at: []string{"mcpServers"}, files: []string{"claude_desktop_config.json"},
		start: true,
	},
	{
		name: "claude-code", at: []string{"mcpServers"}, files: []string{".mcp.json", ".claude.json"},
		marks: []string{"headersHelper", "alwaysLoad"},
		call:  true, toolPrefixes: []string{"mcp__*__"},
		others: []string{"cachedDynamicConfigs", "cachedGrowthBookFeatures", "cachedStatsigGates", "hooks", "history", "pluginUsage", "skillUsage", "tipsHistory", "toolUsage"},
	},
	{
		name: "cursor", at: []string{"mcpServers"}, files: []string{".cursor/mcp.json"},
		marks: []string{"auth"},
		start: true, inFolder: true,
	},
	{
		name: "windsurf", at: []string{"mcpServers"}, files: []string{"mcp_config.json"},
		marks: []string{"serverUrl"},
		start: true,
	},
	{
		name: "cline", at: []string{"mcpServers"}, files: []string{"cline_mcp_settings.json", "mcp_settings.json", ".roo/mcp.json"},
		marks:   []string{"autoApprove", "alwaysAllow", "transportType", "remoteConfigured"},
		seconds: true, call: true,
	},
	{
		name: "cherry-studio", at: []string{"mcpServers"},
		marks:   []string{"baseUrl", "registryUrl", "providerUrl", "logoUrl", "longRunning", "type=inMemory"},
		seconds: true, call: true,
	},
	{
		name: "gemini", at: []string{"mcpServers"}, files: []string{".gemini/settings.json", "gemini-extension.json"},
		marks: []string{"httpUrl", "trust", "includeTools", "excludeTools", "authProviderType"},
		start: true, call: true, dollar: true, ownTools: true, toolPrefixes: []string{"", "*__", "mcp_*_"},
		others: []string{"agents", "experimental", "extensions", "hooks", "hooksConfig", "skills"},
	},
	{
		name: "vscode", at: []string{"servers", "mcp.servers"}, files: []string{".vscode/mcp.json", ".vscode/settings.json"},
		start: true, inFolder: true, envNumber: true,
		others: []string{"chat"}, // whose members are looked at
	},
	{
		name: "zed", at: []string{"context_servers"}, files: []string{"zed/settings.json", ".zed/settings.json"},
		seconds: true, call: true,
		others: []string{"agent", "agent_servers", "assistant", "auto_install_extensions", "debugger", "git", "languages", "language_models", "lsp", "ssh_connections", "terminal"},
		within: []string{"dev", "nightly", "preview", "stable", "linux", "macos", "windows"},
	},
	{
		name: "opencode", at: []string{"mcp.servers", "mcp"}, files: []string{"opencode.json", "opencode.jsonc"},
		marks: []string{"type=local", "type=remote", "environment"},
		start: true, call: true, braces: true, inFolder: true, toolPrefixes: []string{"*_"},
		others: []string{"agent", "command", "experimental", "formatter", "keybinds", "lsp", "mode", "plugin", "provider", "server"},
	},
	{
		name: "crush", at: []string{"mcp"}, files: []string{"crush.json", ".crush.json"},
		marks:   []string{"type=stdio", "type=http", "type=sse", "disabled_tools"},
		seconds: true, start: true, dollar: true, commands: true, ownTools: true, toolPrefixes: []string{"mcp_*_"},
		others: []string{"hooks", "lsp", "models", "providers"},
	},
	{
		name: "codex", at: []string{"mcp_servers"}, files: []string{"*.toml"},
		start: true, ownTools: true,
		others: []string{"agents", "apps", "features", "hooks", "model_providers", "plugins", "profiles", "skills", "tool_suggest"},
	},
}

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
	var found []*dialect
	places := make(map[string]bool) // the keys of top with servers
	for i := range dialects {
		d := &dialects[i]
		servers, place, err := d.find(top)
		if err != nil {
			return nil, nil, err
		}
		if servers == nil {
			continue
		}
		if d.owns(o.path) {
			return d, servers, nil
		}
		found = append(found, d)
		places[place] = true
	}
	if places["mcpServers"] {
		delete(places, "mcp") // has other settings of Gemini CLI
	}
	switch {
	case len(found) == 0 && o.isTOML():
		return nil, nil, errors.New(`no "mcp_servers" table`)
	case len(found) == 0:
		return nil, nil, errors.New(`no "mcpServers" object`)
	case len(places) > 1:
		return nil, nil, fmt.Errorf("different clients' servers are in it: name one of the dialects %s", strings.Join(dialectNames(), ", "))
	}
	d := found[0]
	servers, _, err := d.find(top)
	marked := slices.DeleteFunc(found, func(d *dialect) bool { return !d.marked(servers) })
	if len(marked) == 1 {
		d = marked[0]
		servers, _, err = d.find(top)
	}
	return d, servers, err
}

// find returns the object with the servers and the key of top that it is in, or nil.
func (d *dialect) find(top object) (servers json.RawMessage, key string, err error) {
	for _, place := range d.at {
		key, inner, nested := strings.Cut(place, ".")
		value := top.values[key]
		if nested && kind(value) == "object" {
			parent, err := parseObject(value)
			if err != nil {
				return nil, "", fmt.Errorf("%q: %w", key, err)
			}
			value = parent.values[inner]
		} else if nested {
			continue
		}
		if value != nil {
			return value, key, nil
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

// marked reports whether a server has one of the marks.
func (d *dialect) marked(servers json.RawMessage) bool {
	all, _ := parseObject(servers)
	for _, value := range all.values {
		one, _ := parseObject(value)
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
