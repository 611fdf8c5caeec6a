// Package cause says in a few words why a server is not ready, for people: it tells the cause
// from what programs write around it. It must not know the Manager.
package cause

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Cause is why a server is not ready.
type Cause struct {
	Kind string // one of the constants, or "" if it is none of them
	What string // a line of at most MaxWhat characters; "" if nothing is wrong
}

// The kinds of causes.
const (
	Unset    = "unset"    // references in its configuration need variables that are not set
	Program  = "program"  // its program can't be started
	Line     = "line"     // its command is a whole command line
	Folder   = "folder"   // the folder to start it in is not there
	Package  = "package"  // the launcher, such as npx, does not get it: its name, its version
	Registry = "registry" // the launcher does not reach the registry
	Broken   = "broken"   // what the launcher installed earlier is not whole
	Token    = "token"    // the token in its configuration was refused, or it has none and there is no login
	Login    = "login"    // a person has to log in
	Status   = "status"   // its address answers with an error status
	Timeout  = "timeout"  // it does not answer in time
	Address  = "address"  // nobody answers at its address
	Foreign  = "foreign"  // what answers is no MCP server
	Output   = "output"   // its program writes what is no MCP message to its standard output
	Exit     = "exit"     // its program ended by itself
	Killed   = "killed"   // its program was ended by a signal
)

// UnsetVariables begins the error of a configuration whose variables are not set.
const UnsetVariables = "environment variables not set: "

// MaxWhat is how long What may be, in characters.
const MaxWhat = 300

// ErrToken is within the error of a server that refuses the token in its configuration.
var ErrToken = errors.New("the token in its header was refused")

// ErrNoLogin is within the error of a server that refuses requests without a token.
var ErrNoLogin = errors.New("wants a token in its headers, and names no place to log in")

// ErrOutput is within the error of a program that says something else on its standard output than
// an answer. What it says follows, quoted.
var ErrOutput = errors.New("what it writes to its standard output is no MCP message")

// Of returns why a server that failed with err is not ready. Logins are for the caller to know.
func Of(err error) Cause {
	if err == nil {
		return Cause{}
	}
	if e := new(explained); errors.As(err, &e) {
		return e.cause
	}
	said := textOf(err)
	c := Cause{What: bare(said)}
	var (
		notThere *fs.PathError
		host     *net.DNSError
	)
	status, words, ended := exited(said)
	switch {
	case strings.HasPrefix(c.What, UnsetVariables):
		c.Kind = Unset
	case errors.Is(err, ErrToken):
		c = Cause{Token, ErrToken.Error()}
	case errors.Is(err, ErrNoLogin):
		c = Cause{Token, "it " + ErrNoLogin.Error()}
	case errors.Is(err, ErrOutput):
		c = Cause{Output, quotedAfter(said, ErrOutput.Error()+": ")}
	case errors.Is(err, exec.ErrNotFound):
		c.Kind = Program
		if name, ok := programIn(said); ok {
			c = noProgram(name)
		}
	case errors.As(err, &notThere) && notThere.Op == "fork/exec" && errors.Is(notThere, fs.ErrNotExist):
		c = noProgram(notThere.Path)
	case errors.As(err, &notThere) && notThere.Op == "fork/exec":
		c = Cause{Program, "the program can't be started: " + notThere.Error()}
	case strings.HasPrefix(said, "its folder "):
		c.Kind = Folder
	case ended:
		c = ofExit(status, words)
	case errors.Is(err, context.DeadlineExceeded):
		c.Kind = Timeout
		c.What, _, _ = strings.Cut(c.What, ": ")
	case errors.As(err, &host):
		c = Cause{Address, "no such host: " + host.Name}
	case ofLogin.MatchString(c.What): // its status is another address's
	case statusIn.MatchString(said):
		c = ofStatus(statusIn.FindStringSubmatch(said)[1])
	case strings.Contains(said, "unexpected content type") || strings.Contains(said, "unsupported request method: initialize") || strings.Contains(said, "the event stream ended: EOF"):
		c = Cause{Foreign, "what answers is no MCP server"}
	case strings.Contains(said, "tls: "):
		c.Kind = Address
	case refused.MatchString(said):
		c = Cause{Address, "nobody answers at " + refused.FindStringSubmatch(said)[1]}
	}
	c.What = text.Line(c.What, MaxWhat)
	return c
}

var (
	statusIn = regexp.MustCompile(`status(?: code)?:? (\d{3})\b`)
	ofLogin  = regexp.MustCompile(`^(?:refreshing the token|asking "[^"]*" for a token of the client "[^"]*"): `)
	refused  = regexp.MustCompile(`dial tcp (\S+): \w+: (?:connection refused|no route to host|connection timed out|network is unreachable)`)
	layers   = regexp.MustCompile(`^(?:mcphybrid: |initialize: |transport error: |the connection failed: )+`)
)

// maxSaid is how many bytes of an error are searched for its cause, half of them at each end. A
// server may have written megabytes of it.
const maxSaid = 64 << 10

// textOf returns the text of err, without the middle of a long one.
func textOf(err error) string {
	said := err.Error()
	if len(said) <= maxSaid {
		return said
	}
	return strings.ToValidUTF8(said[:maxSaid/2], "") + "…" + strings.ToValidUTF8(said[len(said)-maxSaid/2:], "")
}

// bare returns an error's text without the names of the layers that it came through.
func bare(said string) string { return layers.ReplaceAllString(said, "") }

// quotedAfter returns begin and the quoted text that follows it in said.
func quotedAfter(said, begin string) string {
	_, rest, _ := strings.Cut(said, begin)
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		rest = quoted
	}
	return begin + rest
}

// programIn returns the program that a text of os/exec names, wherever that is in said. The
// error itself may have secrets, which its text has no more.
func programIn(said string) (name string, ok bool) {
	_, named, _ := strings.Cut(said, "exec: ")
	quoted, err := strconv.QuotedPrefix(named)
	name, _ = strconv.Unquote(quoted)
	return name, err == nil
}

// ofStatus returns why an address answers with a status.
func ofStatus(status string) Cause {
	what := "its address answers with status " + status
	if status == "404" || status == "405" {
		what += `, so the path of its "url" may be wrong: most servers are at /mcp, older ones at /sse`
	}
	return Cause{Status, what}
}

// noProgram returns why a command was not found. A command line, of which the first word is a
// program, or could be one, has to be split.
func noProgram(command string) Cause {
	if words := strings.Fields(command); len(words) > 1 {
		_, err := exec.LookPath(words[0])
		if err == nil || !strings.ContainsAny(words[0], `/\`) {
			var args []string
			for _, word := range words[1:] {
				quoted, _ := json.Marshal(word)
				args = append(args, string(quoted))
			}
			return Cause{Line, fmt.Sprintf(`its "command" is a whole command line: write "command": %q, "args": [%s]`, words[0], strings.Join(args, ", "))}
		}
	}
	return Cause{Program, "program not found: " + command}
}

// quietly is how a process ended that said it had no error.
const quietly = "the process ended"

var exit = regexp.MustCompile(`(exit status \w+|signal: [\w/]+(?: [\w/]+)*(?: \(core dumped\))?|` + quietly + `)(?:; its last words: (".*))?`)

// exited takes the error of a process that has ended apart.
func exited(said string) (status, words string, ok bool) {
	m := exit.FindStringSubmatch(said)
	if m == nil {
		return "", "", false
	}
	words = m[2]
	if quoted, err := strconv.QuotedPrefix(words); err == nil {
		words, _ = strconv.Unquote(quoted)
	} else {
		words = strings.Trim(words, `"`) // it was cut
	}
	return m[1], words, true
}

// ofExit returns why a program ended.
func ofExit(status, words string) Cause {
	if folder := brokenFolder(words); folder != "" {
		return Cause{Broken, "npx did not install all of it, or was ended meanwhile: remove the folder " + folder + " and start it again"}
	}
	for _, find := range []func(string) string{npm, uv, docker} {
		if what := find(words); strings.Contains(what, unreached) {
			return Cause{Registry, what}
		} else if what != "" {
			return Cause{Package, what}
		}
	}
	what, isError := complaint(words)
	switch {
	case strings.HasPrefix(status, "signal: ") && !isError: // what it said last is no reason
		return Cause{Killed, fmt.Sprintf("it was ended (%s)", status)}
	case what == "":
		return Cause{Exit, fmt.Sprintf("it ended without a word (%s)", status)}
	case status == quietly && !isError:
		return Cause{Exit, "it ended without an error, and said last: " + what}
	}
	return Cause{Exit, "it ended: " + what}
}

var (
	npmCode    = regexp.MustCompile(`npm (?:error|ERR!) code (E\w+)`)
	npmPackage = regexp.MustCompile(`'((?:@[\w.~-]+/)?[\w.~-]+)@[^']*' (?:could not be found|is not in)|No matching version found for (\S+?)\.? `)
	npmCodes   = map[string]string{
		"E404": "package not found (404)", "ETARGET": "the package has no such version", "E401": "the registry wants a login (401)", "E403": "the registry refuses the package (403)",
		"ECONNREFUSED": unreached + " (ECONNREFUSED)", "ENOTFOUND": unreached + " (ENOTFOUND)", "EAI_AGAIN": unreached + " (EAI_AGAIN)",
		"ETIMEDOUT": unreached + " (ETIMEDOUT)", "ECONNRESET": unreached + " (ECONNRESET)", "ENOSPC": "the disk is full", "EACCES": "no permission to write to its folder",
	}
)

func npm(words string) string {
	m := npmCode.FindStringSubmatch(words)
	if m == nil {
		return ""
	}
	what, known := npmCodes[m[1]]
	if !known {
		what = "it failed (" + m[1] + ")"
	}
	if m := npmPackage.FindStringSubmatch(words); m != nil {
		what += ": " + m[1] + m[2]
	}
	return "npm: " + what
}

var (
	// npxFolder matches where npx installs a package, in a text that has lost its line breaks.
	npxFolder = regexp.MustCompile(`((?:\b[A-Za-z]:)?[/\\][^'"():\x60]*?[/\\]_npx[/\\][0-9a-f]{8,})(?:[/\\'"]| |$)`)
	// missing matches what programs and npm say of a folder that is not whole.
	missing = regexp.MustCompile(`MODULE_NOT_FOUND|Cannot find (?:module|package) '|npm (?:error|ERR!) code (?:ENOTEMPTY|ENOENT|EEXIST)\b`)
)

// brokenFolder returns the folder in which npx left a package that is not whole, or "".
func brokenFolder(words string) string {
	if !missing.MatchString(words) {
		return ""
	}
	m := npxFolder.FindStringSubmatch(words)
	if m == nil {
		return ""
	}
	if i := strings.LastIndex(m[1], " /"); i >= 0 && m[1][0] == '/' {
		return m[1][i+1:]
	}
	return m[1]
}

// unreached ends what npm says of a registry that can't be reached.
const unreached = "the registry can't be reached"

var (
	uvMissing     = regexp.MustCompile(`Because (\S+) was not found in the package registry`)
	uvVersion     = regexp.MustCompile(`Because there is no version of (\S+)`)
	dockerMissing = regexp.MustCompile(`pull access denied for ([^ ,]+)|manifest for (\S+) not found`)
)

func uv(words string) string {
	if m := uvMissing.FindStringSubmatch(words); m != nil {
		return "uv: package not found: " + m[1]
	}
	if m := uvVersion.FindStringSubmatch(words); m != nil {
		return "uv: the package has no such version: " + m[1]
	}
	return ""
}

func docker(words string) string {
	if m := dockerMissing.FindStringSubmatch(words); m != nil {
		return "docker: image not found: " + m[1] + m[2]
	}
	if strings.Contains(words, "Cannot connect to the Docker daemon") {
		return "docker: its daemon does not run"
	}
	return ""
}

var (
	// raised matches an error as Node.js and Python print it: its kind, and what follows.
	raised = regexp.MustCompile(`(?:^| )((?:[A-Z]\w*)?(?:Error|Exception)(?: \[\w+\])?: \S.*)`)
	// traced matches where such an error was raised.
	traced = regexp.MustCompile(` at (?:async |new )?(?:\S+ (?:\[[^\]]*\] )?\(|\[eval\]|node:|file:|/|[A-Z]:\\)| \{ (?:code|errno)|: \{ `)
)

// complaint returns what a program said last, and whether that is an error as Node.js and Python
// print it: then without the trace of where it was raised.
func complaint(words string) (what string, isError bool) {
	m := raised.FindStringSubmatch(words)
	if m == nil {
		return words, false
	}
	what = m[1]
	if strings.Contains(words, "Traceback (most recent call last)") {
		for { // the last error is the one that was not handled
			_, rest, _ := strings.Cut(what, " ")
			next := raised.FindStringSubmatch(rest)
			if next == nil {
				return what, true
			}
			what = next[1]
		}
	}
	if at := traced.FindStringIndex(what); at != nil {
		what = what[:at[0]]
	}
	return what, true
}
