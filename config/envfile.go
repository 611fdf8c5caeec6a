package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
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
		text := nothing.FindString(data)
		if text == "" {
			m := assignment.FindStringSubmatch(data)
			if m == nil {
				return nil, fmt.Errorf("line %d: want NAME=value", number)
			}
			name, quoted, value := m[1], m[2], m[3]
			switch {
			case quoted == "" && value != "" && strings.Contains("\"'`", value[:1]):
				return nil, fmt.Errorf("line %d: the value of %s has no closing quote", number, nameOfVariable(name))
			case quoted == "":
				value, _, _ = strings.Cut(value, " #")
				value = strings.TrimSpace(value)
			case quoted[0] == '"':
				value = escapes.Replace(quoted[1 : len(quoted)-1])
			default:
				value = quoted[1 : len(quoted)-1]
			}
			variables[name] = value
			text = m[0]
		}
		data, number = data[len(text):], number+strings.Count(text, "\n")
	}
	return variables, nil
}

var (
	nothing    = regexp.MustCompile(`^[ \t\r]*(?:#[^\n]*)?(?:\n|\z)`)
	assignment = regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?([^=\s\x00]+)[ \t]*=[ \t]*(?:("(?:[^"\\]|\\[^\x00])*"|'[^']*'|` + "`[^`]*`" + `)[^\n]*|([^\n]*))\n?`)
	escapes    = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`)
)
