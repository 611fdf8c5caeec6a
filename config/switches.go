package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// switches are what a file switches off outside of its servers.
type switches struct {
	all      bool     // every server
	servers  []string // these
	only     []string // all but these, if given
	given    bool
	policies policies
	patterns []string // these tools, as the dialect names them; see dialect.toolPrefixes
	prefixes []string
	anyForm  []string // these tools, as any dialect may name them
	notes    notes
}

// takeSwitches collects the lists by which clients switch off servers and tools.
// A list of the wrong kind is an error, since nobody knows what it would switch off.
func (doc *document) takeSwitches(scopes []object) error {
	d, s := doc.dialect, &doc.off
	if s.prefixes = d.toolPrefixes; s.prefixes == nil {
		s.prefixes = anyPrefixes
	}
	for _, o := range scopes {
		for _, err := range []error{
			take(o, "disabledMcpServers", &s.servers), // Claude Code
			take(o, "disabledMcpjsonServers", &s.servers),
			take(o, "mcp.excluded", &s.servers), // Gemini CLI
			take(o, "excludeMCPServers", &s.servers),
			take(o, "excludeTools", &s.anyForm),
			take(o, "disallowedTools", &s.anyForm),
			take(o, "options.disabled_tools", &s.patterns), // crush
			s.takeOnly(o, "mcp.allowed"), s.takeOnly(o, "allowMCPServers"), s.takeOnly(o, "enabledMcpServers"),
			s.takeServerSwitches(o, d), s.takeTools(o, d), s.takePermission(o, doc), s.takePermissions(o, d, doc), s.takeToolPermissions(o, doc), s.noteProfiles(o, doc), s.policies.add(o),
		} {
			if err != nil {
				return err
			}
		}
	}
	patterns := slices.Concat(s.patterns, s.anyForm)
	if len(patterns) > maxSwitches || slices.ContainsFunc(patterns, func(p string) bool { return len(p) > maxSwitches }) {
		return fmt.Errorf("lists of tools have more than %d entries, or an entry of more than %[1]d bytes", maxSwitches)
	}
	for _, name := range slices.Concat(s.servers, s.only, patterns) {
		if name, _, _ = strings.Cut(name, "("); d.refers(name) {
			return errors.New("a list of servers or tools has a reference, which is not replaced there: write it out")
		}
	}
	for _, list := range [][]string{s.patterns, s.anyForm} {
		for i, p := range list { // ** is *, but takes much longer
			list[i] = stars.ReplaceAllString(p, "*")
		}
	}
	return nil
}

var stars = regexp.MustCompile(`\*+`)

// only reports whether raw is there, and none of the values.
func only(raw json.RawMessage, values ...string) bool {
	return kind(raw) != "null" && !slices.Contains(values, string(raw))
}

// take appends the list of strings at a place, keys that are joined by dots. In the
// object of servers itself, there is no such list.
func take(o object, place string, list *[]string) error {
	raw, err := lookup(o, place)
	if raw == nil || err != nil {
		return err
	}
	var more []string
	if err := json.Unmarshal(raw, &more); err != nil {
		return fmt.Errorf("%q is a JSON %s, want a list of strings", place, kind(raw))
	}
	*list = append(*list, more...)
	return nil
}

// lookup returns the value at a place, or nil. A dot may separate objects, or be in a key.
func lookup(o object, place string) (json.RawMessage, error) {
	raw, err := find(o, "", place)
	if strings.HasPrefix(place, "mcp.") && kind(raw) == "object" { // a server may be named so
		return nil, err
	}
	return raw, err
}

// find returns the value at a place in the object that is at within.
func find(o object, within, place string) (raw json.RawMessage, err error) {
	if value := o.values[place]; kind(value) != "null" {
		raw = value
	}
	for i := range len(place) {
		if place[i] != '.' || kind(o.values[place[:i]]) != "object" {
			continue
		}
		inner, err := parseObject(o.values[place[:i]])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", within+place[:i], err)
		}
		value, err := find(inner, within+place[:i+1], place[i+1:])
		switch {
		case err != nil:
			return nil, err
		case value != nil && raw != nil:
			return nil, fmt.Errorf("%q is there twice", within+place)
		case value != nil:
			raw = value
		}
	}
	return raw, nil
}

// takeOnly restricts s to a list of servers.
func (s *switches) takeOnly(o object, place string) error {
	var list []string
	if raw, err := lookup(o, place); raw == nil || err != nil {
		return err
	}
	if err := take(o, place, &list); err != nil {
		return err
	}
	if s.given {
		list = slices.DeleteFunc(list, func(name string) bool { return !slices.Contains(s.only, name) })
	}
	s.only, s.given = list, true
	return nil
}

// takeTools reads "tools": {"exclude": […]} of Gemini CLI and {"pattern": false} of
// opencode. Unless the client has tools of its own there, nothing else may be in it
// that might switch tools off.
func (s *switches) takeTools(o object, d *dialect) error {
	raw := o.values["tools"]
	if kind(raw) == "null" {
		return nil
	}
	tools, err := parseObject(raw)
	switch {
	case err != nil && len(tools.names) == 0:
		return fmt.Errorf(`"tools" is a JSON %s, want an object with true or false for each tool`, kind(raw))
	case err != nil:
		return fmt.Errorf(`"tools": %w`, err)
	case d.ownTools:
		return take(o, "tools.exclude", &s.patterns)
	}
	for _, name := range tools.names {
		raw := tools.values[name]
		var value any
		switch {
		case string(raw) == "false":
			s.patterns = append(s.patterns, name)
		case string(raw) == "true" || string(raw) == "null" || name == "exclude":
		case kind(raw) != "object" || d.name == "opencode" || json.Unmarshal(raw, &value) != nil || maySwitchOff(name, value):
			return fmt.Errorf(`"tools": %q is a JSON %s, want true or false`, name, kind(raw))
		}
	}
	return take(o, "tools.exclude", &s.patterns)
}

// serverSwitches are switches of all servers. Without an agent, no client calls tools.
var serverSwitches = []struct {
	place    string
	on, also string // the values that leave all on
	lists    bool   // so do lists without "mcp"
	some     bool   // other values may leave some on
	client   string // the one that has it; others may have an agent with that name
}{
	{place: "admin.mcp.config", on: "{}", some: true}, // administrators of Gemini CLI
	{place: "admin.mcp.enabled", on: "true"},
	{place: "agent.enabled", on: "true", client: "zed"},
	{place: "agent.tool_permissions.default", on: `"allow"`, also: `"confirm"`, some: true, client: "zed"},
	{place: "chat.agent.enabled", on: "true"}, // VS Code
	{place: "chat.disableAIFeatures", on: "false"},
	{place: "chat.mcp.access", on: `"all"`, also: "true"},
	{place: "chat.mcp.enabled", on: "true"},
	{place: "disable_ai", on: "false"},                                 // Zed
	{place: "strictPluginOnlyCustomization", on: "false", lists: true}, // administrators of Claude Code: what only plugins bring along
}

// takeServerSwitches reads the switches of all servers.
func (s *switches) takeServerSwitches(o object, d *dialect) error {
	for _, is := range serverSwitches {
		raw, err := lookup(o, is.place)
		if err != nil {
			return err
		}
		var list []string
		switch {
		case !only(raw, is.on, is.also) || is.client != "" && is.client != d.name:
		case is.lists && json.Unmarshal(raw, &list) == nil && !slices.Contains(list, "mcp"):
		case is.some:
			return fmt.Errorf(`%q may switch servers off and is not read here: write "disabled" into the servers, or remove it`, is.place)
		default:
			s.all = true
		}
	}
	return nil
}

// leastWork is what it takes to compare anything, in bytes.
const leastWork = 16

// bounded fails if it would take long to look for each pattern among the tools of each
// server.
func (s *switches) bounded(servers []member) error {
	names, patterns := 0, 0
	for _, server := range servers {
		names += len(server.name) + leastWork
	}
	for _, pattern := range slices.Concat(s.patterns, s.anyForm) {
		patterns += len(pattern) + leastWork
	}
	if names*patterns > maxSearch {
		return fmt.Errorf("lists of tools with %d entries are too long for %d servers: write \"disabledTools\" into the servers", len(s.patterns)+len(s.anyForm), len(servers))
	}
	return nil
}

// server reports whether the server is switched off. Letter case counts only where a
// name switches a server on.
func (s *switches) server(name string) bool {
	named := func(off string) bool { return strings.EqualFold(off, name) }
	return s.all || slices.ContainsFunc(s.servers, named) || s.given && !slices.Contains(s.only, name)
}
