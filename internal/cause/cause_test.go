package cause

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// The causes of errors. Those of npm, Node.js 20 and Python 3.11 are as these programs left them;
// those of npm 6, uv and Docker are from memory.
func TestOf(t *testing.T) {
	t.Parallel()
	ended := func(words string) error { return fmt.Errorf("exit status 1; its last words: %q", words) }
	reach := func(err error) error {
		return fmt.Errorf("initialize: transport error: %w", fmt.Errorf("the connection failed: %w", err))
	}
	for _, test := range []struct {
		err  error
		want Cause
	}{
		{nil, Cause{}},
		{fmt.Errorf("server %q %w", "x", ErrNoLogin), Cause{Token, "it wants a token in its headers, and names no place to log in"}},
		{fmt.Errorf("%w by server %q", ErrToken, "x"), Cause{Token, "the token in its header was refused"}},
		{&exec.Error{Name: "posgres-mcp", Err: exec.ErrNotFound}, Cause{Program, "program not found: posgres-mcp"}},
		{fmt.Errorf(`tool "query": its server is down: %w`, &exec.Error{Name: "posgres-mcp", Err: exec.ErrNotFound}), Cause{Program, "program not found: posgres-mcp"}},
		{&fs.PathError{Op: "fork/exec", Path: "/opt/nowhere/mcp", Err: fs.ErrNotExist}, Cause{Program, "program not found: /opt/nowhere/mcp"}},
		{&fs.PathError{Op: "fork/exec", Path: "/etc/passwd", Err: fs.ErrPermission}, Cause{Program, "the program can't be started: fork/exec /etc/passwd: permission denied"}},
		{&fs.PathError{Op: "open", Path: "/etc/shadow", Err: fs.ErrPermission}, Cause{"", "open /etc/shadow: permission denied"}},
		{errors.New("environment variables not set: TOKEN"), Cause{Unset, "environment variables not set: TOKEN"}},
		{&exec.Error{Name: "npx -y mcp-x", Err: exec.ErrNotFound}, Cause{Line, `its "command" is a whole command line: write "command": "npx", "args": ["-y", "mcp-x"]`}},
		{&fs.PathError{Op: "fork/exec", Path: "npx -y @x/server-x", Err: fs.ErrNotExist}, Cause{Line, `its "command" is a whole command line: write "command": "npx", "args": ["-y", "@x/server-x"]`}},
		{&fs.PathError{Op: "fork/exec", Path: "/my folder/mcp x", Err: fs.ErrNotExist}, Cause{Program, "program not found: /my folder/mcp x"}},
		{errors.New(`its folder "/nowhere" is not there`), Cause{Folder, `its folder "/nowhere" is not there`}},
		{ended("npm error code E404 npm error 404 Not Found - GET https://registry.example/@x%2fserver-calender npm error 404 npm error 404 The requested resource '@x/server-calender@*' could not be found or you do not have permission to access it. npm error 404 npm error 404 Note that you can also install from a npm error 404 tarball, folder, http url, or git url. npm error A complete log of this run can be found in: /home/user/.npm/_logs/2026-11-28T18_43_49_630Z-debug-0.log"),
			Cause{Package, "npm: package not found (404): @x/server-calender"}},
		{ended("npm ERR! code E404 npm ERR! 404 Not Found - GET https://registry.example/nope npm ERR! 404  'nope@*' is not in this registry."), Cause{Package, "npm: package not found (404): nope"}},
		{ended("npm error code ETARGET npm error notarget No matching version found for @x/server-memory@99.0.0. npm error notarget In most cases"), Cause{Package, "npm: the package has no such version: @x/server-memory@99.0.0"}},
		{ended("npm error code ECONNREFUSED npm error syscall connect"), Cause{Registry, "npm: the registry can't be reached (ECONNREFUSED)"}},
		{ended("npm error code EOTHER npm error what"), Cause{Package, "npm: it failed (EOTHER)"}},
		{ended("× No solution found when resolving tool dependencies: ╰─▶ Because mcp-nope was not found in the package registry and you require mcp-nope, we can conclude that your requirements are unsatisfiable."), Cause{Package, "uv: package not found: mcp-nope"}},
		{ended("╰─▶ Because there is no version of mcp-time==99 and you require mcp-time==99"), Cause{Package, "uv: the package has no such version: mcp-time==99"}},
		{ended("Unable to find image 'mcp/nope:latest' locally docker: Error response from daemon: pull access denied for mcp/nope, repository does not exist or may require 'docker login'"), Cause{Package, "docker: image not found: mcp/nope"}},
		{ended("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"), Cause{Package, "docker: its daemon does not run"}},
		{ended("Error: JIRA_TOKEN is not set. Set it to your API token."), Cause{Exit, "it ended: Error: JIRA_TOKEN is not set. Set it to your API token."}},
		{ended("node:internal/modules/cjs/loader:1210 throw err; ^ Error: Cannot find module '/nowhere/x.js' at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15) at node:internal/main/run_main_module:28:49 { code: 'MODULE_NOT_FOUND', requireStack: [] } Node.js v20.20.2"),
			Cause{Exit, "it ended: Error: Cannot find module '/nowhere/x.js'"}},
		{ended("[eval]:1 throw new Error('Cannot connect to database at db:5432') ^ Error: Cannot connect to database at db:5432 at [eval]:1:7 at runScriptInThisContext (node:internal/vm:209:10)"), Cause{Exit, "it ended: Error: Cannot connect to database at db:5432"}},
		{ended("Traceback (most recent call last): File \"a.py\", line 1 KeyError: 'x' During handling of the above exception, another exception occurred: Traceback (most recent call last): File \"<string>\", line 1, in <module> ModuleNotFoundError: No module named 'nothere'"), Cause{Exit, "it ended: ModuleNotFoundError: No module named 'nothere'"}},
		{ended("node:internal/modules/esm/resolve:873 throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null); ^ Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /home/user/.npm/_npx/3dfbf5a9eea4a1b3/node_modules/@modelcontextprotocol/sdk/dist/esm/types.js at Object.getPackageJSONURL (node:internal/modules/package_json_reader:266:9)"),
			Cause{Broken, "npx did not install all of it, or was ended meanwhile: remove the folder /home/user/.npm/_npx/3dfbf5a9eea4a1b3 and start it again"}},
		{ended(`node:internal/modules/cjs/loader:1210 throw err; ^ Error: Cannot find module 'ajv' Require stack: - C:\Users\Ann Lee\AppData\Local\npm-cache\_npx\3dfbf5a9eea4a1b3\node_modules\x\index.js at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)`),
			Cause{Broken, `npx did not install all of it, or was ended meanwhile: remove the folder C:\Users\Ann Lee\AppData\Local\npm-cache\_npx\3dfbf5a9eea4a1b3 and start it again`}},
		{ended("started /usr/bin/x and failed: MODULE_NOT_FOUND in /usr/lib and /home/user/.npm/_npx/3dfbf5a9eea4a1b3/node_modules"), Cause{Broken, "npx did not install all of it, or was ended meanwhile: remove the folder /home/user/.npm/_npx/3dfbf5a9eea4a1b3 and start it again"}},
		{ended("Error: Cannot find module '/home/user/.npm/_npx/3dfbf5a9eea4a1b3/node_modules/x/dist/index.js' at Module._resolveFilename"), Cause{Broken, "npx did not install all of it, or was ended meanwhile: remove the folder /home/user/.npm/_npx/3dfbf5a9eea4a1b3 and start it again"}},
		{ended("npm error code ENOTEMPTY npm error syscall rename npm error path /home/user/.npm/_npx/3dfbf5a9eea4a1b3/node_modules/zod npm error dest /home/user/.npm/_npx/3dfbf5a9eea4a1b3/node_modules/.zod-KpBKOTIj"), Cause{Broken, "npx did not install all of it, or was ended meanwhile: remove the folder /home/user/.npm/_npx/3dfbf5a9eea4a1b3 and start it again"}},
		{ended("Error: TOKEN is not set at file:///home/user/.npm/_npx/3dfbf5a9eea4a1b3/node_modules/x/dist/index.js:12:3"), Cause{Exit, "it ended: Error: TOKEN is not set"}},
		{ended("ls: unrecognized option '--nope' Try 'ls --help' for more information."), Cause{Exit, "it ended: ls: unrecognized option '--nope' Try 'ls --help' for more information."}},
		{fmt.Errorf("%w: %q (the process ended)", ErrOutput, `say "hi" (exit status 1)`), Cause{Output, `what it writes to its standard output is no MCP message: "say \"hi\" (exit status 1)"`}},
		{fmt.Errorf("%w: \"it was cut…", ErrOutput), Cause{Output, `what it writes to its standard output is no MCP message: "it was cut…`}},
		{fmt.Errorf("%w: %q (no answer within 3s: %w)", ErrOutput, "hello", context.DeadlineExceeded), Cause{Output, `what it writes to its standard output is no MCP message: "hello"`}},
		{errors.New("exit status 1"), Cause{Exit, "it ended without a word (exit status 1)"}},
		{errors.New("initialize: transport error: the connection failed: signal: killed"), Cause{Killed, "it was ended (signal: killed)"}},
		{errors.New(`signal: killed; its last words: "Knowledge Graph MCP Server running on stdio"`), Cause{Killed, "it was ended (signal: killed)"}},
		{errors.New(`signal: aborted; its last words: "RuntimeError: no disk"`), Cause{Exit, "it ended: RuntimeError: no disk"}},
		{errors.New(`the process ended; its last words: "Server running"`), Cause{Exit, "it ended without an error, and said last: Server running"}},
		{errors.New("the process ended"), Cause{Exit, "it ended without a word (the process ended)"}},
		{errors.New(`exit status 1; its last words: "fatal: no dis…`), Cause{Exit, "it ended: fatal: no dis…"}},
		{fmt.Errorf("no answer within 3s: initialize: transport error: %w", context.DeadlineExceeded), Cause{Timeout, "no answer within 3s"}},
		{reach(&net.DNSError{Err: "no such host", Name: "no-such-host.invalid", Server: "10.0.0.1:53"}), Cause{Address, "no such host: no-such-host.invalid"}},
		{reach(errors.New("dial tcp 127.0.0.1:18992: connect: connection refused")), Cause{Address, "nobody answers at 127.0.0.1:18992"}},
		{reach(errors.New("tls: first record does not look like a TLS handshake")), Cause{Address, "tls: first record does not look like a TLS handshake"}},
		{errors.New("initialize: transport error: server returned 4xx for initialize POST, likely a legacy SSE server; and over the older transport: unexpected status code: 404"), Cause{Status, `its address answers with status 404, so the path of its "url" may be wrong: most servers are at /mcp, older ones at /sse`}},
		{errors.New("initialize: transport error: request failed with status 500: <!DOCTYPE html>"), Cause{Status, "its address answers with status 500"}},
		{errors.New("initialize: transport error: unexpected content type: text/html"), Cause{Foreign, "what answers is no MCP server"}},
		{errors.New("initialize: internal error: unsupported request method: initialize"), Cause{Foreign, "what answers is no MCP server"}},
		{errors.New("the connection failed: the event stream ended: EOF"), Cause{Foreign, "what answers is no MCP server"}},
		{errors.New("mcphybrid: tools/list result: no disk"), Cause{"", "tools/list result: no disk"}},
	} {
		assert.Equal(t, test.want, Of(test.err), "%v", test.err)
	}
	assert.Len(t, []rune(Of(ended(strings.Repeat("no disk ", 200))).What), MaxWhat)
}

// Whatever a program writes, its cause is one short line.
func FuzzOf(f *testing.F) {
	for _, words := range []string{"", "npm error code E404 '@a/b@*' could not be found", "Traceback (most recent call last) AError: x BError: y", `"`, "Error: \x1b[31m\n# x", "pull access denied for \u202e"} {
		f.Add(words, true)
		f.Add(words, false)
	}
	f.Fuzz(func(t *testing.T, words string, quoted bool) {
		err := errors.New("exit status 1; its last words: \"" + words)
		if quoted {
			err = fmt.Errorf("exit status 1; its last words: %q", words)
		}
		for _, err := range []error{err, errors.New(words)} {
			c := Of(err)
			if utf8.RuneCountInString(c.What) > MaxWhat || strings.ContainsAny(c.What, "\n\r\x1b\u202e") || strings.HasPrefix(err.Error(), "exit status 1") && c.Kind == "" {
				t.Fatalf("%+q of %+q", c.What, err)
			}
		}
	})
}

// A command that is a line has to be split if its first word is a program, or could be one.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"sh -c":                     `its "command" is a whole command line: write "command": "sh", "args": ["-c"]`,
		"/bin/sh -c true":           `its "command" is a whole command line: write "command": "/bin/sh", "args": ["-c", "true"]`,
		"no-such-program /a/folder": `its "command" is a whole command line: write "command": "no-such-program", "args": ["/a/folder"]`,
		"/no/such program":          "program not found: /no/such program",
		"no-such-program":           "program not found: no-such-program",
		"":                          "program not found: ",
	} {
		assert.Equal(t, want, noProgram(command).What)
	}
}

// The folder that npx left half installed is whole: without words before it, and with spaces in it.
func TestBrokenFolders(t *testing.T) {
	t.Parallel()
	const lost = "Cannot find module 'x' "
	for words, want := range map[string]string{
		lost + "/home/ann/.npm/_npx/3dfbf5a9eea4a1b3/node_modules":             "/home/ann/.npm/_npx/3dfbf5a9eea4a1b3",
		lost + "/nowhere is /home/ann/.npm/_npx/3dfbf5a9eea4a1b3/node_modules": "/home/ann/.npm/_npx/3dfbf5a9eea4a1b3",
		lost + `C:\Users\Ann /Lee\_npx\3dfbf5a9eea4a1b3\node_modules`:          `C:\Users\Ann /Lee\_npx\3dfbf5a9eea4a1b3`,
		lost + "/home/ann lee/.npm/_npx/3dfbf5a9eea4a1b3":                      "/home/ann lee/.npm/_npx/3dfbf5a9eea4a1b3",
		lost + "/home/ann/.npm/_npx/3dfbf5a/":                                  "",
		lost:                                                                   "", "/home/ann/.npm/_npx/3dfbf5a9eea4a1b3": "",
	} {
		assert.Equal(t, want, brokenFolder(words), words)
	}
}
