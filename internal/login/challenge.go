package login

import "strings"

// maxChallenges and maxChallenge bound what we keep of a server's refusal: how many
// headers, and the bytes of each.
const (
	maxChallenges = 8
	maxChallenge  = 4 << 10
)

// bounded returns what we keep of WWW-Authenticate headers.
func bounded(headers []string) (kept []string) {
	for _, h := range headers[:min(len(headers), maxChallenges)] {
		kept = append(kept, h[:min(len(h), maxChallenge)])
	}
	return kept
}

// scopesIn returns the scopes that the first challenge for a Bearer token with any asks
// for.
func scopesIn(headers []string) []string {
	return scopesIf(headers, func(challenge) bool { return true })
}

// Lacking returns the scopes that a server wants for a request which it answered with
// status 403 and these WWW-Authenticate headers, or nil if that is not the reason.
func Lacking(headers []string) []string {
	return scopesIf(headers, func(c challenge) bool { return strings.EqualFold(c.params["error"], "insufficient_scope") })
}

func scopesIf(headers []string, ok func(challenge) bool) []string {
	for _, h := range bounded(headers) {
		for _, c := range challengesIn(h) {
			if scopes := c.scopes(); len(scopes) > 0 && strings.EqualFold(c.scheme, "Bearer") && ok(c) {
				return scopes
			}
		}
	}
	return nil
}

// A challenge says how a request may prove who sends it (RFC 9110, 11.3).
type challenge struct {
	scheme string
	params map[string]string // by name in lower case; of equal names, the first
}

// scopes returns the scopes of a challenge, or nil if one has a character that scopes
// can't have (RFC 6749, 3.3).
func (c challenge) scopes() []string {
	scope := c.params["scope"]
	if strings.ContainsFunc(scope, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return nil
	}
	return strings.Fields(scope)
}

// challengesIn returns the challenges in a WWW-Authenticate header. Commas may be
// missing, as some servers forget them. What is no challenge is skipped.
//
//	Negotiate YWJj==, Bearer realm="x", scope=a, error="insufficient_scope"
func challengesIn(header string) (all []challenge) {
	for header = strings.TrimLeft(header, separators); header != ""; header = strings.TrimLeft(header, separators) {
		name, rest := cut(header, separators+`"=`)
		switch value, after, ok := parameter(rest); {
		case name == "":
			header = header[1:]
		case !ok: // a scheme
			all, header = append(all, challenge{name, make(map[string]string)}), rest
		case len(all) == 0: // a parameter of nothing
			header = after
		default:
			params := all[len(all)-1].params
			if _, twice := params[strings.ToLower(name)]; !twice {
				params[strings.ToLower(name)] = value
			}
			header = after
		}
	}
	return all
}

// separators are between challenges and between parameters.
const separators = " \t,"

// cut splits s before the first of the characters in ends.
func cut(s, ends string) (word, rest string) {
	end := strings.IndexAny(s, ends)
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// parameter returns the value with which s begins after an equals sign, and what
// follows it. A value that is not quoted may have characters that a token can't have,
// such as those of a URL. A quoted value without an end counts as empty.
func parameter(s string) (value, after string, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimLeft(s, " \t"), "=")
	if !ok {
		return "", "", false
	}
	s = strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(s, `"`) {
		value, after = cut(s, separators)
		return value, after, true
	}
	var unquoted strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return unquoted.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		unquoted.WriteByte(s[i])
	}
	return "", "", true
}
