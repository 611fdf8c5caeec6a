package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// takePermission reads "permission" of opencode: "deny", or by the names of tools
// {"pattern": "deny"} and, by their arguments, {"pattern": {"*": "deny"}}.
func (s *switches) takePermission(o object, doc *document) error {
	const key, want = "permission", `"permission": want "allow", "ask" or "deny", or an object with these`
	raw := o.values[key]
	if kind(raw) == "null" {
		return nil
	}
	if kind(raw) != "object" {
		return s.effect(key, "*", raw, doc, want)
	}
	permission, err := parseObject(raw)
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	for _, pattern := range permission.names {
		raw := permission.values[pattern]
		if kind(raw) != "object" {
			if err := s.effect(key, pattern, raw, doc, want); err != nil {
				return err
			}
			continue
		}
		byArguments, err := parseObject(raw)
		if err != nil {
			return fmt.Errorf("%q: %q: %w", key, pattern, err)
		}
		for _, arguments := range byArguments.names {
			on := pattern
			if !rules.Match(arguments, "*") { // which is what tools of servers are asked for
				on = ""
			}
			if err := s.effect(key, on, byArguments.values[arguments], doc, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// effect takes what opencode does with the tools of a pattern, "" for no tool of a
// server.
func (s *switches) effect(key, pattern string, raw json.RawMessage, doc *document, want string) error {
	var effect string
	if string(raw) != "null" && json.Unmarshal(raw, &effect) != nil {
		return errors.New(want)
	}
	switch strings.ToLower(effect) {
	case "", "allow":
		if effect == "" && string(raw) != "null" {
			return errors.New(want)
		}
	case "ask":
		if pattern == "*" || doc.begins(strings.ToLower(pattern), behindPrefix) {
			s.notes.add("%q: %q: %s", key, pattern, noApprovals)
		}
	case "deny":
		if pattern != "" {
			s.patterns = append(s.patterns, pattern)
		}
	default:
		return errors.New(want)
	}
	return nil
}

// takePermissions reads "permissions", which is a list of rules to opencode, and an
// object to Claude Code, Cursor and crush.
func (s *switches) takePermissions(o object, d *dialect, doc *document) error {
	raw := o.values["permissions"]
	if kind(raw) == "null" {
		return nil
	}
	switch kind(raw) {
	case "array":
		return s.takeRules(raw, d, doc)
	case "object":
		return s.takeRights(raw, d, doc)
	}
	var value any
	if json.Unmarshal(raw, &value) != nil || saysNo(value) {
		return errors.New(`"permissions" may switch tools off: want an object with "deny", a list of tools`)
	}
	return nil
}

// takeRules reads "permissions": [{"action": "pattern", "effect": "deny"}] of opencode.
// In other files, only what may switch something off must have this form.
func (s *switches) takeRules(raw json.RawMessage, d *dialect, doc *document) error {
	const want = `"permissions": want a list of objects with "action", "resource" and "effect"`
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New(want)
	}
	for _, raw := range list {
		var rule struct {
			Action   string
			Effect   json.RawMessage
			Resource *string // of the arguments; * stands for all
		}
		_, err := parseObject(raw)
		if err == nil {
			err = json.Unmarshal(raw, &rule)
		}
		if err != nil || rule.Action == "" || rule.Effect == nil {
			var value any
			if d.name == "opencode" || json.Unmarshal(raw, &value) != nil || kind(raw) == "object" && maySwitchOff("", value) || hasAny(fold(string(raw)), offWords) {
				return errors.New(want)
			}
			continue
		}
		if rule.Resource != nil && !rules.Match(*rule.Resource, "*") {
			rule.Action = ""
		}
		if err := s.effect("permissions", rule.Action, rule.Effect, doc, want+`, which is "allow", "ask" or "deny"`); err != nil {
			return err
		}
	}
	return nil
}

// takeRights reads the object "permissions". What may keep tools from the model and is
// no list of them is an error.
func (s *switches) takeRights(raw json.RawMessage, d *dialect, doc *document) error {
	rights, err := parseObject(raw)
	if err != nil {
		return fmt.Errorf(`"permissions": %w`, err)
	}
	for _, name := range rights.names {
		key, raw := "permissions."+name, rights.values[name]
		unknown := func() error {
			return fmt.Errorf(`%q may switch tools off and is not read here: write "permissions.deny", or "disabledTools" into the servers, or remove it`, key)
		}
		var value any
		if json.Unmarshal(raw, &value) != nil {
			return unknown()
		}
		switch folded := fold(name); {
		case value == nil || d.name == "codex" && kind(raw) == "object": // what commands may do
		case slices.Contains([]string{"deny", "allow", "ask", "allowedtools"}, folded):
			var list []string
			if err := json.Unmarshal(raw, &list); err != nil {
				return fmt.Errorf("%q is a JSON %s, want a list of strings", key, kind(raw))
			}
			if folded == "deny" {
				s.deny(list, doc)
			} else if slices.ContainsFunc(list, doc.mentions) {
				s.notes.add("%q: %s", key, noApprovals)
			}
		case folded == "defaultmode":
			mode, _ := value.(string)
			if !slices.Contains([]string{"default", "manual", "acceptedits", "plan", "auto", "bypasspermissions"}, fold(mode)) {
				return unknown() // as "dontAsk" does
			}
		case slices.Contains(modes, folded) && kind(raw) != "object":
		case maySwitchOff(name, value) || saysNo(value) || doc.names(value) || doc.mentions(name):
			return unknown()
		default:
			s.notes.add("%q is not known here and has no effect", key)
		}
	}
	return nil
}

// modes are keys of "permissions" that are about folders, or about who may change it.
var modes = []string{
	"additionaldirectories", "disablebypasspermissionsmode", "disableautomode",
	"blockreadsoutsideworkingdirectories", "blockwritesoutsideworkingdirectories",
}

var (
	cursorTool = regexp.MustCompile(`^(?i:mcp)\(\s*([^:,]*?)\s*(?:[:,]\s*(.*?)\s*)?\)$`) // "Mcp(server:tool)"
	clientTool = regexp.MustCompile(`^[A-Z][A-Za-z]*(\(.*\))?$`)                         // "Bash(rm *)"
)

// deny takes the tools that "permissions" denies. It leaves out those that the client
// itself has, but if the servers' tools have no prefix there.
func (s *switches) deny(list []string, doc *document) {
	for _, entry := range list {
		entry = strings.TrimSpace(entry)
		if m := cursorTool.FindStringSubmatch(entry); m != nil {
			entry = "mcp__" + m[1] + "__" + cmp.Or(m[2], "*")
		}
		ours := strings.HasPrefix(strings.ToLower(entry), "mcp__") && slices.Contains(s.prefixes, "mcp__*__")
		if ours || clientTool.MatchString(entry) && !doc.mentions(entry) {
			s.patterns = append(s.patterns, entry)
		} else {
			s.anyForm = append(s.anyForm, entry)
		}
	}
}
