package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A document is a file whose servers are found but not yet read.
type document struct {
	dialect *dialect
	servers []member
	off     switches
	folder  string // the workspace, absolute
	project bool   // folder is surely the workspace, not just where the file is
	inputs  json.RawMessage
	notes   notes
}

// A member is the object of one server.
type member struct {
	name  string
	value json.RawMessage
	times int      // how often the name is there
	lines []string // where, if it is there more than once and that can be told
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

// keysOnce fails if an object in data, which is valid JSON, has a key twice, also in
// another letter case, since these are one key to encoding/json. Variables of the
// environment are others then.
func keysOnce(data []byte) error {
	type frame struct {
		keys  map[string]bool // nil for a list
		exact bool            // letter case counts
		key   string          // that was read before its value; "" for none
		open  bool            // a value comes next
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var within []frame
	for {
		token, err := dec.Token()
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		var in *frame
		if len(within) > 0 {
			in = &within[len(within)-1]
		}
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			within = within[:len(within)-1]
			continue
		}
		if in != nil && in.keys != nil {
			if in.open = !in.open; in.open {
				in.key = token.(string)
				key := in.key
				if !in.exact {
					key = foldCase(key)
				}
				if in.keys[key] {
					return fmt.Errorf("%q is there twice", text.Line(in.key, 200))
				}
				in.keys[key] = true
				continue
			}
		}
		switch delim {
		case '{':
			within = append(within, frame{keys: make(map[string]bool), exact: in != nil && in.key == "env"})
		case '[':
			within = append(within, frame{})
		}
	}
}

// foldCase returns what all texts have in common that [strings.EqualFold] calls equal.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, s)
}

// fileWith returns a file with one server and the inputs that it needs.
func fileWith(name string, server any, inputs []prompt) (object, error) {
	file, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{name: server}, "inputs": inputs}) // all of it came from JSON
	return parseObject(file)
}

// at returns the value at a place, keys that are joined by dots, or nil. null is as good as
// none. A dot may separate objects, or be in a key.
func (o object) at(place string) (json.RawMessage, error) { return o.find("", place) }

// find is at for an object that is at within.
func (o object) find(within, place string) (raw json.RawMessage, err error) {
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
		value, err := inner.find(within+place[:i+1], place[i+1:])
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

// parseDocument finds the servers in data.
func parseDocument(data []byte, o *source) (*document, error) {
	if err := json.Unmarshal(data, new(map[string]json.RawMessage)); err != nil {
		return nil, text.JSONError(data, err)
	}
	top, err := parseObject(data)
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
	doc := &document{dialect: d}
	doc.folder, doc.project = workspace(o)
	if d.rewrite != nil {
		if err := keysOnce(data); err != nil {
			return nil, err
		}
		doc.off.all = string(top.values["disabled"]) == "true"
		if top, err = d.rewrite(top, &doc.notes); err != nil {
			return nil, err
		}
		servers = top.values["mcpServers"]
	}
	if doc.inputs = top.values["inputs"]; doc.inputs == nil {
		doc.inputs, _ = top.at("mcp.inputs") // in settings.json of VS Code
	}
	named, err := membersOf(servers)
	if err == nil {
		err = doc.add(named)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", d.at[0], err)
	}
	scopes := []object{top}
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
	doc.noteUnread(scopes)
	if !o.isTOML() && d.rewrite == nil { // else data is not what the file has
		doc.findRepeated(data, d.at)
	}
	return doc, doc.takeSwitches(scopes)
}

// membersOf returns the servers in an object, by their names, or in a list, each with its
// "name".
func membersOf(servers json.RawMessage) ([]text.Member, error) {
	var list []json.RawMessage
	if kind(servers) != "array" || json.Unmarshal(servers, &list) != nil {
		return text.Members(servers)
	}
	var members []text.Member
	for i, value := range list {
		one, _ := parseObject(value)
		if names := slices.DeleteFunc(one.names, func(key string) bool { return !strings.EqualFold(key, "name") }); len(names) > 1 {
			return nil, fmt.Errorf("number %d of the list: %q is there twice", i+1, names[1])
		}
		var server struct{ Name, Uses string } // a block of Continue's hub may have no name
		if json.Unmarshal(value, &server) != nil || server.Name+server.Uses == "" {
			return nil, fmt.Errorf(`number %d of the list is no object with a "name"`, i+1)
		}
		members = append(members, text.Member{Name: cmp.Or(server.Name, server.Uses), Value: value})
	}
	return members, nil
}

// add adds servers. They replace those that were added before and have the same name.
func (doc *document) add(members []text.Member) error {
	times := make(map[string]int)
	for _, m := range members {
		times[m.Name]++
		s := member{name: m.Name, value: m.Value, times: times[m.Name]}
		if i := doc.index(m.Name); i >= 0 {
			doc.servers[i] = s
		} else {
			doc.servers = append(doc.servers, s)
		}
		if len(doc.servers) > maxServers {
			return fmt.Errorf("more than %d servers", maxServers)
		}
	}
	return nil
}

// index returns where the server is, or -1.
func (doc *document) index(name string) int {
	return slices.IndexFunc(doc.servers, func(s member) bool { return s.name == name })
}

// addProjects adds the servers that .claude.json has for the workspace, or for the
// working directory of this process, and returns what else it has for it. Claude Code
// may know the folder by its path or by the one behind its symbolic links. A server that
// is under both is there twice.
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
	var servers []text.Member
	for _, path := range all.names {
		if !slices.Contains(paths, filepath.ToSlash(path)) {
			continue
		}
		project, err := parseObject(all.values[path])
		if own := project.values["mcpServers"]; err == nil && own != nil {
			var members []text.Member
			members, err = membersOf(own)
			servers = append(servers, members...)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, project)
	}
	if err := doc.add(servers); err != nil {
		return nil, err
	}
	for _, project := range found {
		// Claude Code itself writes this list to switch on servers that it brings along, and
		// then it leaves the others as they are.
		enabled, err := project.list("enabledMcpServers")
		if err == nil && !slices.ContainsFunc(enabled, func(name string) bool { return doc.index(name) >= 0 }) {
			delete(project.values, "enabledMcpServers")
		}
	}
	if len(found) == 0 && len(all.names) > 0 {
		doc.notes.add(`"projects" does not have the workspace, so it has no effect: set config.Options.Workspace`)
	}
	return found, nil
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
