package config

import (
	"encoding/json"
	"errors"
	"fmt"
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
	inherits []string          // variables of this process for Env
	fromEnv  map[string]string // Headers by the variables that have them
	bearer   string            // the variable with the token for Authorization
	missing  []string          // variables that are not set
}

// server reads one server. One that is switched off need not be complete.
func (r *reader) server(s member) outcome {
	named := Server{Name: s.name}
	fail := func(err error) outcome { return outcome{named, err} }
	if s.times > 1 {
		return fail(fmt.Errorf("it is defined %d times", s.times))
	}
	if r.off.server(s.name) {
		return outcome{Server{Name: s.name, Disabled: true}, nil}
	}
	o, err := parseObject(s.value)
	if err != nil {
		if len(o.names) == 0 {
			err = fmt.Errorf("is a JSON %s, want an object", kind(s.value))
		}
		return fail(err)
	}
	e := &entry{reader: r, Server: named, values: o.values}
	if e.disabled(o.names) {
		return outcome{Server{Name: s.name, Disabled: true}, nil}
	}
	e.toolLists(o.names)
	e.process()
	e.remote()
	e.signIn(o.names)
	e.own()
	e.timeouts()
	e.transport()
	e.reportUnknown(o.names)
	e.names()
	if e.problems == nil && !e.permitted() {
		return outcome{Server{Name: s.name, Disabled: true}, nil}
	}
	if e.problems == nil {
		e.expand() // last: it may ask the user
	}
	if e.problems != nil {
		return fail(errors.Join(e.problems...))
	}
	return outcome{e.Server, nil}
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
		e.Command = e.string("command")
	}
	args, _ := e.list("args")
	e.Args = append(e.Args, args...)
	e.table("env", &e.Env, e.dialect.envNumber)
	e.table("environment", &e.Env, false)
	e.envFile = e.string("envFile")
	e.written = e.envFile
	e.Dir = e.string("cwd")
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

// inherited takes the variables that Codex hands on to a child.
func (e *entry) inherited() {
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

// remote takes the keys of a server that is reached over HTTP.
func (e *entry) remote() {
	for _, key := range []string{"url", "serverUrl", "httpUrl", "baseUrl"} {
		address := e.string(key)
		if address != "" && e.URL != "" {
			e.problem("%q is one address too many: keep one", key)
		}
		if address != "" {
			e.URL = address
		}
	}
	e.table("headers", &e.Headers, false)
	e.table("http_headers", &e.Headers, false)
	e.table("env_http_headers", &e.fromEnv, false)
	e.bearer = e.string("bearer_token_env_var")
	for _, key := range []string{"headersHelper", "http_headers_helper"} {
		if command := e.string(key); command != "" {
			e.HeadersHelper = command
		}
	}
}

// own takes the keys that no other client has.
func (e *entry) own() {
	e.take("needs", &e.Needs, "an object with lists of names")
	e.Prefix = e.string("prefix")
	e.Protocol = e.string("protocol")
	e.Eager = e.flag("eager")
	e.NoInstructions = e.flag("noInstructions")
}

// transport checks that the server is reached in a way that we know.
func (e *entry) transport() {
	given := ""
	for _, key := range []string{"type", "transport", "transportType"} {
		if value := e.string(key); value != "" {
			given = value
		}
	}
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
