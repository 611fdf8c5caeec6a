package clients

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/nearest"
)

const (
	noApprovals = "there are no approvals here, so it has no effect"
	noEffect    = "only its client knows what it is for, so it has no effect"
)

// idle are keys of clients that have no effect here, with what to tell of them; ""
// for nothing. A key that is false or null is not told of.
var idle = map[string]string{
	// Words for people.
	"$schema": "", "_comment": "", "comment": "", "description": "", "displayName": "", "icon": "", "name": "", "note": "", "title": "",
	// Where the server comes from.
	"extension": "", "extensionName": "", "gallery": "", "metadata": "", "remoteConfigured": "", "version": "", "supports_parallel_tool_calls": "",

	"autoApprove": noApprovals, "alwaysAllow": noApprovals, "trust": noApprovals, "default_tools_approval_mode": noApprovals,

	"alwaysLoad": "its tools are deferred like all others: pin them by Options.Pins",
	"required":   "a server that fails stops nothing: Start and Servers tell of it",
	"dev":        noEffect, "remote": noEffect, "watchPaths": noEffect, "sessionless": noEffect,
	"targetAudience": noEffect, "targetServiceAccount": noEffect,
}

// refused are keys without which a server would not be what its file says, with what
// to do. The value in brackets is the only one that is allowed.
var refused = map[string]struct{ allowed, text string }{
	"sandbox":                  {"", "servers do not run in a sandbox here: remove it to run the server without one"},
	"sandboxEnabled":           {"", "servers do not run in a sandbox here: remove it to run the server without one"},
	"bearer_token":             {"", `Codex does not read it: write "bearer_token_env_var"`},
	"source":                   {"custom", `an extension of Zed starts the server: write its "command"`},
	"settings":                 {"", `an extension of Zed starts the server: write its "command"`},
	"authProviderType":         {"dynamic_discovery", `signing in with credentials of Google is not supported: write a token in "headers"`},
	"experimental_environment": {"local", "servers run on this machine only: remove it"},
	"environment_id":           {"local", "servers run on this machine only: remove it"},
}

// without tells of the keys that were not taken, in the order of names. A key that
// may be meant to switch something off is a problem.
func (e *entry) without(names []string) {
	for _, name := range names {
		raw, ok := e.values[name]
		if !ok {
			continue
		}
		set := string(raw) != "null" && string(raw) != "false"
		if r, ok := refused[name]; ok {
			if set && (r.allowed == "" || string(raw) != `"`+r.allowed+`"`) {
				e.problem("%q: %s", name, r.text)
			}
			continue
		}
		if what, ok := idle[name]; ok {
			if set && what != "" {
				e.note("server %q: %q: %s", e.Name, name, what)
			}
			continue
		}
		var value any
		if json.Unmarshal(raw, &value) != nil || maySwitchOff(name, value) {
			e.problem(`%q is not known here and may switch something off: write "disabled", "enabled", "disabledTools" or "enabledTools", or remove it`, name)
			continue
		}
		hint := ""
		if near := nearest.Names(name, slices.Values(known), 1); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean %q?", near[0])
		}
		e.note("server %q: %q is not known here and has no effect%s", e.Name, name, hint)
	}
}

// known are the keys that a misspelled one may mean.
var known = []string{
	"command", "args", "env", "envFile", "cwd", "type", "url", "headers", "headersHelper", "oauth", "timeout", "callTimeout",
	"tools", "needs", "prefix", "eager",
}
