package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// takeToolPermissions reads "agent": {"tool_permissions": {"tools": {"mcp:server:tool":
// {"default": "deny"}}}} of Zed. The client's own tools have no mcp: before their names.
func (s *switches) takeToolPermissions(o object, doc *document) error {
	const place, mcp = "agent.tool_permissions.tools", "mcp:"
	raw, err := lookup(o, place)
	if raw == nil || err != nil {
		return err
	}
	tools, err := parseObject(raw)
	if err != nil {
		return fmt.Errorf("%q: %w", place, err)
	}
	for _, name := range tools.names {
		if len(name) <= len(mcp) || !strings.EqualFold(name[:len(mcp)], mcp) {
			continue
		}
		rule, err := parseObject(tools.values[name])
		if err != nil {
			return fmt.Errorf("%q: %q: %w", place, name, err)
		}
		switch effect := rule.values["default"]; {
		case string(effect) == `"deny"` || only(rule.values["always_deny"], "[]"): // which has no effect on tools of servers there
			s.anyForm = append(s.anyForm, strings.ReplaceAll(name[len(mcp):], "(", "?")) // no arguments follow it there
		case only(effect, `"allow"`, `"confirm"`):
			return fmt.Errorf(`%q: %q: want "allow", "confirm" or "deny" as "default"`, place, name)
		case string(effect) == `"confirm"` && doc.mentions(name):
			s.notes.add("%q: %q: %s", place, name, noApprovals)
		}
	}
	return nil
}

// noteProfiles notes that nobody chooses a profile of Zed here, if one may leave out
// tools of servers.
func (s *switches) noteProfiles(o object, doc *document) error {
	raw, err := lookup(o, "agent.profiles")
	if raw == nil || err != nil {
		return err
	}
	var profiles map[string]any
	if err := json.Unmarshal(raw, &profiles); err != nil {
		return nil // of an agent of another client with that name
	}
	for _, profile := range profiles {
		if profile, _ := profile.(map[string]any); profile["enable_all_context_servers"] == false || doc.names(profile["context_servers"]) {
			s.notes.add(`"agent.profiles": there are no profiles here, so what they leave out is on: write "disabledTools" into the servers`)
			break
		}
	}
	return nil
}
