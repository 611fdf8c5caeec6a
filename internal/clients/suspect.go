package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/nearest"
)

// Words in the names of switches. Those in offWords say what is off, those in onWords
// what is on, and those in otherWords are about either.
var (
	offWords = []string{
		"disabl", "inactiv", "block", "deny", "denie", "exclu", "forbid", "hidden", "hide", "ignore", "blacklist", "omit", "paused", "reject",
		"skip", "suspend", "turnedoff", "switchedoff", "disallow", "deactiv", "stopped",
	}
	onWords    = []string{"enabl", "active", "allow", "inclu", "whitelist", "only"}
	otherWords = []string{"filter", "tools"}

	// startWords are in the names of keys that switch off by a false or a never.
	startWords = []string{"start", "launch", "connect", "load", "run", "use", "visible", "show", "status", "state", "mode"}
)

// What texts say that something is off: of any key, and of those with startWords.
var (
	offTexts = []string{
		"off", "disable", "disabled", "inactive", "deactivated", "paused", "suspended", "stopped", "blocked", "deny", "denied", "excluded",
		"hidden", "forbidden", "skip", "skipped", "ignore", "ignored",
	}
	neverTexts = []string{"", "0", "false", "manual", "never", "no", "none", "ondemand"}
)

func hasAny(name string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// otherThings are in the names of keys that startWords are not about.
var otherThings = strings.NewReplacer("restart", "", "reconnect", "", "running", "", "runtime", "", "user", "", "download", "", "upload", "", "payload", "", "stateless", "", "stateful", "")

// isSwitch reports whether a key that we don't know may be meant to switch a server
// or its tools off.
func isSwitch(key string) bool {
	key = fold(key)
	return key == "on" || key == "off" || hasAny(key, offWords) || hasAny(key, onWords) || hasAny(key, otherWords) ||
		misspelled(key)
}

// misspelled reports whether key is like the usual switches.
func misspelled(key string) bool {
	return len(nearest.Names(key, slices.Values([]string{"enabled", "disabled"}), 1)) > 0
}

// maySwitchOff reports whether a key of a server that we don't know may be meant to
// switch it off, by its name or by what it says.
func maySwitchOff(key string, value any) bool {
	if isSwitch(key) {
		return leavesOff(key, value)
	}
	starts := hasAny(otherThings.Replace(fold(key)), startWords)
	switch v := value.(type) {
	case bool:
		return starts && !v
	case float64:
		return starts && v == 0
	case string:
		return slices.Contains(offTexts, fold(v)) || starts && slices.Contains(neverTexts, fold(v))
	case map[string]any:
		for key, inner := range v {
			if maySwitchOff(key, inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return maySwitchOff(key, inner) })
	}
	return false
}

// leavesOff reports whether a switch of a server with that name may leave anything
// off: all of them but those that say no to what is off, or yes to what is on.
func leavesOff(key string, value any) bool {
	key = fold(key)
	off, on := key == "off" || hasAny(key, offWords), key == "on" || hasAny(key, onWords)
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		unclear := !off && (!on || strings.Contains(key, "only") || hasAny(key, otherWords))
		return unclear || v == off
	case string:
		return !off || v != ""
	case []any:
		return !off || len(v) > 0
	case map[string]any:
		return !off || len(v) > 0
	}
	return true
}

// switchesOff reports whether a switch with that name and value may leave anything
// off.
func switchesOff(key string, value any) bool {
	off := hasAny(fold(key), offWords) || fold(key) == "off"
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v == off && (off || !hasAny(fold(key), otherWords) || hasAny(fold(key), onWords))
	case string:
		return !off || v != ""
	case []any:
		return !off || len(v) > 0
	case map[string]any:
		return !off || len(v) > 0
	}
	return true
}

// understood are keys beside the servers that are understood, or switch nothing off
// that is read here.
var understood = []string{
	"disabledMcpServers", "enabledMcpServers", "disabledMcpjsonServers", "enabledMcpjsonServers", "deniedMcpServers", "allowedMcpServers", // Claude Code
	"allowManagedMcpServersOnly", "enableAllProjectMcpServers", "allowAllClaudeAiMcps", "allowedTools", "enabledPlugins",
	"excludeMCPServers", "allowMCPServers", "excludeTools", "coreTools", // Gemini CLI
	"disallowedTools",
	"tools", "disabled_providers", "enabled_providers", // opencode
	"chat.mcp.enabled", "chat.mcp.access", "chat.mcp.autostart", "chat.mcp.apps.enabled", "chat.mcp.assisted.nuget.enabled", // VS Code
	"chat.mcp.discovery.enabled", "chat.mcp.gallery.enabled", "chat.mcp.collisionBehavior",
	"mcp.allowed", "mcp.excluded", "mcp.discovery",
}

// unknownSwitch fails if a key beside the servers that we don't know may switch
// servers or tools off.
func (doc *document) unknownSwitch(scopes []object) error {
	for _, o := range scopes {
		for _, key := range o.names {
			object := kind(o.values[key]) == "object"
			if slices.Contains(understood, key) && !(object && strings.HasPrefix(key, "mcp.")) || places[key] && object {
				continue
			}
			var value any
			if json.Unmarshal(o.values[key], &value) == nil && doc.mayConcern(key, value) {
				return fmt.Errorf(`%q is not known here and may switch servers or tools off: write "disabled" or "disabledTools" into the servers, or remove it`, key)
			}
		}
	}
	return nil
}

// places are the keys at which clients have their servers.
var places = func() map[string]bool {
	keys := map[string]bool{"projects": true, "mcp": true, "mcp.servers": true} // whose members are looked at
	for _, d := range dialects {
		for _, place := range d.at {
			key, _, _ := strings.Cut(place, ".")
			keys[key] = true
		}
	}
	return keys
}()

// mayConcern reports whether a key beside the servers, with that value, may switch
// servers or tools off. Other settings have switches too, so it must be about
// servers or tools, or about nothing else, or name a server. In VS Code, what a key is
// about stands before a dot: "files.exclude".
func (doc *document) mayConcern(key string, value any) bool {
	lower := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(key))
	topic := strings.NewReplacer("mcp", "", "servers", "", "server", "", ".", "").Replace(lower)
	if topic == "" {
		topic = "enabled"
	}
	text, _ := value.(string)
	switch {
	case slices.Contains(bareSwitches, topic) || len(topic) <= len("disabled") && misspelled(topic) || strings.Contains(lower, "mcp") || strings.Contains(lower, "servers"):
		return isSwitch(topic) && switchesOff(topic, value) || slices.Contains(offTexts, fold(text))
	case strings.HasPrefix(lower, "tool") || strings.HasSuffix(lower, "tools"):
		return hasAny(fold(key), offWords) && switchesOff(key, value)
	}
	return isSwitch(key) && !strings.Contains(key, ".") && doc.names(value)
}

// bareSwitches are names of switches that do not say of what.
var bareSwitches = []string{
	"active", "disable", "disabled", "enable", "enabled", "inactive", "isactive", "isdisabled", "isenabled", "off", "on", "paused", "state", "status",
}

// names reports whether value names one of the servers.
func (doc *document) names(value any) bool {
	switch v := value.(type) {
	case string:
		return slices.ContainsFunc(doc.servers, func(s server) bool { return s.name == v })
	case []any:
		return slices.ContainsFunc(v, doc.names)
	case map[string]any:
		for key, inner := range v {
			if doc.names(key) || doc.names(inner) {
				return true
			}
		}
	}
	return false
}
