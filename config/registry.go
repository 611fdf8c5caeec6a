package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A pack is a package in a server.json of the registry of MCP servers.
type pack struct {
	RegistryType, RegistryBaseURL, Identifier, Version       string
	Transport                                                struct{ Type string }
	RuntimeArguments, PackageArguments, EnvironmentVariables []argument
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
}

// launchers start packages: the command, its arguments, what stands before the version,
// and the registry from which it takes them.
var launchers = map[string]struct {
	command string
	args    []string
	version string
	base    string
}{
	"npm":  {"npx", []string{"-y"}, "@", "https://registry.npmjs.org"},
	"pypi": {"uvx", nil, "@", "https://pypi.org"},
	"oci":  {"docker", []string{"run", "-i", "--rm"}, ":", "https://docker.io"},
}

// readPublished reads a server.json: its first package that can be started here, or else
// its first remote.
func readPublished(top object) (object, error) {
	var name string
	var packages []pack
	var remotes []argument
	for key, into := range map[string]any{"name": &name, "packages": &packages, "remotes": &remotes} {
		if raw := top.values[key]; raw != nil && json.Unmarshal(raw, into) != nil {
			return object{}, fmt.Errorf("%q is not as a server.json has it", key)
		}
	}
	var f form
	var server map[string]any
	if i := slices.IndexFunc(packages, pack.starts); i >= 0 {
		server = f.start(packages[i])
	} else if len(remotes) > 0 {
		r := remotes[0]
		server = map[string]any{"type": r.Type, "url": f.text(argument{Value: r.URL, Variables: r.Variables}), "headers": f.table(r.Headers)}
	} else {
		f.err = errors.New("there is no remote, and no package of npm, PyPI or a registry of images that speaks over stdio")
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
	inputs []prompt
	err    error
}

// start returns the server that a package is.
func (f *form) start(p pack) map[string]any {
	by, env := launchers[p.RegistryType], f.table(p.EnvironmentVariables)
	if base := strings.TrimSuffix(p.RegistryBaseURL, "/"); base != "" && base != by.base {
		f.err = fmt.Errorf("packages of the registry %q are not supported: want %q", base, by.base)
	}
	args := append(slices.Clip(by.args), f.list(p.RuntimeArguments)...)
	if p.RegistryType == "oci" {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			args = append(args, "-e", name)
		}
	}
	if p.Version != "" && (p.RegistryType != "oci" || !strings.ContainsAny(path.Base(p.Identifier), ":@")) {
		p.Identifier += by.version + p.Version
	}
	args = append(args, f.text(argument{Value: p.Identifier}))
	return map[string]any{"command": by.command, "args": append(args, f.list(p.PackageArguments)...), "env": env}
}

// list returns the arguments of a command.
func (f *form) list(arguments []argument) (list []string) {
	for _, a := range arguments {
		if value := f.text(a); value != "" {
			if a.Type == "named" {
				list = append(list, f.text(argument{Value: a.Name}))
			}
			list = append(list, value)
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

// text returns the value of an argument, or "" if it may be left out. It has references
// only to inputs: the author of a server.json must not read variables and files.
func (f *form) text(a argument) string {
	value := f.value(a)
	if strings.Contains(value, "${") {
		f.err = errors.New(`"${" has no meaning in a server.json`)
	}
	parts := strings.Split(value, "\x00")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "${input:" + parts[i] + "}"
	}
	return strings.Join(parts, "")
}

// value returns the value of an argument, with "\x00ID\x00" for each input.
func (f *form) value(a argument) string {
	value := a.Value
	for _, name := range slices.Sorted(maps.Keys(a.Variables)) {
		variable := a.Variables[name]
		variable.Name = name
		value = strings.ReplaceAll(value, "{"+name+"}", f.value(variable))
	}
	if value = cmp.Or(value, a.Default); value != "" || !a.IsRequired {
		return value
	}
	in := prompt{ID: cmp.Or(a.Name, a.ValueHint), Type: "promptString", Description: a.Description, Password: a.IsSecret, Options: a.Choices}
	if a.Choices != nil {
		in.Type = "pickString"
	}
	f.inputs = append(f.inputs, in)
	return "\x00" + in.ID + "\x00"
}
