package config

import (
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/nearest"
)

// Words in the names of switches. Those in offWords say what is off, those in onWords
// what is on, and those in otherWords are about either.
var (
	offWords = []string{
		"disabl", "inactiv", "block", "deny", "denie", "exclu", "forbid", "hidden", "hide", "ignore", "blacklist", "omit", "paused", "reject",
		"skip", "suspend", "turnedoff", "switchedoff", "disallow", "deactiv", "stopped", "deleted", "archived", "mute", "remov", "unavailab", "dormant",
		"except", "ban", "restrict",
	}
	onWords    = []string{"enabl", "active", "allow", "inclu", "whitelist", "only", "select", "availab"}
	otherWords = []string{"filter", "tools"}

	// startWords are in the names of keys that switch off by a false or a never, and
	// stateWords in those of a server's keys that do so too.
	startWords = []string{"start", "launch", "connect", "load", "run"}
	stateWords = []string{"use", "visible", "show", "status", "state", "mode"}

	// grantWords are in the names of keys whose members do so, whatever their names.
	grantWords = []string{"tool", "permission"}
)

// What texts say that something is off: of any key, and of those with startWords.
var (
	offTexts = []string{
		"off", "disable", "disabled", "inactive", "deactivated", "paused", "suspended", "stopped", "blocked", "deny", "denied", "excluded",
		"hidden", "forbidden", "skip", "skipped", "ignore", "ignored", "ban", "banned", "block", "exclude", "forbid", "hide", "omit", "reject", "rejected",
	}
	neverTexts = []string{"", "0", "false", "manual", "never", "no", "none", "ondemand"}
)

func hasAny(name string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// otherThings are in the names of keys that the words above are not about.
var otherThings = []string{
	"restart", "reconnect", "running", "runtime", "user", "download", "upload", "payload", "stateless", "stateful",
	"exception", "banner", "bandwidth", "urban", "mutex", "unrestrict", "toolbar", "tooltip", "toolchain", "toolkit",
}

func withoutOthers(key string) string {
	for _, thing := range otherThings {
		key = strings.ReplaceAll(key, thing, "")
	}
	return key
}

// isSwitch reports whether a key that we don't know may be meant to switch a server
// or its tools off.
func isSwitch(key string) bool {
	key = withoutOthers(fold(key))
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
		return leavesOff(key, value, true)
	}
	name := withoutOthers(fold(key))
	states := hasAny(name, startWords) || hasAny(name, stateWords)
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if maySwitchOff(key, inner) || (isPolicy(name) || hasAny(name, grantWords)) && saysNo(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return maySwitchOff(key, inner) })
	}
	return saysOff(value) || states && saysNo(value)
}

// saysOff reports whether value is a text that says that something is off.
func saysOff(value any) bool {
	text, ok := value.(string)
	return ok && slices.Contains(offTexts, fold(text))
}

// saysNo reports whether value switches off what a key is about that is no switch by
// its name.
func saysNo(value any) bool {
	switch v := value.(type) {
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return saysOff(v) || slices.Contains(neverTexts, fold(v))
	}
	return false
}

// leavesOff reports whether a switch with that name and value may leave anything off:
// all of them but those that say no to what is off, or yes to what is on. If a key of a
// server does not say which a bool is, either may. Beside the servers, a bool that is
// neither, as of "hasSeenTools", is about something else.
func leavesOff(key string, value any, ofServer bool) bool {
	key = withoutOthers(fold(key))
	off, on := key == "off" || hasAny(key, offWords), key == "on" || hasAny(key, onWords)
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		if off {
			return v
		}
		both := hasAny(key, otherWords)
		if ofServer && (!on || both || strings.Contains(key, "only")) {
			return true
		}
		return !v && (on || !both)
	case string:
		return !off || v != ""
	case []any:
		return !off || len(v) > 0
	case map[string]any:
		return !off || len(v) > 0
	}
	return true
}
