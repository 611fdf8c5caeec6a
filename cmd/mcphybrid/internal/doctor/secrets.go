package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	// secretName matches names whose values are likely secrets.
	secretName = regexp.MustCompile(`(?i)key|token|secret|passw|pwd|auth|cred|cookie|session|bearer|\bpat\b|_pat$`)

	// secretValue matches values that are secrets by their look.
	secretValue = regexp.MustCompile(`^(sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abeprs]-|AKIA|AIza|eyJ)[\w.-]{8}`)

	// option matches what stands before a value in an argument: an option or a variable.
	// Anything else there, such as an address, may be a secret itself.
	option = regexp.MustCompile(`^-{0,2}[A-Za-z][\w.-]*$`)

	// scheme is what stands before the secret in a header.
	scheme = regexp.MustCompile(`^(?i)(bearer|basic|token)\s+`)
)

// minSecret is how many bytes a secret has at least. "none", "true" and the like are not.
const minSecret = 8

// plainSecrets finds values that are likely secrets and stand in the file as they are,
// instead of a reference to them. It tells the names of their keys, never a value.
func (c *checkup) plainSecrets(tell teller) {
	for _, server := range c.servers {
		check := func(where, name, value string) {
			value = bare(value)
			if !isSecret(name, value) || !c.written(value) {
				return
			}
			what := fmt.Sprintf("%s %s is in the file in plain text", where, name)
			if c.exposed {
				what += ", which others on this machine may read"
			}
			tell(server.Name, what, variable(server.Name, where, name))
		}
		address := func(where, text string) {
			u, err := url.Parse(text)
			if err != nil || u.Host == "" {
				return
			}
			if password, ok := u.User.Password(); ok {
				check(where, "password", password)
			}
			query := u.Query()
			for _, name := range slices.Sorted(maps.Keys(query)) {
				check(where+" parameter", name, query.Get(name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(server.Env)) {
			check("env", name, server.Env[name])
			address("env "+name, server.Env[name])
		}
		for _, name := range slices.Sorted(maps.Keys(server.Headers)) {
			check("header", name, server.Headers[name])
		}
		for i, arg := range server.Args {
			number := fmt.Sprint("number ", i+1)
			address("argument "+number, arg)
			if name, value, _ := strings.Cut(arg, "="); option.MatchString(name) {
				address("argument "+name, value)
			}
			before := ""
			if i > 0 && strings.HasPrefix(server.Args[i-1], "-") {
				before = server.Args[i-1]
			}
			at := strings.IndexAny(arg, "=:")
			switch {
			case at > 0 && option.MatchString(arg[:at]) && isSecret(arg[:at], bare(arg[at+1:])):
				check("argument", arg[:at], arg[at+1:])
			case !strings.HasPrefix(arg, "-") && option.MatchString(before) && isSecret(before, arg):
				check("argument", before, arg)
			default:
				check("argument", number, arg)
			}
		}
		address("url", server.URL)
		if server.OAuth != nil {
			check("oauth", "clientSecret", server.OAuth.ClientSecret)
			check("oauth", "privateKey", server.OAuth.PrivateKey)
		}
	}
}

// bare returns the value of a header without what stands before the secret.
func bare(value string) string { return scheme.ReplaceAllString(strings.TrimSpace(value), "") }

// isSecret reports whether the value under that name is likely a secret. A path or an
// address is none.
func isSecret(name, value string) bool {
	if len(value) < minSecret || strings.HasPrefix(value, "/") || strings.HasPrefix(value, ".") || strings.HasPrefix(value, "~") || strings.Contains(value, "://") {
		return false
	}
	return secretName.MatchString(name) || secretValue.MatchString(value)
}

// written reports whether value stands in the file. One that a reference stands for
// does not.
func (c *checkup) written(value string) bool {
	quoted, err := json.Marshal(value)
	return strings.Contains(c.text, value) || err == nil && strings.Contains(c.text, strings.Trim(string(quoted), `"`)) ||
		strings.Contains(c.text, url.QueryEscape(value))
}

// variable returns a name for the environment variable that could hold the secret.
func variable(server, where, name string) string {
	if where == "env" {
		return name
	}
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, server)) + "_TOKEN"
}
