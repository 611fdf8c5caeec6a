package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// expand replaces the references in all strings that the server gets, and adds what
// comes from elsewhere. It asks the user only if nothing else is missing: it does all
// on a copy first, with "1" in the place of what the user will say. A value is not expanded again.
func (e *entry) expand() {
	trial := *e
	trial.Server = e.Clone()
	trial.fill(false)
	if e.problems = trial.problems; e.problems == nil {
		e.fill(true)
	}
}

// fill is expand. If not ask, the user is not asked.
func (e *entry) fill(ask bool) {
	asked := strings.HasPrefix(e.URL, "${input:")
	e.visit(func(s *string) { *s = e.resolve(*s, ask) })
	if asked && !ask {
		e.URL = "http://" + unasked // what it begins with, the user will say
	}
	e.addVariables(ask)
	if e.missing != nil {
		hint := ""
		if slices.Contains(e.missing, hidden) {
			hint = "; … stands for what may be a secret instead of the name of a variable"
		}
		e.problem("environment variables not set: %s%s", strings.Join(e.missing, ", "), hint)
	}
	if e.problems == nil && (ask || !strings.Contains(e.written, "${input:")) {
		e.readEnvFile()
	}
	e.place()
	if e.problems == nil {
		if err := e.Validate(); err != nil {
			e.problem("%w", err)
		}
	}
}

// names refuses references where names are: there, none are replaced.
func (e *entry) names() {
	check := func(what string, names ...string) {
		if slices.ContainsFunc(names, e.dialect.refers) {
			e.problem("%s has a reference, which is not replaced there: write it out", what)
		}
	}
	keys := func(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }
	check("the name of the server", e.Name)
	check("the name of an environment variable", append(keys(e.Env), e.inherits...)...)
	check("the name of a header", append(keys(e.Headers), keys(e.fromEnv)...)...)
	check(`"prefix"`, e.Prefix)
	check("a list of tools", append(slices.Clip(e.Tools.Allow), e.Tools.Deny...)...)
	for _, name := range slices.Sorted(maps.Keys(e.Needs)) {
		check(`"needs"`, append([]string{name}, e.Needs[name]...)...)
	}
	check(`the name of a tool in "resultSelect"`, keys(e.ResultSelect)...)
}

// visit calls f with each string that may have references.
func (e *entry) visit(f func(*string)) {
	table := func(values map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			v := values[key]
			f(&v)
			values[key] = v
		}
	}
	list := func(values []string) {
		for i := range values {
			f(&values[i])
		}
	}
	f(&e.Command)
	list(e.Args)
	table(e.Env)
	f(&e.envFile)
	f(&e.Dir)
	f(&e.URL)
	table(e.Headers)
	if o := e.OAuth; o != nil {
		for _, s := range []*string{&o.GrantType, &o.ClientID, &o.ClientMetadataURL, &o.ClientSecret, &o.PrivateKey, &o.KeyID, &o.RedirectURI, &o.Resource, &o.MetadataURL, &o.AuthorizationURL, &o.TokenURL} {
			f(s)
		}
		list(o.Scopes)
	}
}

// addVariables adds the variables that Codex names without a reference, if they are set.
// What the file says itself wins. If tell, it notes headers that are not sent.
func (e *entry) addVariables(tell bool) {
	for _, name := range e.inherits {
		if value, ok := e.env(name); ok {
			give(&e.Env, name, value)
		}
	}
	for _, header := range slices.Sorted(maps.Keys(e.fromEnv)) {
		if value, ok := e.env(e.fromEnv[header]); ok {
			give(&e.Headers, header, value)
		} else if tell {
			e.notes.add("server %q: \"env_http_headers\": %s is not set, so the header %q is not sent", e.Name, nameOfVariable(e.fromEnv[header]), header)
		}
	}
}

// place makes the working directory absolute where the client does.
func (e *entry) place() {
	switch {
	case !e.dialect.inFolder || e.Command == "":
	case e.Dir != "" && !filepath.IsAbs(e.Dir):
		e.Dir = filepath.Join(e.folder, e.Dir)
	case e.Dir == "" && e.project:
		e.Dir = e.folder
	}
}

// resolve returns s with the values of its references. If not ask, the user is
// not asked.
func (e *entry) resolve(s string, ask bool) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "${")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		value, n := e.reference(s[i:], ask)
		if n == 0 { // just a character
			value, n = s[i:i+1], 1
		}
		b.WriteString(value)
		s = s[i+n:]
	}
	return b.String() + s
}

// reference returns the value of the reference with which s begins, and its length;
// 0 if there is none.
func (e *entry) reference(s string, ask bool) (value string, n int) {
	if rest, ok := strings.CutPrefix(s, "${{"); ok { // Continue
		body, _, closed := strings.Cut(rest, "}}")
		name, secret := strings.CutPrefix(strings.TrimSpace(body), "secrets.")
		if !closed || !secret {
			e.problem(`"${{" is not a reference that is known here: want ${{ secrets.NAME }}`)
			return "", len(s)
		}
		return e.variable(name), len("${{" + body + "}}")
	}
	if strings.HasPrefix(s, "${") {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			e.problem(`"${" has no "}"`)
			return "", len(s)
		}
		return e.braced(s[2:end], ask), end + 1
	}
	if e.dialect.braces && (strings.HasPrefix(s, "{env:") || strings.HasPrefix(s, "{file:")) {
		end := strings.IndexByte(s, '}')
		if end < 0 { // no more references
			return s, len(s)
		}
		source, name, _ := strings.Cut(s[1:end], ":")
		if source == "env" {
			return e.variable(name), end + 1
		}
		return e.file(name), end + 1
	}
	if e.dialect.commands && strings.HasPrefix(s, "$(") {
		e.problem(`"$(…)" runs a command, which is not done here: put its output into an environment variable`)
		return "", len(s)
	}
	if e.dialect.dollar && s[0] == '$' {
		if n := identifier(s[1:]); n > 0 {
			return e.variable(s[1 : 1+n]), 1 + n
		}
	}
	return "", 0
}

// refers reports whether s has a reference, or the beginning of one.
func (d *dialect) refers(s string) bool { return strings.Contains(s, "${") || d.refersAsClient(s) }

var (
	dollarReference = regexp.MustCompile(`\$[a-zA-Z_]`)
	bracesReference = regexp.MustCompile(`\{(env|file):`)
)

// refersAsClient is refers for the forms that only this client has.
func (d *dialect) refersAsClient(s string) bool {
	return d.dollar && dollarReference.MatchString(s) || d.commands && strings.Contains(s, "$(") || d.braces && bracesReference.MatchString(s)
}

// identifier returns the length of the name of a variable at the start of s.
func identifier(s string) int {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// braced returns the value of ${body}.
func (e *entry) braced(body string, ask bool) string {
	name, fallback, optional := strings.Cut(body, ":-")
	required, _, _ := strings.Cut(name, ":?")
	source, rest, _ := strings.Cut(name, ":")
	switch {
	case strings.Contains(body, "${") || e.dialect.refersAsClient(fallback):
		e.problem(`"${%s:-…}": a reference within a reference is not supported`, nameOfVariable(name))
		return ""
	case name == body && e.predefined(body) != "":
		return e.predefined(body)
	case source == "env" && rest != "":
		name = rest
	case required != "" && identifier(required) == len(required):
		name = required
	case source == "input" && !optional:
		return e.input(rest, ask)
	case source == "file" && !optional:
		return e.file(rest)
	default:
		e.problem(`"${%s}" is not a reference that is known here: want ${NAME}, ${NAME:-text}, ${env:NAME}, ${input:ID}, ${file:PATH}, ${workspaceFolder} or ${userHome}`, quotedReference(body))
		return ""
	}
	if _, ok := e.env(name); !ok && optional {
		return fallback
	}
	return e.variable(name)
}

// variable returns the value of an environment variable.
func (e *entry) variable(name string) string {
	value, ok := e.env(name)
	if name = nameOfVariable(name); !ok && !slices.Contains(e.missing, name) {
		e.missing = append(e.missing, name)
	}
	return value
}

// predefined returns the value of a name that clients define, or "".
func (e *entry) predefined(name string) string {
	switch name {
	case "workspaceFolder", "workspacePath":
		return e.folder
	case "workspaceFolderBasename":
		return filepath.Base(e.folder)
	case "userHome":
		home, _ := os.UserHomeDir()
		return home
	case "CLAUDE_PLUGIN_ROOT", "extensionPath", "__dirname": // Claude Code, Gemini CLI, MCP bundles
		folder := filepath.Dir(absolute(e.path))
		if filepath.Base(folder) == ".claude-plugin" {
			folder = filepath.Dir(folder)
		}
		return folder
	case "pathSeparator", "/":
		return string(filepath.Separator)
	}
	return ""
}

// secret notes that value must not be shown.
func (e *entry) secret(value string) string {
	if value != "" && !slices.Contains(e.Secrets, value) {
		e.Secrets = append(e.Secrets, value)
	}
	return value
}

// file returns the content of a file, without white space around it. A relative path
// begins in the folder of the configuration.
func (e *entry) file(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(e.predefined("userHome"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(e.path), path)
	}
	data, err := readSideFile(path)
	if err != nil {
		e.problem("file %q: %w", path, err)
	}
	return e.secret(strings.TrimSpace(string(data)))
}
