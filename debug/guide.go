package debug

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// A Guide makes pages for people who run a program that somebody else wrote: the pages say
// what they can do, and not which calls the program could make. Its fields tell what there is
// beside the buttons; the zero Guide knows of nothing.
type Guide struct {
	// Program is how people call the program, such as "the gateway". The zero value is
	// "this program".
	Program string

	// File is the path of the file with the servers' configuration, in the form of an
	// mcp.json, or "" if there is none. Watched says that the program reads it again when it
	// changes.
	File    string
	Watched bool

	// Unused returns why the file, as it is now, is not used, or "". It may be nil, and
	// called by several goroutines at once.
	Unused func() string

	// Login is a command that logs in to servers, and Approve one that shows and accepts
	// what is held back; or "".
	Login, Approve string

	// Logins shows where to log in. If nil, [mcphybrid.Options.OpenURL] does, elsewhere.
	Logins *Logins

	// Done is told of each action when it has ended: with the values of the request's
	// context, and why it failed, or nil. It may be called by several goroutines at once. It may be nil.
	Done func(ctx context.Context, a Action, err error)
}

// An Action is what somebody had done by a button.
type Action struct {
	Name   string // "restart", "login" or "accept"
	Server string
	Tool   string // of what is accepted: its own name
}

// Operator is [Operator] with what g says.
func (g Guide) Operator(mgr Operated, names ...string) http.Handler {
	h := newHandler(mgr, names)
	h.operator = newOperator(mgr, g)
	return h
}

// Logins are pages of authorization servers that people are to open. The zero Logins is
// ready to use, also by several goroutines at once.
type Logins struct {
	mu    sync.Mutex
	pages map[account]mcphybrid.LoginPage
}

// An account is that of a user at a server.
type account struct{ user, server string }

// maxLogins is how many logins may be under way at once.
const maxLogins = 32

// Open is an [mcphybrid.Options.OpenURL]. The pages show the address until the login ends. It
// leads back to the machine of the program, so the browser must be there.
func (l *Logins) Open(ctx context.Context, page mcphybrid.LoginPage) (redirected string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := account{page.User, page.Server}
	if _, ok := l.pages[of]; !ok && len(l.pages) >= maxLogins {
		return "", fmt.Errorf("%d logins are under way, which is the limit", maxLogins)
	}
	if l.pages == nil {
		l.pages = make(map[account]mcphybrid.LoginPage)
	}
	l.pages[of] = page
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pages[of] == page { // not that of a later login
			delete(l.pages, of)
		}
	})
	return "", nil
}

// page returns where to log in to a server now, if somebody is to.
func (l *Logins) page(user, server string) (page mcphybrid.LoginPage, ok bool) {
	if l == nil {
		return page, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	page, ok = l.pages[account{user, server}]
	return page, ok
}

// file returns how people call the file, and then what becomes of a change of it.
func (g Guide) file() (file, then string) {
	switch {
	case g.File == "":
		return "the configuration", ""
	case g.Watched:
		return g.File, " The file is read again at once."
	}
	return g.File, " Then restart " + g.program() + ": it reads the file at its start."
}

func (g Guide) program() string { return cmp.Or(g.Program, "this program") }

// tokenForm says how the file has a token.
func (g Guide) tokenForm() string {
	return fmt.Sprintf(`as in {"Authorization": "Bearer TOKEN"}, where ${NAME} stands for a variable that %s was started with`, g.program())
}

// advice says what a person can do about a server that is not ready.
func (g Guide) advice(s snapshot.Server) string {
	file, then := g.file()
	again := ""
	if !s.Retry.IsZero() {
		again = " It is tried again by itself."
	}
	key := func(name string) string { return fmt.Sprintf("%q of %q in %s", name, s.Name, file) }
	switch s.Cause.Kind {
	case cause.Program:
		return "Install the program and restart the server. Or correct " + key("command") + ": its whole path works in any case." + then
	case cause.Unset:
		return "Set them where " + g.program() + " is started, and start it again. Or write the value into " + file + "." + then
	case cause.Line:
		return "Correct it in " + file + "." + then
	case cause.Folder:
		return "Make the folder and restart the server. Or correct " + key("cwd") + "." + then
	case cause.Package:
		return "Correct the name or version in " + key("args") + "." + then
	case cause.Registry:
		return "See whether this machine reaches the registry." + again
	case cause.Token:
		return "Put a valid token into " + key("headers") + ", " + g.tokenForm() + "." + then
	case cause.Status, cause.Address:
		return "See whether the server runs, and correct " + key("url") + ": it has a path, such as /mcp." + then
	case cause.Foreign:
		return fmt.Sprintf("Correct %q or %s: it leads to something else.%s", "url", key("command"), then)
	case cause.Timeout:
		return "It may be downloading what it needs." + again + " If it is always slow, raise " + key("startup_timeout_sec") + "." + then
	case cause.Output:
		return "See whether " + key("command") + ` is an MCP server that speaks over standard input and output: some want an argument for that, such as --stdio. Its logs belong on standard error.` + then
	case cause.Exit:
		return fmt.Sprintf("Do what it says. Variables go into %s, as in %s, arguments into %q: of the variables of %s, it has only PATH, HOME and the like.%s", key("env"), `{"NAME": "value"}`, "args", g.program(), then)
	case cause.Killed:
		return "Something else on this machine ended it, perhaps for want of memory." + again
	case cause.Login:
		advice := "Log in. If the server offers no login, put a token into " + key("headers") + ", " + g.tokenForm() + "." + then
		if g.Login != "" {
			advice += " On the machine of " + g.program() + ", this logs in, too: " + g.Login
		}
		return advice
	}
	return "If it stays so, its own log or its author may know more."
}

// empty says what a person can do if there are no servers.
func (g Guide) empty() string {
	file, then := g.file()
	return fmt.Sprintf("Add one to %s, as here.%s", file, then)
}

// firstServer is a file with a server.
const firstServer = `{
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}
  }
}`
