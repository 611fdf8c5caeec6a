package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// switches are what a file switches off beside its servers.
type switches struct {
	all     bool     // every server
	servers []string // these
	only    []string // all but these, unless nil
	tools   []string // these tools, as any client names them in lists for all servers
	called  []string // these tools, as this client does: see dialect.toolPrefixes
}

// Keys with lists of servers that are off, of all that are on, and of tools that are off
// on all servers.
var (
	offServers = []string{"disabledMcpServers", "disabledMcpjsonServers", "excludeMCPServers", "mcp.excluded"}
	onServers  = []string{"enabledMcpServers", "allowMCPServers", "mcp.allowed"}
	offTools   = []string{"excludeTools", "tools.exclude", "disallowedTools", "amp.tools.disable"}
)

// takeSwitches reads the keys by which clients switch off servers and tools. A list of
// the wrong kind is an error, since nobody knows what it would switch off.
func (doc *document) takeSwitches(scopes []object) error {
	s := &doc.off
	for _, o := range scopes {
		take := func(into *[]string, places ...string) (err error) {
			for _, place := range places {
				list, bad := doc.dialect.list(o, place)
				err = cmp.Or(err, bad)
				*into = append(*into, list...)
			}
			return err
		}
		if err := errors.Join(take(&s.servers, offServers...), take(&s.tools, offTools...), take(&s.called, "options.disabled_tools"),
			s.restrict(o, doc.dialect), s.takeServerSwitches(o), s.takeTools(o, doc.dialect)); err != nil {
			return err
		}
	}
	all := slices.Concat(s.tools, s.called)
	if len(all) > maxSwitches || slices.ContainsFunc(all, func(p string) bool { return len(p) > maxSwitches }) {
		return fmt.Errorf("lists of tools have more than %d entries, or an entry of more than %[1]d bytes", maxSwitches)
	}
	for _, name := range slices.Concat(s.servers, s.only, all) {
		if name, _, _ = strings.Cut(name, "("); doc.dialect.refers(name) {
			return errors.New("a list of servers or tools has a reference, which is not replaced there: write it out")
		}
	}
	return bounded(doc.servers, all)
}

// list is object.list, but where the client has its servers in "mcp", an object there is a
// server.
func (d *dialect) list(o object, place string) ([]string, error) {
	if raw, err := o.at(place); strings.HasPrefix(place, "mcp.") && slices.Contains(d.at, "mcp") && kind(raw) == "object" {
		return nil, err
	}
	return o.list(place)
}

// list returns the list at a place, or nil if there is none.
func (o object) list(place string) ([]string, error) {
	raw, err := o.at(place)
	if raw == nil || err != nil {
		return nil, err
	}
	list := []string{}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%q is a JSON %s, want a list of strings", place, kind(raw))
	}
	return list, nil
}

// restrict leaves only those servers on that each list of such has.
func (s *switches) restrict(o object, d *dialect) error {
	for _, place := range onServers {
		list, err := d.list(o, place)
		if err != nil {
			return err
		}
		if list != nil {
			s.only = slices.DeleteFunc(list, func(name string) bool { return s.only != nil && !slices.Contains(s.only, name) })
		}
	}
	return nil
}

// takeTools reads "tools": {"pattern": false} of opencode. Other clients have tools of
// their own there.
func (s *switches) takeTools(o object, d *dialect) error {
	raw := o.values["tools"]
	if d.ownTools || kind(raw) == "null" || kind(raw) != "object" && d.name != "opencode" {
		return nil
	}
	tools, err := parseObject(raw)
	if err != nil {
		return fmt.Errorf(`"tools": %w`, err)
	}
	for _, name := range tools.names {
		switch raw := tools.values[name]; {
		case string(raw) == "false":
			s.called = append(s.called, name)
		case d.name == "opencode" && kind(raw) != "bool" && kind(raw) != "null":
			return fmt.Errorf(`"tools": %q is a JSON %s, want true or false`, name, kind(raw))
		}
	}
	return nil
}

// serverSwitches switch all servers off, but by the values that leave them on.
var serverSwitches = map[string][]string{
	"admin.mcp.enabled":      {"true"}, // Gemini CLI
	"agent.enabled":          {"true"}, // Zed
	"chat.agent.enabled":     {"true"}, // VS Code
	"chat.disableAIFeatures": {"false"},
	"chat.mcp.access":        {`"all"`, "true"},
	"chat.mcp.enabled":       {"true"},
	"disable_ai":             {"false"}, // Zed
}

// takeServerSwitches reads the switches of all servers. An object is something else of
// that name, such as an agent.
func (s *switches) takeServerSwitches(o object) error {
	for place, on := range serverSwitches {
		raw, err := o.at(place)
		if err != nil {
			return err
		}
		s.all = s.all || raw != nil && kind(raw) != "object" && !slices.Contains(on, string(raw))
	}
	return nil
}

// bounded fails if it would take long to look for each tool among those of each server.
func bounded(servers []member, tools []string) error {
	const least = 16 // bytes that it takes to compare anything
	work := 0
	for _, server := range servers {
		work += (len(server.name) + least) * (len(strings.Join(tools, "")) + least*len(tools))
	}
	if work > maxSearch {
		return fmt.Errorf("lists of tools with %d entries are too long for %d servers: write \"disabledTools\" into the servers", len(tools), len(servers))
	}
	return nil
}

// server reports whether the server is switched off. Letter case counts only where a
// name switches a server on.
func (s *switches) server(name string) bool {
	named := func(off string) bool { return strings.EqualFold(off, name) }
	return s.all || slices.ContainsFunc(s.servers, named) || s.only != nil && !slices.Contains(s.only, name)
}
