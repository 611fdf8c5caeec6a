package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/nearest"
)

const (
	noApprovals = "there are no approvals here, so it has no effect"
	noEffect    = "only its client knows what it is for, so it has no effect"
	pinned      = "its tools are deferred like all others: pin them by Options.Pins"
)

// idle are keys of clients that have no effect here, in any spelling, with what to
// tell of them; "" for nothing. A key that is false, null or an empty list is not told
// of.
var idle = map[string]string{
	// Words for people.
	"$schema": "", "comment": "", "description": "", "displayname": "", "icon": "", "name": "", "note": "", "title": "",
	// Where the server comes from.
	"extension": "", "extensionname": "", "gallery": "", "metadata": "", "remoteconfigured": "", "version": "", "supportsparalleltoolcalls": "",
	"capabilities": "", // what the server says of itself
	"bundled":      "", "configsample": "", "faviconurl": "", "sourcefile": "", "id": "", "logourl": "", "provider": "", "providerurl": "", "reference": "", "tags": "",

	"autoapprove": noApprovals, "alwaysallow": noApprovals, "trust": noApprovals, "defaulttoolsapprovalmode": noApprovals,
	"autoapprovetools": noApprovals, "disabledautoapprovetools": noApprovals,

	"alwaysload":  pinned,
	"required":    "a server that fails stops nothing: Start and Servers tell of it",
	"registryurl": `packages come from where their launcher looks: write NPM_CONFIG_REGISTRY or UV_DEFAULT_INDEX into "env"`,
	"dev":         noEffect, "longrunning": noEffect, "remote": noEffect, "watchpaths": noEffect, "sessionless": noEffect,
	"targetaudience": noEffect, "targetserviceaccount": noEffect, "channelenabled": noEffect, "channelreply": noEffect,
}

// refused are keys without which a server would not be what its file says, in any
// spelling.
var refused = map[string]struct {
	text    string // what to do
	allowed string // the only value that is allowed
	ifNoWay bool   // it is refused only if nothing says how to reach the server
}{
	"sandbox":                 {text: "servers do not run in a sandbox here: remove it to run the server without one"}, // and all with this word
	"bearertoken":             {text: `Codex does not read it: write "bearer_token_env_var"`},
	"uses":                    {text: "a block of Continue's hub is not fetched: write the server out"},
	"source":                  {text: extensionStarts, allowed: "custom"},
	"settings":                {text: extensionStarts, ifNoWay: true},
	"authprovidertype":        {text: `signing in with credentials of Google is not supported: write a token in "headers"`, allowed: "dynamic_discovery"},
	"experimentalenvironment": {text: "servers run on this machine only: remove it", allowed: "local"},
	"environmentid":           {text: "servers run on this machine only: remove it", allowed: "local"},
}

const extensionStarts = `an extension of Zed starts the server: write its "command"`

// reportUnknown tells of the keys that were not taken, in the order of names.
func (e *entry) reportUnknown(names []string) {
	for _, name := range names {
		raw, ok := e.values[name]
		if !ok {
			continue
		}
		set := string(raw) != "null" && string(raw) != "false"
		key := fold(name)
		if strings.Contains(key, "sandbox") {
			key = "sandbox"
		}
		if r, ok := refused[key]; ok {
			if set && (r.allowed == "" || string(raw) != `"`+r.allowed+`"`) && !(r.ifNoWay && e.Command+e.URL != "") {
				e.problem("%q: %s", name, r.text)
			}
		} else if what, ok := idle[key]; !ok {
			e.unknown(name)
		} else if set && what != "" && string(raw) != "[]" {
			e.notes.add("server %q: %q: %s", e.Name, name, what)
		}
	}
}

// unknown notes that a key has no effect.
func (e *entry) unknown(key string) {
	hint := ""
	if near := nearest.Names(key, slices.Values(known), 1); len(near) > 0 && !strings.Contains(key, ".") {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	e.notes.add("server %q: %q is not known here and has no effect%s", e.Name, key, hint)
}

// known are the keys that a misspelled one may mean.
var known = []string{
	"disabled", "enabled", "disabledTools", "enabledTools", "command", "args", "env", "envFile", "cwd", "type", "url", "headers", "headersHelper", "oauth", "timeout", "callTimeout",
	"tools", "needs", "resultSelect", "prefix", "protocol", "eager", "noInstructions", "noSkills", "unlistedResources",
}
