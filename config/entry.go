package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An entry is one server while it is read. What was taken from values is understood;
// what is left is not.
type entry struct {
	*reader
	Server
	values   map[string]json.RawMessage
	problems []error

	onList   string            // the key that says which tools to use; "" if none does
	envFile  string            // a file with more of Env
	written  string            // envFile with its references, whose values may be secrets
	inherits []string          // variables of this process for Env, if they are set
	fromEnv  map[string]string // Headers by the variables that have them
	missing  []string          // variables that are not set
}

// server reads one server. One that is switched off need not be complete.
func (r *reader) server(s member) outcome {
	named := Server{Name: s.name}
	fail := func(err error) outcome { return outcome{Server: named, err: err} }
	if s.times > 1 {
		return fail(s.repeated())
	}
	if r.off.server(s.name) {
		return outcome{Server: Server{Name: s.name, Disabled: true}}
	}
	o, err := parseObject(s.value)
	if err != nil {
		if len(o.names) == 0 {
			err = fmt.Errorf("is a JSON %s, want an object", kind(s.value))
		}
		return fail(err)
	}
	e := &entry{reader: r, Server: named, values: o.values}
	if e.disabled(o.names) || e.isInside(o.names) {
		return outcome{Server: Server{Name: s.name, Disabled: true}}
	}
	e.toolLists(o.names)
	e.process()
	e.remote()
	e.signIn(o.names)
	e.own()
	e.timeouts()
	e.transport()
	e.nested(o.names)
	e.reportUnknown(o.names)
	e.names()
	if e.problems == nil {
		e.expand() // last: it may ask the user
	}
	if e.problems != nil {
		failed := fail(errors.Join(e.problems...))
		if len(e.problems) == 1 {
			failed.unset = e.missing
		}
		return failed
	}
	return outcome{Server: e.Server}
}

// nested tells of a server inside what should be one.
func (e *entry) nested(names []string) {
	for _, name := range names {
		if e.Command+e.URL == "" && isServer(e.values[name]) {
			e.problem("its %q looks like a server, one level too deep: move it up by one", plainWord(name))
			return
		}
	}
}

// process takes the keys of a child process.
func (e *entry) process() {
	switch raw := e.values["command"]; {
	case kind(raw) == "array": // opencode
		if words, _ := e.list("command"); len(words) > 0 {
			e.Command, e.Args = words[0], append(e.Args, words[1:]...)
		}
	case kind(raw) == "object": // older files of Zed
		e.program()
	default:
		e.Command = cmp.Or(e.string("command"), e.string("cmd"))
	}
	args, _ := e.list("args")
	e.Args = append(e.Args, args...)
	e.table("env", &e.Env, e.dialect.envNumber)
	e.table("environment", &e.Env, false)
	e.table("envs", &e.Env, false)
	e.envFile = e.string("envFile")
	e.written = e.envFile
	e.Dir = cmp.Or(e.string("cwd"), e.string("workingDirectory"))
	e.inherited()
}

// program takes the members of "command", if it is an object.
func (e *entry) program() {
	for _, key := range e.open("command") {
		switch key {
		case "command.path":
			e.Command = e.string(key)
		case "command.args":
			args, _ := e.list(key)
			e.Args = append(e.Args, args...)
		case "command.env":
			e.table(key, &e.Env, false)
		default:
			e.problem("%q is not known here: remove it", key)
		}
	}
}

// inherited takes the variables that Goose and Codex hand on to a child. Those of Codex
// need not be set.
func (e *entry) inherited() {
	names, _ := e.list("env_keys")
	for _, name := range names {
		give(&e.Env, name, "${env:"+name+"}")
	}
	var given []json.RawMessage
	e.take("env_vars", &given, "a list of names")
	for _, raw := range given {
		var variable struct{ Name, Source string }
		if json.Unmarshal(raw, &variable.Name) != nil && json.Unmarshal(raw, &variable) != nil || variable.Name == "" {
			e.problem(`"env_vars" has a JSON %s, want names`, kind(raw))
			continue
		}
		if variable.Source != "" && variable.Source != "local" {
			e.problem(`"env_vars": %q is to come from %q: only variables of this process can be handed on`, nameOfVariable(variable.Name), plainWord(variable.Source))
		}
		e.inherits = append(e.inherits, variable.Name)
	}
}

// remote takes the keys of a server that is reached over HTTP. Gemini CLI takes the first
// of several ways: httpUrl, url, and command.
func (e *entry) remote() {
	for _, key := range []string{"httpUrl", "url", "serverUrl", "baseUrl", "uri"} {
		address := e.string(key)
		first := e.dialect.name == "gemini" && e.URL != ""
		if address != "" && e.URL != "" && !first {
			e.problem("%q is one address too many: keep one", key)
		}
		if address != "" && !first {
			e.URL = address
		}
	}
	if e.dialect.name == "gemini" && e.URL != "" {
		e.Command, e.Args, e.Dir = "", nil, ""
	}
	e.table("headers", &e.Headers, false)
	e.table("http_headers", &e.Headers, false)
	e.table("env_http_headers", &e.fromEnv, false)
	if name := e.string("bearer_token_env_var"); name != "" {
		give(&e.Headers, "Authorization", "Bearer ${env:"+name+"}")
	}
	e.requests()
	e.HeadersHelper = cmp.Or(e.string("headersHelper"), e.string("http_headers_helper"))
}

// requests takes what Continue sends with its requests.
func (e *entry) requests() {
	if kind(e.values["requestOptions"]) == "object" {
		for _, key := range e.open("requestOptions") {
			if key == "requestOptions.headers" {
				e.table(key, &e.Headers, false)
			} else {
				e.unknown(key)
			}
		}
	}
	if key := e.string("apiKey"); key != "" {
		give(&e.Headers, "Authorization", "Bearer "+key)
	}
}

// give sets the value of key if there is none.
func give(values *map[string]string, key, value string) {
	if *values == nil {
		*values = make(map[string]string)
	}
	if _, given := (*values)[key]; !given {
		(*values)[key] = value
	}
}

// isInside reports whether the client itself has the server.
func (e *entry) isInside(names []string) bool {
	for _, name := range names {
		var value string
		if fold(name) != "type" || json.Unmarshal(e.values[name], &value) != nil || !slices.Contains(e.dialect.inside, strings.ToLower(value)) {
			continue
		}
		e.notes.add("server %q: %q: %q is inside its client, so it is not started here", e.Name, name, value)
		return true
	}
	return false
}

// own takes the keys that no other client has.
func (e *entry) own() {
	e.take("needs", &e.Needs, "an object with lists of names")
	e.take("resultSelect", &e.ResultSelect, "an object with expressions")
	e.Prefix = e.string("prefix")
	e.Protocol = e.string("protocol")
	e.take("eager", &e.Eager, "true or false")
	e.take("noInstructions", &e.NoInstructions, "true or false")
	e.take("noSkills", &e.NoSkills, "true or false")
	e.take("unlistedResources", &e.UnlistedResources, "true or false")
}

// transport checks that the server is reached in a way that we know.
func (e *entry) transport() {
	given := cmp.Or(e.string("type"), e.string("transport"), e.string("transportType"))
	switch given {
	case "":
	case "stdio", "local":
		if e.URL != "" {
			e.problem("type %q contradicts the other keys: stdio goes with command, http with url", plainWord(given))
		}
	case "http", "streamable-http", "streamableHttp", "streamable_http", "remote", "sse":
		if e.Command != "" {
			e.problem("type %q contradicts the other keys: stdio goes with command, http and sse with url", plainWord(given))
		}
		e.SSE = given == "sse"
	default:
		e.problem("type %q is not supported: want stdio, http or sse", plainWord(given))
	}
}
