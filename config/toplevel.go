package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// understood are keys beside the servers that are understood, or switch nothing off
// that is read here.
var understood = []string{
	"disabledMcpServers", "enabledMcpServers", "disabledMcpjsonServers", "enabledMcpjsonServers", "deniedMcpServers", "allowedMcpServers", // Claude Code
	"allowManagedMcpServersOnly", "enableAllProjectMcpServers", "allowAllClaudeAiMcps", "allowedTools", "enabledPlugins", "strictPluginOnlyCustomization",
	"excludeMCPServers", "allowMCPServers", "excludeTools", "coreTools", "admin", // Gemini CLI
	"disallowedTools", "permission", "permissions", "inputs", "mcp.inputs",
	"tools",                                   // or takeTools fails
	"disabled_providers", "enabled_providers", // opencode
	"chat.mcp.enabled", "chat.mcp.access", "chat.mcp.autostart", "chat.mcp.apps.enabled", "chat.mcp.assisted.nuget.enabled", // VS Code
	"chat.mcp.discovery.enabled", "chat.mcp.gallery.enabled", "chat.mcp.collisionBehavior", "chat.mcp.serverSampling",
	"mcp.allowed", "mcp.excluded", "mcp.discovery", "mcp.discovery.enabled",
}

// unknownSwitch fails if a key beside the servers that we don't know may switch
// servers or tools off.
func (doc *document) unknownSwitch(scopes []object) error {
	for _, o := range scopes {
		for _, key := range o.names {
			object := kind(o.values[key]) == "object"
			if slices.Contains(understood, key) && !(object && strings.HasPrefix(key, "mcp.")) ||
				slices.Contains(doc.dialect.others, key) || isPlace(key) && object {
				continue
			}
			var value any
			if json.Unmarshal(o.values[key], &value) != nil {
				continue
			}
			if options, ok := value.(map[string]any); ok && key == "options" {
				delete(options, "disabled_tools") // crush's, which is taken
			}
			if doc.mayConcern(key, value) {
				return fmt.Errorf(`%q is not known here and may switch servers or tools off: write "disabled" or "disabledTools" into the servers, or remove it`, key)
			}
		}
	}
	return nil
}

// isPlace reports whether clients have their servers at a key, or below it. All members
// of "projects" and "mcp" are looked at.
func isPlace(key string) bool {
	return key == "projects" || slices.ContainsFunc(dialects, func(d dialect) bool {
		return slices.ContainsFunc(d.at, func(place string) bool { return place == key || strings.HasPrefix(place, key+".") })
	})
}

// A subject is what the keys of an object are about.
type subject int

const (
	theFile   subject = iota // the keys beside the servers, and those of "settings"
	servers                  // all servers
	tools                    // all tools
	something                // anything else
)

// mayConcern reports whether a key beside the servers, with that value, may switch
// servers or tools off. In VS Code, what a key is about stands before a dot:
// "files.exclude".
func (doc *document) mayConcern(key string, value any) bool {
	if doc.concerns(theFile, key, value) {
		return true
	}
	return (!strings.Contains(key, ".") || isAbout(key) == servers) && (doc.listsNamed(false, key, value) || doc.switchesNamed(key, value))
}

// isOthers reports whether key and value are the servers of somebody else. If not all
// members are objects, they are settings.
func isOthers(key string, value any) bool {
	members, object := value.(map[string]any)
	if !object || !isPlace(key) {
		return false
	}
	for _, member := range members {
		if _, object := member.(map[string]any); !object {
			return false
		}
	}
	return true
}

// isAbout returns what a key is about by its name.
func isAbout(key string) subject {
	lower := withoutOthers(plain(key))
	switch {
	case strings.Contains(lower, "mcp") || strings.Contains(lower, "servers"):
		return servers
	case strings.HasPrefix(lower, "tool") || strings.HasSuffix(lower, "tools"):
		return tools
	}
	return something
}

// concerns reports whether the key of an object that is about something, or what is
// below it, may switch servers or tools off. Other settings have switches too, so it
// must be about servers or tools, or be a switch beside the servers that does not say
// of what.
func (doc *document) concerns(in subject, key string, value any) bool {
	own := isAbout(key)
	members, _ := value.(map[string]any)
	if in != theFile && isOthers(key, value) {
		return false
	}
	bare := slices.ContainsFunc(topics(key), func(topic string) bool {
		return slices.Contains(bareSwitches, topic) || isBareList(topic) || isPolicy(topic) || len(topic) <= len("disabled") && misspelled(topic)
	})
	switch {
	case own == servers || in == servers || in == theFile && bare:
		if slices.ContainsFunc(topics(key), func(topic string) bool { return switchesAll(topic, value) }) {
			return true
		}
	case in == tools:
		if isSwitch(key) && leavesOff(key, value, true) || saysNo(value) {
			return true
		}
	case own == tools:
		if hasAny(fold(key), offWords) && leavesOff(key, value, false) {
			return true
		}
	}
	if own == something {
		own = in
		if in == theFile && !slices.Contains(containers, plain(key)) {
			own = something
		}
	}
	if own == tools && !strings.HasPrefix(plain(key), "tool") && in != tools {
		own = something
	}
	for key, inner := range members {
		if doc.concerns(own, key, inner) {
			return true
		}
	}
	list, _ := value.([]any)
	return slices.ContainsFunc(list, func(inner any) bool {
		_, object := inner.(map[string]any)
		return object && doc.concerns(in, key, inner)
	})
}

// switchesAll reports whether a key about servers that has this name without them may
// switch them off.
func switchesAll(topic string, value any) bool {
	if isPolicy(topic) {
		return leavesOff("off", value, false) // whatever it says
	}
	if isSwitch(topic) {
		return leavesOff(topic, value, false) || saysOff(value)
	}
	return saysOff(value) || hasAny(withoutOthers(topic), startWords) && saysNo(value)
}

// topics returns what a key says of servers, which is all but their name: "status" for
// "serverStatus". If nothing is left, the key may switch them on.
func topics(key string) (names []string) {
	key = strings.ReplaceAll(strings.ReplaceAll(plain(key), "mcp", ""), ".", "")
	for _, name := range []string{"servers", "server"} {
		if topic := strings.ReplaceAll(key, name, ""); topic != "" {
			names = append(names, topic)
		} else {
			return []string{"enabled"}
		}
	}
	return names
}

// containers are names of keys that do not say what their members are about.
var containers = []string{"settings", "config", "configuration", "options", "preferences", "global", "policy", "policies", "defaults"}

// bareSwitches are names of switches that do not say of what.
var bareSwitches = []string{
	"active", "disable", "disabled", "enable", "enabled", "inactive", "isactive", "isdisabled", "isenabled", "off", "on", "paused", "state", "status",
}

// bareEnd matches how lists go on that do not say of what: "deny", "blocklist".
var bareEnd = regexp.MustCompile("^(y|e|d|s|de|ded|des|ed|es|ned|ped|ted|ing|ion|ions|sion|sions)?(list|lists|rules)?$")

func isBareList(key string) bool {
	return slices.ContainsFunc(offWords, func(word string) bool {
		end, ok := strings.CutPrefix(key, word)
		return ok && bareEnd.MatchString(end)
	})
}

// isPolicy reports whether a key may have any rules.
func isPolicy(key string) bool {
	key = fold(key)
	return key == "policy" || key == "policies"
}

// names reports whether value names one of the servers, or a tool of one.
func (doc *document) names(value any) bool { return doc.listsNamed(true, "", value) }

// listsNamed reports whether value, or a part of it, names a server or a tool of one.
// Outside of switches, names do not count.
func (doc *document) listsNamed(inSwitch bool, key string, value any) bool {
	if !inSwitch && isOthers(key, value) {
		return false
	}
	inSwitch = inSwitch || isSwitch(key)
	switch v := value.(type) {
	case string:
		return inSwitch && doc.mentions(v)
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return doc.listsNamed(inSwitch, "", inner) })
	case map[string]any:
		for key, inner := range v {
			if inSwitch && doc.mentions(key) || doc.listsNamed(inSwitch, key, inner) {
				return true
			}
		}
	}
	return false
}

// switchesNamed reports whether key names a server that value may switch off, or a
// part of value does so: {"x": false} and [{"name": "x", "enabled": false}].
func (doc *document) switchesNamed(key string, value any) bool {
	if doc.mentions(key) {
		return saysNo(value) || maySwitchOff("", value)
	}
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return doc.switchesNamed("", inner) })
	case map[string]any:
		for _, inner := range v {
			if text, ok := inner.(string); ok && doc.mentions(text) {
				return maySwitchOff("", value)
			}
		}
		for key, inner := range v {
			if doc.switchesNamed(key, inner) {
				return true
			}
		}
	}
	return false
}
