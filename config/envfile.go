package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
)

// readEnvFile adds the variables of the file to Env, which wins.
func (e *entry) readEnvFile() {
	if e.envFile == "" {
		return
	}
	path := e.envFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.folder, path)
	}
	data, err := readSideFile(path)
	var variables map[string]string
	if err == nil {
		variables, err = parseEnv(string(data))
	}
	if err != nil {
		e.problem(`"envFile" %q: %w`, e.written, err)
		return
	}
	maps.Copy(variables, e.Env)
	e.Env = variables
}

// parseEnv reads lines NAME=value. White space around the name and the value does
// not count, nor do empty lines, comments and a leading "export". In double quotes,
// \n, \r, \t, \" and \\ are escapes, and in both kinds of quotes a value may have
// several lines. Outside of quotes, " #" begins a comment. Nothing is expanded: a $
// in a password stays.
func parseEnv(data string) (map[string]string, error) {
	variables := make(map[string]string)
	data = strings.TrimPrefix(strings.ReplaceAll(data, "\r\n", "\n"), "\ufeff")
	for number := 1; data != ""; {
		line, next, _ := strings.Cut(data, "\n")
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			data, number = next, number+1
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		if !ok || name == "" || strings.ContainsAny(name, " \t\x00") {
			return nil, fmt.Errorf("line %d: want NAME=value", number)
		}
		_, value, _ := strings.Cut(data, "=")
		value = strings.TrimLeft(value, " \t")
		if value != "" && strings.IndexByte("\"'`", value[0]) >= 0 {
			quote, end := value[0], closing(value)
			if end < 0 {
				return nil, fmt.Errorf("line %d: the value of %s has no closing quote", number, nameOfVariable(name))
			}
			_, next, _ = strings.Cut(value[end:], "\n") // what follows the quote does not count
			value = value[1:end]
			number += strings.Count(value, "\n")
			if quote == '"' {
				value = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(value)
			}
		} else {
			value, _, _ = strings.Cut(value, "\n")
			value, _, _ = strings.Cut(value, " #")
			value = strings.TrimSpace(value)
		}
		variables[name] = value
		data, number = next, number+1
	}
	return variables, nil
}

// closing returns where the quote with which value begins ends, or -1.
func closing(value string) int {
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case value[0]:
			return i
		case '\\':
			if value[0] == '"' {
				i++
			}
		}
	}
	return -1
}
