package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A document is a file whose servers are found but not yet read.
type document struct {
	dialect *dialect
	servers []member
	named   map[string]bool // the names of servers
	off     switches
	folder  string // the workspace, absolute
	project bool   // folder is surely the workspace, not just where the file is
	inputs  json.RawMessage

	spellings []string // of named, as clients write them, in lower case; sorted
}

// A member is the object of one server.
type member struct {
	name  string
	value json.RawMessage
	times int // how often the name is there
}

// An object is a JSON object whose members are not read yet.
type object struct {
	names  []string // in their order
	values map[string]json.RawMessage
}

// parseObject fails if raw is not an object or has a key twice. The object has what
// could be read.
func parseObject(raw json.RawMessage) (object, error) {
	o := object{values: make(map[string]json.RawMessage)}
	members, err := text.Members(raw)
	for _, m := range members {
		if _, ok := o.values[m.Name]; ok && err == nil {
			err = fmt.Errorf("%q is there twice", m.Name)
		}
		o.names = append(o.names, m.Name)
		o.values[m.Name] = m.Value
	}
	return o, err
}

// parseDocument finds the servers in data.
func parseDocument(data []byte, o *source) (*document, error) {
	top, err := parseTop(data)
	if err != nil {
		return nil, err
	}
	projects := o.Dialect == "claude-code" || filepath.Base(o.path) == ".claude.json"
	if projects && top.values["mcpServers"] == nil && top.values["projects"] != nil {
		top.values["mcpServers"] = json.RawMessage("{}")
	}
	d, servers, err := recognize(top, o)
	if err != nil {
		return nil, err
	}
	doc := &document{dialect: d, named: make(map[string]bool), inputs: top.values["inputs"]}
	if parent, err := parseObject(top.values["mcp"]); err == nil && doc.inputs == nil {
		doc.inputs = parent.values["inputs"] // in settings.json of VS Code
	}
	doc.folder, doc.project = workspace(o)
	if err := doc.add(servers); err != nil {
		return nil, fmt.Errorf("%q: %w", d.at[0], err)
	}
	scopes := []object{top, d.opened(top)}
	if settings := settingsOfMCP(top); settings.values["mcp.servers"] != nil || !slices.Contains(d.at, "mcp") {
		scopes = append(scopes, settings)
	}
	for _, key := range d.within {
		if inner := top.values[key]; kind(inner) == "object" {
			scope, err := parseObject(inner)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", key, err)
			}
			scopes = append(scopes, scope)
		}
	}
	if projects {
		found, err := doc.addProjects(top, o)
		if err != nil {
			return nil, fmt.Errorf(`"projects": %w`, err)
		}
		scopes = append(scopes, found...)
	}
	if len(doc.servers) > maxServers {
		return nil, fmt.Errorf("more than %d servers", maxServers)
	}
	if err = doc.takeSwitches(scopes); err == nil {
		err = doc.off.bounded(doc.servers)
	}
	if err != nil {
		return nil, err
	}
	return doc, doc.unknownSwitch(scopes)
}

// settingsOfMCP returns the members of "mcp", which has settings where the servers are
// elsewhere, as keys of the file.
func settingsOfMCP(top object) (settings object) {
	members, _ := parseObject(top.values["mcp"])
	settings.values = make(map[string]json.RawMessage)
	for _, name := range members.names {
		settings.names = append(settings.names, "mcp."+name)
		settings.values["mcp."+name] = members.values[name]
	}
	return settings
}

// opened returns the members of "chat" in settings of VS Code as the keys that they stand
// for: "chat.mcp.enabled" for {"mcp": {"enabled": …}} and {"mcp.enabled": …}.
func (d *dialect) opened(top object) object {
	flat := object{values: make(map[string]json.RawMessage)}
	if d.name != "vscode" {
		return flat
	}
	var open func(key string, value json.RawMessage, depth int)
	open = func(key string, value json.RawMessage, depth int) {
		members, err := parseObject(value)
		if err != nil || depth == 0 {
			flat.names = append(flat.names, key)
			flat.values[key] = value
			return
		}
		for _, name := range members.names {
			open(key+"."+name, members.values[name], depth-1)
		}
	}
	if chat := top.values["chat"]; kind(chat) == "object" {
		open("chat", chat, 3)
	}
	return flat
}

// parseTop returns the members of the file.
func parseTop(data []byte) (object, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return object{}, text.JSONError(data, err)
	}
	if members == nil { // null
		return object{}, nil
	}
	return parseObject(data)
}

// add adds the servers of an object. They replace servers of other objects with the
// same name.
func (doc *document) add(servers json.RawMessage) error {
	members, err := text.Members(servers)
	if err != nil {
		return err
	}
	times := make(map[string]int)
	for _, m := range members {
		times[m.Name]++
		s := member{m.Name, m.Value, times[m.Name]}
		if doc.named[m.Name] {
			i := slices.IndexFunc(doc.servers, func(s member) bool { return s.name == m.Name })
			doc.servers[i] = s
		} else {
			doc.servers = append(doc.servers, s)
			doc.named[m.Name] = true
		}
		if len(doc.servers) > maxServers {
			return fmt.Errorf("more than %d servers", maxServers)
		}
	}
	doc.spell()
	return nil
}

// addProjects adds the servers that .claude.json has for the workspace, or for the
// working directory of this process, and returns what else it has for it. Claude Code
// may know the folder by its path or by the one behind its symbolic links.
func (doc *document) addProjects(top object, o *source) (found []object, err error) {
	if kind(top.values["projects"]) == "null" {
		return nil, nil
	}
	all, err := parseObject(top.values["projects"])
	if err != nil {
		return nil, err
	}
	paths := []string{filepath.ToSlash(absolute(o.Workspace))}
	if target, err := filepath.EvalSymlinks(paths[0]); err == nil {
		paths = append(paths, filepath.ToSlash(target))
	}
	for _, path := range all.names {
		if !slices.Contains(paths, filepath.ToSlash(path)) {
			continue
		}
		project, err := parseObject(all.values[path])
		if servers := project.values["mcpServers"]; err == nil && servers != nil {
			if err = addsNone(servers, found); err == nil {
				err = doc.add(servers)
			}
		}
		if err != nil {
			return nil, err
		}
		found = append(found, project)
	}
	for _, project := range found {
		doc.ignoreBuiltIn(project)
	}
	if len(found) == 0 && len(all.names) > 0 {
		doc.off.notes.add(`"projects" does not have the workspace, so it has no effect: set config.Options.Workspace`)
	}
	return found, nil
}

// addsNone fails if one of projects has one of servers too: either may be switched off.
func addsNone(servers json.RawMessage, projects []object) error {
	members, err := text.Members(servers)
	for _, project := range projects {
		had, _ := text.Members(project.values["mcpServers"])
		for _, m := range members {
			if slices.ContainsFunc(had, func(other text.Member) bool { return other.Name == m.Name }) {
				return fmt.Errorf(`"projects" has the server %q under two paths of the workspace: remove one`, text.Line(m.Name, text.MaxName))
			}
		}
	}
	return err
}

// ignoreBuiltIn removes "enabledMcpServers" from a project of Claude Code if it names no
// server of the file. Claude Code itself writes it to switch on servers that it brings
// along, and then it leaves the others as they are.
func (doc *document) ignoreBuiltIn(project object) {
	const key = "enabledMcpServers"
	var enabled any
	if raw := project.values[key]; raw != nil && json.Unmarshal(raw, &enabled) == nil && !doc.names(enabled) {
		project.values[key] = json.RawMessage("null")
	}
}

// workspace returns the folder of the project, and whether it surely is one.
func workspace(o *source) (folder string, project bool) {
	if o.Workspace != "" {
		return absolute(o.Workspace), true
	}
	if o.path == "" {
		return absolute("."), false
	}
	folder = filepath.Dir(absolute(o.path))
	if strings.HasPrefix(filepath.Base(folder), ".") {
		return filepath.Dir(folder), true
	}
	return folder, false
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
