package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// fold returns key as all spellings of it: disabledTools, disabled_tools.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(key))
}

// disabled takes the switches of the server and reports whether one switches it off.
// All clients' switches hold, in any spelling.
func (e *entry) disabled(names []string) (off bool) {
	for _, name := range names {
		var value bool
		switch fold(name) {
		case "disabled":
			off = e.take(name, &value, "true or false") && value || off
		case "enabled", "isactive":
			off = e.take(name, &value, "true or false") && !value || off
		}
	}
	return off
}

// toolLists takes the lists that switch tools on and off.
func (e *entry) toolLists(names []string) {
	for _, name := range names {
		switch fold(name) {
		case "disabledtools", "excludetools", "disallowedtools":
			list, _ := e.list(name)
			e.Tools.Deny = append(e.Tools.Deny, toolNames(list)...)
		case "enabledtools", "includetools":
			if list, ok := e.list(name); ok {
				e.onlyTools(name, list)
			}
		case "availabletools": // Goose, where an empty list is all
			if list, _ := e.list(name); len(list) > 0 {
				e.onlyTools(name, list)
			}
		case "tools":
			e.tools(name)
		case "omittoolsfrom":
			e.omitted(name)
		}
	}
	e.Tools.Deny = append(e.Tools.Deny, e.offTools()...)
}

// offTools returns patterns of the tools that the file switches off for all servers.
func (e *entry) offTools() []string {
	deny := append(toolsOf(e.Name, e.off.tools, nil), toolsOf(e.Name, e.off.called, e.dialect.toolPrefixes)...)
	slices.Sort(deny)
	return slices.Compact(deny)
}

// tools takes "tools", which is a list of names to GitHub Copilot, an object by name
// to Codex, and {"allow": […], "deny": […]} to us.
func (e *entry) tools(key string) {
	if raw := e.values[key]; kind(raw) == "array" {
		list, ok := e.list(key)
		if ok {
			e.onlyTools(key, list)
		}
		return
	}
	var given map[string]json.RawMessage
	e.take(key, &given, "an object")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		raw := given[name]
		ours := e.dialect.name != "codex" && (name == "allow" || name == "deny")
		switch {
		case kind(raw) == "object" && !ours:
			e.tool(key+"."+name, name, raw)
		case !ours:
			e.problem(`%q has %q: want "allow" or "deny"`, key, name)
		default:
			e.values[key+"."+name] = raw
			list, _ := e.list(key + "." + name)
			if name == "deny" {
				e.Tools.Deny = append(e.Tools.Deny, list...)
			} else if len(list) > 0 {
				e.onlyTools(key+"."+name, list)
			}
		}
	}
}

// tool takes the settings that Codex has for one tool.
func (e *entry) tool(key, name string, raw json.RawMessage) {
	settings, err := parseObject(raw)
	if err != nil {
		e.problem("%q: %w", key, err)
	}
	for _, setting := range settings.names {
		value := string(settings.values[setting])
		switch fold(setting) {
		case "approvalmode":
			e.notes.add("server %q: %q: %s", e.Name, key+"."+setting, noApprovals)
		case "outputtokenlimit":
			e.notes.add("server %q: %q: Options.MaxResult bounds all results", e.Name, key+"."+setting)
		case "enabled", "disabled":
			if value != "true" && value != "false" {
				e.problem("%q is a JSON %s, want true or false", key+"."+setting, kind(settings.values[setting]))
			} else if (fold(setting) == "enabled") != (value == "true") {
				e.Tools.Deny = append(e.Tools.Deny, name)
			}
		default:
			e.problem("%q is not known here: remove it", key+"."+setting)
		}
	}
}

// omitted takes the list from which ways to the model Codex leaves the tools of the
// server out. Two of the three are here too; if both are closed, no tool is offered.
func (e *entry) omitted(key string) {
	list, _ := e.list(key)
	closed := make(map[string]bool)
	for _, way := range list {
		if !slices.Contains([]string{"direct", "deferred", "code_mode"}, way) {
			e.problem("%q has %q: want direct, deferred and code_mode", key, plainWord(way))
		}
		closed[way] = true
	}
	if closed["direct"] && closed["deferred"] {
		e.Tools.Deny = append(e.Tools.Deny, "*")
	}
	if closed["direct"] != closed["deferred"] || closed["direct"] && !closed["code_mode"] {
		e.notes.add("server %q: %q: there is no code mode here, and Options.Inline and Options.Pins say which tools are deferred", e.Name, key)
	}
}

// onlyTools sets which tools to use. An empty list is none.
func (e *entry) onlyTools(key string, list []string) {
	if e.onList != "" {
		e.problem("%q and %q both say which tools to use: keep one", e.onList, key)
	}
	e.onList = key
	e.Tools.Allow = toolNames(list)
	if len(list) == 0 {
		e.Tools.Deny = append(e.Tools.Deny, "*")
	}
}

// toolNames returns list with "tool(arguments)" of Gemini CLI as "tool" too.
func toolNames(list []string) (names []string) {
	for _, name := range list {
		names = append(names, name)
		if tool, _, ok := strings.Cut(name, "("); ok {
			names = append(names, tool)
		}
	}
	return names
}
