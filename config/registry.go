package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A pack is a package in a server.json of the registry of MCP servers.
type pack struct {
	RegistryType, RegistryBaseURL, Identifier, Version       string
	Transport                                                struct{ Type string }
	RuntimeArguments, PackageArguments, EnvironmentVariables []argument
	Disabled                                                 json.RawMessage
}

// An argument is one of a command, a variable of the environment, a header or an address.
// Value has {name} for each of Variables. Without a value, the user chooses one.
type argument struct {
	Type, Name, ValueHint, URL  string
	Value, Default, Description string
	IsRequired, IsSecret        bool
	Choices                     []json.RawMessage
	Variables                   map[string]argument
	Headers                     []argument
	Disabled                    json.RawMessage // of a remote
}

// A launcher starts packages of one registry.
type launcher struct {
	command string
	args    []string
	end     string         // ends the options, if the command knows such a word
	version string         // stands before the version
	usual   string         // the domain of its registry, without the part behind the dot
	name    *regexp.Regexp // what a package is called
	options []string       // options, without dashes, that take packages from elsewhere or run something else
	short   string         // the same of one letter
	env     string         // how variables begin that do so, in capitals
}

var launchers = map[string]launcher{
	"npm": {
		command: "npx", args: []string{"-y"}, end: "--", version: "@", usual: "npmjs",
		name:    regexp.MustCompile(`^(@\w[\w.~-]*/)?\w[\w.~-]*(@\w[\w.+-]*)?$`),
		options: []string{"registry", "userconfig", "globalconfig", "prefix", "call", "package", "workspace", "shell", "script-shell"}, short: "cCpw", env: "NPM_CONFIG_",
	},
	"pypi": {
		command: "uvx", version: "@", usual: "pypi",
		name:    regexp.MustCompile(`^\w[\w.-]*(\[[\w.,-]*\])?((@|==)\w[\w.+!-]*)?$`),
		options: []string{"index", "index-url", "extra-index-url", "default-index", "find-links", "config-file", "directory", "project", "env-file", "with-requirements"}, short: "if", env: "UV_",
	},
	"oci": {
		command: "docker", args: []string{"run", "-i", "--rm"}, end: "--", version: ":", usual: "docker",
		name: regexp.MustCompile(`^\w[\w.-]*(:[0-9]+)?(/\w[\w.-]*)*(:\w[\w.-]*)?(@\w+:[0-9a-f]+)?$`), env: "DOCKER_",
	},
}

var inputReference = regexp.MustCompile(`\$\{input:[^{}]*\}`)

// takesFrom reports whether the launcher takes packages from that registry, if nothing says
// otherwise.
func (by launcher) takesFrom(registry string) bool {
	u, err := url.Parse(registry)
	if err != nil {
		return false
	}
	parts := strings.Split(u.Hostname(), ".")
	return len(parts) > 1 && parts[len(parts)-2] == by.usual
}

// elsewhere reports whether one of the arguments of a launcher can take the package from
// another registry, an address or a folder. npm also knows the beginnings of its options.
func (by launcher) elsewhere(arg string) bool {
	if by.options == nil {
		return false
	}
	arg = inputReference.ReplaceAllString(arg, "") // what the user says is up to the user
	value := arg
	if strings.HasPrefix(arg, "-") {
		var option string
		option, value, _ = strings.Cut(strings.TrimLeft(arg, "-"), "=")
		long := strings.HasPrefix(arg, "--")
		if !long && strings.ContainsAny(option, by.short) || strings.HasSuffix(option, ":registry") ||
			slices.ContainsFunc(by.options, func(refused string) bool {
				return option == refused || by.command == "npx" && len(option) > 1 && strings.HasPrefix(refused, option)
			}) {
			return true
		}
	}
	return strings.HasPrefix(value, ".") || strings.ContainsAny(value, ":/\\") && !by.name.MatchString(value)
}

// readPublished reads a server.json: its first package that can be started here, or else
// its first remote.
func readPublished(top object, tell *notes) (object, error) {
	var name string
	var packages []pack
	var remotes []argument
	for key, into := range map[string]any{"name": &name, "packages": &packages, "remotes": &remotes} {
		if raw := top.values[key]; raw != nil && json.Unmarshal(raw, into) != nil {
			return object{}, fmt.Errorf("%q is not as a server.json has it", key)
		}
	}
	f := form{notes: tell}
	var server map[string]any
	if i := slices.IndexFunc(packages, pack.starts); i >= 0 {
		server = f.start(packages[i])
	} else if len(remotes) > 0 {
		r := remotes[0]
		for name, variable := range r.Variables { // an address can't be left out
			variable.IsRequired = true
			r.Variables[name] = variable
		}
		server = map[string]any{"type": r.Type, "url": f.text(argument{Value: r.URL, Variables: r.Variables}), "headers": f.table(r.Headers), "disabled": r.Disabled}
	} else {
		f.fail("there is no remote, and no package of npm, PyPI or a registry of images that speaks over stdio")
	}
	if f.err != nil {
		return object{}, f.err
	}
	return fileWith(path.Base(name), server, f.inputs)
}

// starts reports whether the package can be started here.
func (p pack) starts() bool {
	return launchers[p.RegistryType].command != "" && (p.Transport.Type == "" || p.Transport.Type == "stdio")
}

// A form is filled in with what a server.json says, and has what is left to ask for.
type form struct {
	*notes
	inputs []prompt
	err    error // the first
	size   int   // of all values, in bytes
}

// Limits of what values and their variables become, in bytes.
const (
	maxValue  = 64 << 10
	maxValues = 1 << 20
)

func (f *form) fail(format string, args ...any) {
	f.err = cmp.Or(f.err, fmt.Errorf(format, args...))
}

// start returns the server that a package is.
func (f *form) start(p pack) map[string]any {
	by, env := launchers[p.RegistryType], f.table(p.EnvironmentVariables)
	if p.RegistryBaseURL != "" && !by.takesFrom(p.RegistryBaseURL) {
		f.fail("packages of the registry %q are not supported: %s takes them from its usual one", text.Line(p.RegistryBaseURL, 200), by.command)
	}
	options := f.list(p.RuntimeArguments)
	if i := slices.IndexFunc(options, by.elsewhere); i >= 0 {
		f.fail("%q of \"runtimeArguments\" could take the package from elsewhere than %s does", text.Line(options[i], 200), by.command)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(strings.ToUpper(name), by.env) {
			f.fail("%q of \"environmentVariables\" is a setting of %s, not of the server", text.Line(name, 200), by.command)
		}
		if p.RegistryType == "oci" {
			options = append(options, "-e", name)
		}
	}
	if p.Version != "" && (p.RegistryType != "oci" || !strings.ContainsAny(path.Base(p.Identifier), ":@")) {
		p.Identifier += by.version + p.Version
	}
	if !by.name.MatchString(p.Identifier) {
		f.fail("%q is no package for %s", text.Line(p.Identifier, 200), by.command)
	}
	if by.end != "" {
		options = append(options, by.end)
	}
	args := slices.Concat(by.args, options, []string{p.Identifier}, f.list(p.PackageArguments))
	return map[string]any{"command": by.command, "args": args, "env": env, "disabled": p.Disabled}
}

// list returns the arguments of a command.
func (f *form) list(arguments []argument) (list []string) {
	for _, a := range arguments {
		value := f.text(a)
		switch {
		case value != "" && a.Type == "named":
			list = append(list, f.text(argument{Value: a.Name}), value)
		case value != "":
			list = append(list, value)
		case a.Type == "named":
			f.add("the argument %q has no value, so it is left out", text.Line(a.Name, 200))
		}
	}
	return list
}

// table returns headers or variables.
func (f *form) table(arguments []argument) map[string]string {
	table := make(map[string]string)
	for _, a := range arguments {
		if value := f.text(a); value != "" {
			table[a.Name] = value
		}
	}
	return table
}

const foreignReference = `"${" has no meaning in a server.json`

// text returns the value of an argument, or "" if it may be left out. It has references
// only to inputs: the author of a server.json must not read variables and files.
func (f *form) text(a argument) string {
	value := f.value(a)
	if strings.Contains(value, "${") {
		f.fail(foreignReference)
	}
	parts := strings.Split(value, "\x00")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "${input:" + parts[i] + "}"
	}
	return strings.Join(parts, "")
}

var variableReference = regexp.MustCompile(`\{[^{}]*\}`)

// variableName is what is taken for the name of a variable in braces, even if there is none
// of that name. Other braces are text, as in JSON.
var variableName = regexp.MustCompile(`^[a-zA-Z_][\w.-]*$`)

// value returns the value of an argument, with "\x00ID\x00" for each input.
func (f *form) value(a argument) string {
	value := f.filled(a.Value, a)
	if value == "" {
		value = f.filled(a.Default, a)
	}
	if value != "" || !a.IsRequired {
		return value
	}
	in := prompt{ID: cmp.Or(a.Name, a.ValueHint), Type: "promptString", Description: a.Description, Password: a.IsSecret, Options: a.Choices}
	if a.Choices != nil {
		in.Type = "pickString"
	}
	if strings.ContainsAny(in.ID, "${}\x00") {
		f.fail("%q can't be asked for: its name has one of the characters $, { and }", text.Line(in.ID, 200))
		return ""
	}
	f.inputs = append(f.inputs, in)
	return "\x00" + in.ID + "\x00"
}

// filled returns s with the values of the variables of a, or "" if one has no value. What a
// variable brings along is not replaced again.
func (f *form) filled(s string, a argument) string {
	if strings.Contains(s, "\x00") {
		f.fail("%q has a NUL byte", text.Line(a.Name, 200))
	}
	if strings.Contains(s, "${") {
		f.fail(foreignReference)
	}
	if f.err != nil {
		return ""
	}
	var b strings.Builder
	values := make(map[string]string)
	end := 0
	for _, at := range variableReference.FindAllStringIndex(s, -1) {
		name := s[at[0]+1 : at[1]-1]
		variable, known := a.Variables[name]
		if !known && !variableName.MatchString(name) {
			continue
		}
		b.WriteString(s[end:at[0]])
		end = at[1]
		if !known {
			f.fail(`"{%s}" is not in "variables"`, text.Line(name, 200))
			return ""
		}
		if _, done := values[name]; !done {
			variable.Name = name
			values[name] = f.value(variable)
		}
		if values[name] == "" {
			return ""
		}
		b.WriteString(values[name])
		if b.Len() > maxValue {
			f.fail(`"{%s}" makes a value of more than %d bytes`, text.Line(name, 200), maxValue)
			return ""
		}
	}
	b.WriteString(s[end:])
	if f.size += b.Len(); f.size > maxValues {
		f.fail("the values with their variables have more than %d bytes", maxValues)
		return ""
	}
	return b.String()
}
