package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// problem records why the server can't be used. Nothing in it may be a secret.
func (e *entry) problem(format string, args ...any) {
	e.problems = append(e.problems, text.Bounded(fmt.Errorf(format, args...)))
}

// take sets *into to the value of key and reports whether there is one. null is as
// good as none. want says what kind of value it must be.
func (e *entry) take(key string, into any, want string) bool {
	raw, ok := e.values[key]
	delete(e.values, key)
	if !ok || string(raw) == "null" {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		e.problem("%q is a JSON %s, want %s", key, kind(raw), want)
		return false
	}
	if kind(raw) == "object" {
		if _, err := parseObject(raw); err != nil { // a key is there twice
			e.problem("%q: %w", key, err)
			return false
		}
	}
	return true
}

func (e *entry) string(key string) (value string) {
	e.take(key, &value, "a string")
	return value
}

// list returns a list of strings, and whether it is there.
func (e *entry) list(key string) (values []string, ok bool) {
	var given []*string
	if !e.take(key, &given, "a list of strings") {
		return nil, false
	}
	for _, value := range given {
		if value == nil {
			e.problem("%q has a null, want a list of strings", key)
			return nil, false
		}
		values = append(values, *value)
	}
	return values, true
}

// table adds the strings of an object to *into. A null is left out.
func (e *entry) table(key string, into *map[string]string, numbers bool) {
	var given map[string]json.RawMessage
	if !e.take(key, &given, "an object") {
		return
	}
	if *into == nil {
		*into = make(map[string]string)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var value string
		switch raw := given[name]; {
		case string(raw) == "null":
		case json.Unmarshal(raw, &value) == nil:
			(*into)[name] = value
		case numbers && kind(raw) == "number":
			(*into)[name] = string(raw)
		default:
			e.problem("%q has a JSON %s, want strings", key, kind(raw))
		}
	}
}

// open puts the members of key, whose value is an object, in its place: "timeout.startup"
// and "timeout.request" for "timeout". It returns these keys in their order.
func (e *entry) open(key string) (keys []string) {
	members, err := parseObject(e.values[key])
	if err != nil {
		e.problem("%q: %w", key, err)
	}
	delete(e.values, key)
	for _, name := range members.names {
		keys = append(keys, key+"."+name)
		e.values[key+"."+name] = members.values[name]
	}
	return keys
}

// kind returns what a JSON value is. None is null.
func kind(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
