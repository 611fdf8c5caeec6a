package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A level says how bad a finding is.
type level string

const (
	bad     level = "error"   // something does not work
	warning level = "warning" // it works, but somebody should do something
	note    level = "note"    // good to know
)

// A finding is something that a person should know about a file.
type finding struct {
	Level  level  `json:"level"`
	Server string `json:"server"` // its name, or "" if it is about the file
	Kind   string `json:"kind"`
	What   string `json:"what"`
	Advice string `json:"advice"`
}

// A kind is one kind of findings.
type kind struct {
	name   string
	level  level
	advice string
	find   finder
}

// A finder calls tell for each finding of one kind. A teller is told the server, what is
// the matter, and what stands in the places of the advice.
type (
	finder func(c *checkup, tell teller)
	teller func(server, what string, places ...any)
)

// kinds are all kinds of findings, the worst first.
var kinds = []kind{
	{"config", bad, `%s: the server is left out until then`, (*checkup).malformed},
	{"command", bad, `install the program, or write its whole path as "command"`, notReady("command")},
	{"command-line", bad, `split it so: "command" is the program alone`, notReady("command-line")},
	{"login", bad, `run mcphybrid login -config %s %s, or put a token into its headers: "headers": {"Authorization": "Bearer ${TOKEN}"}`, notReady("login")},
	{"token", bad, `put a valid token into its headers: "headers": {"Authorization": "Bearer ${TOKEN}"}`, notReady("token")},
	{"package", bad, `correct the name or version of the package in "args"`, notReady("package")},
	{"half-installed", bad, `remove that folder, and nothing else: npx installs it anew at the next start`, notReady("half-installed")},
	{"registry", bad, `see whether this machine reaches the registry of the launcher, and whether a proxy is set`, notReady("registry")},
	{"output", bad, `see whether "command" and "args" start an MCP server that speaks over standard input and output: some want an argument for that, such as --stdio; its logs belong on standard error`, notReady("output")},
	{"timeout", bad, `run its command by hand to see what it waits for; if it is only slow, raise "timeout"`, notReady("timeout")},
	{"logins", bad, `let your user write there, or name another folder with -tokens`, notReady("logins")},
	{"unreachable", bad, `see whether it runs and whether "url" is right`, notReady("unreachable")},
	{"down", bad, `run its command by hand; it gets only PATH, HOME and the like, so name other variables in "env"`, notReady("down")},
	{"unsaved", warning, `make room there, let your user write there, or name another folder with -tokens; the logins that it has are used, until their tokens have to be refreshed`, (*checkup).unsaved},
	{"secret", warning, `write a reference such as "${%s}" in its place, and set that variable`, (*checkup).plainSecrets},
	{"marks", warning, `read the definition; unless you trust it, write "tools": {"deny": [%s]}`, (*checkup).marked},
	{"instructions", warning, `read them; unless you trust them, write "noInstructions": true`, (*checkup).markedInstructions},
	{"pattern", warning, `correct or remove it: a mistyped pattern permits or forbids nothing`, reported("pattern")},
	{"learned", warning, `name another file with the gateway's -learn, or use the version of mcphybrid that has written this one`, reported("learned")},
	{"definition", warning, `tell the server's author, or update the server: the tool is left out`, reported("definition")},
	{"needs", warning, `correct "needs" in the file`, reported("needs")},
	{"prefix", warning, `give one of them a "prefix" of its own`, (*checkup).collisions},
	{"long-name", warning, `give the server a "prefix" of at most %d letters, digits, _ or -`, renamed(true)},
	{"no-tools", warning, `see whether "tools" permits any, or remove the server`, (*checkup).empty},
	{"key", warning, `correct its spelling or remove it`, keys(true)},
	{"no-servers", warning, `add a server, or switch one on`, (*checkup).noServers},
	{"no-description", note, `ask the server's author for descriptions, or use an enricher; see what a search finds: mcphybrid inspect -config %s -query "…"`, smells("no-description")},
	{"alike", note, `ask the server's author to say what each does, or deny those that you don't need`, smells("alike")},
	{"verb", note, `ask the server's author for a name and a description that say what it is about`, smells("verb")},
	{"output-schema", note, `tell the server's author, or update the server: the tool works, but clients get it without its output schema`, (*checkup).unportable},
	{"slow", note, `nothing, if it was downloaded just now or this machine is busy; if it is slow each time, raise "timeout", or use Options.Cache`, (*checkup).slow},
	{"shortened", note, `nothing: use these names in rules and pins`, renamed(false)},
	{"no-effect", note, `nothing, unless you rely on it: config/KEYS.md has what each key does`, keys(false)},
	{"off", note, `nothing: it is off because the file says so`, (*checkup).off},
}

// findings returns all findings, the worst first. Those of one level are in the order
// of the servers in the file; what is about the file comes first.
func (c *checkup) findings() []finding {
	list := []finding{}
	for _, k := range kinds {
		k.find(c, func(server, what string, places ...any) {
			list = append(list, finding{k.level, server, k.name, what, fmt.Sprintf(k.advice, places...)})
		})
	}
	place := func(f finding) int {
		return slices.IndexFunc(c.servers, func(s mcphybrid.ServerConfig) bool { return s.Name == f.Server })
	}
	levels := []level{bad, warning, note}
	slices.SortStableFunc(list, func(a, b finding) int {
		return cmp.Or(cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level)), cmp.Compare(place(a), place(b)))
	})
	return list
}

func (c *checkup) malformed(tell teller) {
	for _, err := range c.problems {
		server, what := subject(err.Error())
		what, _, _ = strings.Cut(what, ": set a function that does")
		tell(server, what, c.mend(server, what))
	}
}

var (
	meant   = regexp.MustCompile(`^("(?:[^"\\]|\\.)*") is not known here and has no effect; did you mean ("\w+")\?$`)
	inputID = regexp.MustCompile(`^"\$\{input:([^{}]*)\}": `)
)

// mend says how to correct a server that can't be used.
func (c *checkup) mend(server, what string) string {
	for _, text := range c.notes {
		name, note := subject(strings.TrimPrefix(text, c.path+": "))
		if m := meant.FindStringSubmatch(note); m != nil && name == server && strings.HasPrefix(what, neither) {
			return fmt.Sprintf("did you mean %s? Write that in place of %s", m[2], m[1])
		}
	}
	switch m := inputID.FindStringSubmatch(what); {
	case m != nil:
		return fmt.Sprintf(`only an editor asks for inputs: write the value in its place, or a reference such as "${%s}", and set that variable`, variableOf(m[1]))
	case strings.HasPrefix(what, unset):
		name := strings.Split(strings.TrimPrefix(what, unset), ", ")[0]
		return fmt.Sprintf(`set it where the program is started, as in "export %s=…", or write the value into the file`, name)
	case strings.HasPrefix(what, neither):
		return `write "command" for a program on this machine, or "url" for an address`
	}
	return "mend it in the file"
}

// isMended reports whether the finding about a server that can't be used says what to do
// about a key.
func (c *checkup) isMended(server, note string) bool {
	return meant.MatchString(note) && slices.ContainsFunc(c.problems, func(err error) bool {
		name, what := subject(err.Error())
		return name == server && strings.HasPrefix(what, neither)
	})
}

// unset is how a problem begins of a server whose variables are not set.
const unset = "environment variables not set: "

// neither is how a problem begins of a server that says no way, or two, to reach it.
const neither = "want exactly one of command and url"

// variableOf returns a name for a variable with the value of an input.
func variableOf(input string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, input), "_")
}

// notReady finds servers that are not ready, each with one ailment.
func notReady(kind string) finder {
	return func(c *checkup, tell teller) {
		for _, st := range c.statuses {
			if st.State == mcphybrid.StateReady || c.ailment(st) != kind {
				continue
			}
			what := string(st.State)
			if st.Err != nil {
				what = plain(st.Err)
			}
			if kind == "login" {
				tell(st.Name, what, c.path, st.Name)
			} else {
				tell(st.Name, what)
			}
		}
	}
}

// ailment returns the kind of the finding about a server that is not ready.
func (c *checkup) ailment(st mcphybrid.ServerStatus) string {
	var noFile *fs.PathError
	switch {
	case cause.Of(st.Err).Kind == cause.Token:
		return "token"
	case st.State == mcphybrid.StateUnauthorized:
		return "login"
	case cause.Of(st.Err).Kind == cause.Line:
		return "command-line"
	case errors.Is(st.Err, exec.ErrNotFound) || errors.As(st.Err, &noFile) && noFile.Op == "fork/exec" && errors.Is(noFile, fs.ErrNotExist):
		return "command"
	case cause.Of(st.Err).Kind == cause.Output:
		return "output"
	case errors.Is(st.Err, context.DeadlineExceeded) || st.State == mcphybrid.StateConnecting: // still at work
		return "timeout"
	case cause.Of(st.Err).Kind == cause.Package:
		return "package"
	case cause.Of(st.Err).Kind == cause.Broken:
		return "half-installed"
	case cause.Of(st.Err).Kind == cause.Registry:
		return "registry"
	case c.config(st.Name).URL != "" && errors.As(st.Err, &noFile):
		return "logins"
	case c.config(st.Name).URL != "":
		return "unreachable"
	}
	return "down"
}

func (c *checkup) marked(tell teller) {
	for _, t := range c.tools {
		for _, m := range c.marks[t.Tool.Name()] {
			name, _ := json.Marshal(t.Tool.OriginalName()) // a person copies it into the file
			tell(t.Tool.Server(), fmt.Sprintf("tool %s: %s at %s: %q", t.Tool.OriginalName(), m.Kind, m.Place, m.Text), string(name))
		}
	}
}

func (c *checkup) markedInstructions(tell teller) {
	for _, st := range c.statuses {
		if st.Instructions == "" {
			continue
		}
		for _, m := range c.marks[st.Name] {
			tell(st.Name, fmt.Sprintf("instructions: %s: %q", m.Kind, m.Text))
		}
	}
}

// numbered matches how a problem of one element of a server's list begins. What follows
// may be the server's words.
var numbered = regexp.MustCompile(`^[a-z ]+ \d+: `)

// reported finds problems of the Manager. They are texts, but for those that have a type.
func reported(kind string) finder {
	return func(c *checkup, tell teller) {
		for _, err := range c.faults {
			if errors.As(err, new(*mcphybrid.CollisionError)) {
				continue
			}
			server, what := subject(plain(err))
			is := "definition"
			switch {
			case strings.HasPrefix(what, "what was learned: "):
				is = "learned"
				what, _, _ = strings.Cut(what, "; name another one")
			case numbered.MatchString(what):
			case strings.HasSuffix(what, "matches no tool"):
				is = "pattern"
			case strings.Contains(what, "need"):
				is = "needs"
			}
			if is == kind {
				tell(server, what)
			}
		}
	}
}

func (c *checkup) collisions(tell teller) {
	for _, err := range c.faults {
		if e := new(mcphybrid.CollisionError); errors.As(err, &e) {
			tell(e.Server, fmt.Sprintf("its names would begin like those of server %s, so they begin with %s__", e.First, e.Prefix))
		}
	}
}

// renamed finds servers whose tools have other names than mcp_PREFIX__TOOL, those that
// a shorter prefix would help, or the others.
func renamed(helps bool) finder {
	return func(c *checkup, tell teller) {
		for _, server := range c.servers {
			what, room := c.rewritten(server)
			switch {
			case what == "" || helps != (room > 0):
			case helps:
				tell(server.Name, what, room)
			default:
				tell(server.Name, what)
			}
		}
	}
}

// maxName is the largest length of a registered name, and maxPrefix that of its first
// part, mcp_PREFIX: it leaves room for a hash.
const (
	maxName   = 64
	maxPrefix = 53
)

// rewritten says which names of the server's tools are not mcp_PREFIX__TOOL, and how
// long a prefix may be with which all would be: 0 if there is none.
func (c *checkup) rewritten(server mcphybrid.ServerConfig) (what string, room int) {
	var names []string
	all := 0
	room = maxPrefix - len("mcp_")
	for _, p := range c.tools {
		if p.Tool.Server() != server.Name {
			continue
		}
		all++
		own := p.Tool.OriginalName()
		if strings.HasSuffix(p.Tool.Name(), "__"+own) {
			continue
		}
		names = append(names, p.Tool.Name())
		room = min(room, maxName-len("mcp___")-len(own))
		if strings.Trim(own, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			room = 0 // it is the characters, not the length
		}
	}
	if len(names) == 0 {
		return "", 0
	}
	return fmt.Sprintf("names that are too long, or have characters that providers refuse, end in a hash: %d of %d, such as %s", len(names), all, names[0]), max(room, 0)
}

// unportable finds servers with output schemas that clients may refuse, and with them the whole list.
func (c *checkup) unportable(tell teller) {
	for _, server := range c.servers {
		first, n, all := "", 0, 0
		for _, p := range c.tools {
			if p.Tool.Server() != server.Name {
				continue
			}
			output, _ := text.Fields(p.Tool.Raw(), "outputSchema")
			if text.IsNull(output[0]) {
				continue
			}
			all++
			at, is := schema.Unportable(schema.Prune(output[0]))
			if !is {
				continue
			}
			if n++; n == 1 {
				first = fmt.Sprintf("that of tool %s at %s", p.Tool.OriginalName(), cmp.Or(at, "its beginning"))
			}
		}
		if n > 0 {
			tell(server.Name, fmt.Sprintf("%d of %d output schemas have what validators of clients refuse, such as %s", n, all, first))
		}
	}
}

func (c *checkup) empty(tell teller) {
	for _, st := range c.statuses {
		if st.State == mcphybrid.StateReady && st.Tools+st.Resources+st.Templates+st.Prompts+st.Skills == 0 {
			tell(st.Name, "it is up, but has no tool that may be used")
		}
	}
}

func (c *checkup) slow(tell teller) {
	for _, st := range c.statuses {
		limit := cmp.Or(c.config(st.Name).StartTimeout, mcphybrid.DefaultStartTimeout)
		if st.State == mcphybrid.StateReady && st.Took.Seconds() >= c.late*limit.Seconds() {
			tell(st.Name, fmt.Sprintf("its start took more than half of the %v after which one that does nothing is given up", limit))
		}
	}
}

// keys finds keys without effect, those that nobody knows, or those of other clients.
func keys(unknown bool) finder {
	return func(c *checkup, tell teller) {
		for _, text := range c.notes {
			server, what := subject(strings.TrimPrefix(text, c.path+": "))
			if strings.Contains(what, "is not known here") == unknown && !c.isMended(server, what) {
				tell(server, what)
			}
		}
	}
}

func (c *checkup) noServers(tell teller) {
	if len(c.statuses) == 0 {
		tell("", "it has no server that is switched on")
	}
}

// unsaved tells that no login can be saved, if a server may want one and no finding says it of the
// servers.
func (c *checkup) unsaved(tell teller) {
	for _, st := range c.statuses {
		if st.State != mcphybrid.StateReady && c.ailment(st) == "logins" {
			return
		}
	}
	isRemote := func(s mcphybrid.ServerConfig) bool { return s.URL != "" && !s.Disabled }
	if c.unsavable != nil && slices.ContainsFunc(c.servers, isRemote) {
		tell("", c.unsavable.Error())
	}
}

func (c *checkup) off(tell teller) {
	for _, server := range c.servers {
		if server.Disabled {
			tell(server.Name, "it is switched off")
		}
	}
}

func (c *checkup) config(name string) mcphybrid.ServerConfig {
	i := slices.IndexFunc(c.servers, func(s mcphybrid.ServerConfig) bool { return s.Name == name })
	return c.servers[i]
}

// plain returns the text of err without the library's name.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "mcphybrid: ") }

// subject takes apart a text that begins with a server: server "github": what.
func subject(text string) (server, what string) {
	if rest, ok := strings.CutPrefix(text, "server "); ok {
		if quoted, err := strconv.QuotedPrefix(rest); err == nil && strings.HasPrefix(rest[len(quoted):], ": ") {
			server, _ = strconv.Unquote(quoted)
			return server, rest[len(quoted)+len(": "):]
		}
	}
	return "", text
}
