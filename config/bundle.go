package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// A bundle is the manifest.json of an MCP bundle (.mcpb).
type bundle struct {
	Name   string
	Server struct {
		Launch launch `json:"mcp_config"`
	}
	Settings map[string]setting `json:"user_config"`
}

// A launch is how a bundle's server is started.
type launch struct {
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env"`
	Platforms map[string]launch `json:"platform_overrides"`

	others map[string]json.RawMessage // read as in other files
}

// UnmarshalJSON also keeps what bundles do not define, such as what switches tools off.
func (l *launch) UnmarshalJSON(data []byte) error {
	type plain launch
	err := json.Unmarshal(data, (*plain)(l))
	err = cmp.Or(err, json.Unmarshal(data, &l.others))
	for _, own := range []string{"command", "args", "env", "platform_overrides"} {
		maps.DeleteFunc(l.others, func(key string, _ json.RawMessage) bool { return strings.EqualFold(key, own) })
	}
	return err
}

// A setting is what a bundle's user may say.
type setting struct {
	Title, Description string
	Sensitive          bool
	Default            json.RawMessage // may be a list
}

var settingReference = regexp.MustCompile(`\$\{user_config\.([^{}]*)\}`)

// bundleFolders are folders that bundles can name.
var bundleFolders = strings.NewReplacer("${HOME}", "${userHome}", "${DESKTOP}", "${userHome}/Desktop", "${DOCUMENTS}", "${userHome}/Documents", "${DOWNLOADS}", "${userHome}/Downloads")

// readBundle reads the manifest of a bundle. A setting becomes its default, or an input
// if it has none.
func readBundle(top object, _ *notes) (object, error) {
	var b bundle
	manifest, _ := json.Marshal(top.values)
	if json.Unmarshal(manifest, &b) != nil {
		return object{}, errors.New(`want "command", "args" and "env" in "server.mcp_config", and an object for each member of "user_config"`)
	}
	var err error
	fill := func(s string) string {
		return settingReference.ReplaceAllStringFunc(bundleFolders.Replace(s), func(reference string) string {
			name := settingReference.FindStringSubmatch(reference)[1]
			values := b.Settings[name].values()
			if len(values) > 1 {
				err = fmt.Errorf(`"user_config": %q has several values, and these must be arguments of their own`, name)
			}
			return append(values, "${input:user_config."+name+"}")[0]
		})
	}
	run := b.Server.Launch.here()
	var args []string
	for _, arg := range run.Args {
		if m := settingReference.FindStringSubmatch(arg); m != nil && m[0] == arg && b.Settings[m[1]].values() != nil {
			args = append(args, b.Settings[m[1]].values()...)
		} else {
			args = append(args, fill(arg))
		}
	}
	server := make(map[string]any)
	for key, raw := range run.others {
		server[key] = raw
		var value string
		if kind(raw) == "string" && json.Unmarshal(raw, &value) == nil {
			server[key] = fill(value)
		}
	}
	for name, value := range run.Env {
		run.Env[name] = fill(value)
	}
	server["command"], server["args"], server["env"] = fill(run.Command), args, run.Env
	var inputs []prompt
	for _, name := range slices.Sorted(maps.Keys(b.Settings)) {
		s := b.Settings[name]
		inputs = append(inputs, prompt{ID: "user_config." + name, Type: "promptString", Description: cmp.Or(s.Description, s.Title), Password: s.Sensitive})
	}
	if err != nil {
		return object{}, err
	}
	return fileWith(b.Name, server, inputs)
}

// here returns l as it is on this platform.
func (l launch) here() launch {
	own := l.Platforms[strings.Replace(runtime.GOOS, "windows", "win32", 1)]
	here := launch{Command: cmp.Or(own.Command, l.Command), Args: l.Args, Env: make(map[string]string), others: make(map[string]json.RawMessage)}
	if own.Args != nil {
		here.Args = own.Args
	}
	maps.Copy(here.Env, l.Env)
	maps.Copy(here.Env, own.Env)
	maps.Copy(here.others, l.others)
	for key, raw := range own.others {
		if kind(raw) != "null" { // null is as good as none
			here.others[key] = raw
		}
	}
	return here
}

// values returns the texts of the default.
func (s setting) values() (values []string) {
	var list []json.RawMessage
	if json.Unmarshal(s.Default, &list) != nil {
		list = []json.RawMessage{s.Default}
	}
	for _, raw := range list {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if kind(raw) != "null" {
			values = append(values, bundleFolders.Replace(text))
		}
	}
	return values
}
