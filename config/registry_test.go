package config

import (
	"fmt"
	"testing"

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
		{`{"registryType": "pypi", "registryBaseUrl": "https://pypi.org/", "identifier": "weather", "version": "1.0"}`, `uvx ["weather@1.0"] map[]`},
		{`{"registryType": "npm", "identifier": "@a/weather", "runtimeArguments": [{"type": "named", "name": "--quiet", "value": "1"}]}`, `npx ["-y" "--quiet" "1" "@a/weather"] map[]`},
		{
			`{"registryType": "oci", "identifier": "a/weather", "version": "1.0", "environmentVariables": [{"name": "B", "value": "b"}, {"name": "A", "default": "a"}, {"name": "C"}]}`,
			`docker ["run" "-i" "--rm" "-e" "A" "-e" "B" "a/weather:1.0"] map[A:a B:b]`,
		},
		{`{"registryType": "oci", "identifier": "ghcr.io:443/a/weather:2.0", "version": "1.0"}`, `docker ["run" "-i" "--rm" "ghcr.io:443/a/weather:2.0"] map[]`},
		{`{"registryType": "nuget", "identifier": "x"}, {"registryType": "npm", "identifier": "y", "transport": {"type": "sse"}}, {"registryType": "npm", "identifier": "z"}`, `npx ["-y" "z"] map[]`},
		{
			`{"registryType": "npm", "identifier": "x", "packageArguments": [{"type": "positional", "valueHint": "folder", "isRequired": true, "choices": ["a", "b"]}, {"type": "named", "name": "--$", "value": "$5"}]}`,
			`npx ["-y" "x" "answer" "--$" "$5"] map[]`,
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
		`{"name": "a/x", "packages": [{"registryType": "npm", "registryBaseUrl": "https://npm.corp", "identifier": "x"}]}`:                        `packages of the registry "https://npm.corp" are not supported: want "https://registry.npmjs.org"`,
		`{"name": "a/x", "packages": [{"registryType": "nuget", "identifier": "x"}]}`:                                                             "there is no remote, and no package of npm, PyPI or a registry of images",
		`{"name": "a/x", "packages": {"npm": "x"}}`:                                                                                               `"packages" is not as a server.json has it`,
		`{"name": "a/x", "remotes": [{"type": "sse", "url": "https://x/${A}"}]}`:                                                                  `"${" has no meaning in a server.json`,
		`{"name": "a/x", "remotes": [{"type": "sse", "url": "https://x", "headers": [{"name": "H", "value": "\u0024{file:/etc/passwd}"}]}]}`:      `"${" has no meaning in a server.json`,
		`{"name": "a/x", "remotes": [{"type": "sse", "url": "https://x/{b}{c}", "variables": {"b": {"default": "$"}, "c": {"default": "{A}"}}}]}`: `"${" has no meaning in a server.json`,
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
