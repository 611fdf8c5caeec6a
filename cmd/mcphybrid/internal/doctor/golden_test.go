package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/cause"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/stretchr/testify/require"
)

// listed writes findings, a line each.
func listed(b *strings.Builder, find finder) {
	n := 0
	find(nil, func(server, what string, places ...any) {
		n++
		fmt.Fprintf(b, "  %s: %s %q\n", server, what, places)
	})
	if n == 0 {
		b.WriteString("  nothing\n")
	}
}

// Which values of a configuration are secrets that stand in the file.
func TestSecretsOfServers(t *testing.T) {
	t.Parallel()
	const s = "hunter22hunter22"
	var b strings.Builder
	b.WriteString("Which values are secrets that stand in the file: by their names and looks, wherever they stand.\n")
	for _, server := range []mcphybrid.ServerConfig{
		{Env: map[string]string{"API_KEY": s, "NAME": s, "TOKEN": "short", "DB": "postgres://u:" + s + "@h/?password=" + s + "&x=1", "LOOKS": "ghp_12345678", "PATH_KEY": "/etc/" + s}},
		{Headers: map[string]string{"Authorization": "Bearer " + s, "X-Api-Key": s, "Accept": s, "Cookie": "basic  " + s, "Token": "token " + s}},
		{Args: []string{"--token=" + s, "--token:" + s, "token=" + s, "=" + s, "--name=" + s, "x y=sk-12345678", "sk-12345678", "--api key=" + s}},
		{Args: []string{"--token", s, "--name", s, "--token", "-" + s, "token", s, "-p", s, s}},
		{Args: []string{"https://u:" + s + "@h/", "https://h/?access_token=" + s + "&b=" + s, "%zz", "/only/" + s, s, "--url=https://u:" + s + "@h/", "DB=postgres://u:" + s + "@h/?password=" + s + "&x=1", "--url=/" + s + "@h/", "x y=https://u:" + s + "@h/"}},
		{URL: "https://u:" + s + "@h.example/mcp?key=" + s},
		{URL: "https://h.example/mcp", OAuth: &config.OAuth{ClientID: s, ClientSecret: s, PrivateKey: s}},
		{Args: []string{"--token", "https://h.example/" + s, "--token=./" + s, "--token=~/" + s}},
	} {
		server.Name = "a server"
		for _, exposed := range []bool{false, true} {
			fmt.Fprintf(&b, "\nenv %v\nheaders %v\nargs %q\nurl %q, oauth %v, others may read the file: %v\n", server.Env, server.Headers, server.Args, server.URL, server.OAuth != nil, exposed)
			c := &checkup{servers: []mcphybrid.ServerConfig{server}, text: s + " ghp_12345678 sk-12345678", exposed: exposed}
			listed(&b, func(_ *checkup, tell teller) { c.plainSecrets(tell) })
			if len(server.Env)+len(server.Headers) == 0 {
				break
			}
		}
	}
	for _, text := range []string{`a"b secret`, `a\"b secret`, `a%22b+secret`, `a"b  secret`, ""} {
		fmt.Fprintf(&b, "\n%q is written in %q: %v", `a"b secret`, text, (&checkup{text: text}).written(`a"b secret`))
	}
	golden.Compare(t, "secrets.golden", b.String()+"\n")
}

// Which ailment a server has that is not ready, and the kinds of what a Manager reports.
func TestAilments(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("What is told of servers that are not ready, by state and error; then of what a Manager reports, and of the file.\n")
	noFile := func(op, path string) error { return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist} }
	exit := func(words string) error {
		return fmt.Errorf("mcphybrid: server: exit status 1; its last words: %q", words)
	}
	for _, err := range []error{
		nil, errors.New("mcphybrid: it is odd"), cause.ErrToken, fmt.Errorf("x: %w", cause.ErrNoLogin), cause.ErrOutput, fmt.Errorf("y: %w: \"hello\"", cause.ErrOutput),
		&exec.Error{Name: "no-such", Err: exec.ErrNotFound}, &exec.Error{Name: "sh -c true", Err: exec.ErrNotFound}, noFile("fork/exec", "/no/such"), noFile("open", "/no/such"), &fs.PathError{Op: "fork/exec", Path: "/x", Err: fs.ErrPermission},
		context.DeadlineExceeded, exit("npm error code E404\nnpm error 404 The requested resource 'x@*' could not be found"), exit("npm error code ENOTFOUND\nnpm error request failed"),
		exit("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /home/ann/.npm/_npx/3dfbf5a9eea4a1b3/node_modules/x/y.js"),
	} {
		for _, state := range []mcphybrid.State{mcphybrid.StateDown, mcphybrid.StateConnecting, mcphybrid.StateUnauthorized, mcphybrid.StateReady} {
			if state != mcphybrid.StateDown && err != nil && err.Error() != "mcphybrid: it is odd" {
				continue
			}
			c := &checkup{path: "mcp.json", late: 1, servers: []mcphybrid.ServerConfig{{Name: "near", Command: "x"}, {Name: "far", URL: "https://h.example"}},
				statuses: []mcphybrid.ServerStatus{{Name: "near", State: state, Err: err, Tools: 1}, {Name: "far", State: state, Err: err, Tools: 1}}}
			fmt.Fprintf(&b, "\n%s, %v\n", state, err)
			for _, f := range c.findings() {
				fmt.Fprintf(&b, "  %s %s: %s: %s → %s\n", f.Level, f.Server, f.Kind, f.What, f.Advice)
			}
		}
	}
	for _, text := range []string{
		`server "s": tool 1: need a name`, `server "s": resource template 12: matches no tool`, `server "s": "x" matches no tool`, `server "s": tool "a" needs missing tools: "b"`, `tool "a" needs b`, `server "s": odd`, `server s: odd`, `server "s" is odd`, `server "a\"b": odd`, `mcphybrid: server "s": x`, `server "s":`,
	} {
		fmt.Fprintf(&b, "\nreported: %s\n", text)
		for _, kind := range []string{"pattern", "definition", "needs"} {
			c := &checkup{faults: []error{errors.New(text)}}
			reported(kind)(c, func(server, what string, _ ...any) { fmt.Fprintf(&b, "  %s of %q: %s\n", kind, server, what) })
		}
	}
	c := &checkup{path: "mcp.json", servers: []mcphybrid.ServerConfig{{Name: "b"}, {Name: "a", Disabled: true}, {Name: "c", Disabled: true}},
		problems: []error{errors.New(`server "a": want exactly one of command and url`), errors.New(`server "c": want exactly one of command and url`), errors.New(`server "b": environment variables not set: X, Y`), errors.New(`server "b": "${input:my-key 1}": no such input: set a function that does`), errors.New("odd")},
		notes:    []string{`mcp.json: server "a": "comand" is not known here and has no effect; did you mean "command"?`, `mcp.json: server "b": "comand" is not known here and has no effect; did you mean "command"?`, `mcp.json: server "c": "x" is not known here and has no effect`, `mcp.json: server "c": "alwaysAllow" has no effect`, `"top" is not known here and has no effect`},
		faults:   []error{&mcphybrid.CollisionError{Server: "c", First: "b", Prefix: "mcp_b_1"}},
	}
	b.WriteString("\nof a file\n")
	for _, f := range c.findings() {
		fmt.Fprintf(&b, "  %s %q: %s: %s → %s\n", f.Level, f.Server, f.Kind, f.What, f.Advice)
	}
	for _, input := range []string{"", "a", "z", "A", "Z", "0", "9", "my-key 1", "_x_", "é", "-", "az09AZ@[`{/:"} {
		fmt.Fprintf(&b, "the variable of the input %q is %q\n", input, variableOf(input))
	}
	for _, text := range []string{"", "one", "a b c d e f g h", "a b c d e f g h i", " a\n b "} {
		fmt.Fprintf(&b, "%q is cut to %q\n", text, cut(text))
	}
	golden.Compare(t, "ailments.golden", b.String())
}

// kitchen starts a Manager with these tools, by server.
func kitchen(t *testing.T, servers ...[]mcp.Tool) *mcphybrid.Manager {
	t.Helper()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: -1}})
	t.Cleanup(func() { require.NoError(t, mgr.Close()) })
	for i, tools := range servers {
		var list []mcpserver.ServerTool
		for _, tool := range tools {
			list = append(list, mcpserver.ServerTool{Tool: tool})
		}
		require.NoError(t, mgr.AddTools(fmt.Sprintf("s%d", i), list...))
	}
	return mgr
}

// Names that are verbs alone are told where a search for them finds another tool first.
func TestVerbsAlone(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("Which names say nothing of what a tool is about, where another server has a tool of that name.\n")
	for _, name := range []string{"add", "call", "create", "delete", "do", "execute", "fetch", "find", "get", "insert", "invoke", "list", "open", "query", "read", "remove", "run", "search", "send", "set", "update", "write", "GET", "stir", "getting", "x"} {
		same := mcp.NewTool(name, mcp.WithDescription("Works"))
		mgr := kitchen(t, []mcp.Tool{same}, []mcp.Tool{same})
		fmt.Fprintf(&b, "%s:", name)
		for _, s := range sniff(mgr.Default(), mgr.Default().Placements()) {
			fmt.Fprintf(&b, " %s of %s", s.kind, s.server)
		}
		b.WriteByte('\n')
	}
	mgr := kitchen(t, []mcp.Tool{mcp.NewTool("a"), mcp.NewTool("b", mcp.WithDescription(" ")), mcp.NewTool("c", mcp.WithDescription("Works"))}, []mcp.Tool{mcp.NewTool("d", mcp.WithDescription("Works"))},
		[]mcp.Tool{mcp.NewTool("e", mcp.WithDescription("Cooks")), mcp.NewTool("f", mcp.WithDescription("Bakes")), mcp.NewTool("g", mcp.WithDescription(" Bakes ")), mcp.NewTool("h", mcp.WithDescription("Cooks")), mcp.NewTool("i", mcp.WithDescription("Cooks"))})
	b.WriteString("\nOf tools without a description, and with one description:\n")
	for _, s := range sniff(mgr.Default(), mgr.Default().Placements()) {
		fmt.Fprintf(&b, "%s of %s: %s\n", s.kind, s.server, s.what)
	}
	golden.Compare(t, "smells.golden", b.String())
}

// What is found in tools: names that are rewritten, output schemas that clients refuse, marks.
func TestFindingsInTools(t *testing.T) {
	t.Parallel()
	long := func(n int) mcp.Tool { return mcp.NewTool(strings.Repeat("n", n)) }
	schema := func(name, output string) mcp.Tool {
		tool := mcp.NewTool(name)
		if output != "" {
			tool.RawOutputSchema = []byte(output)
		}
		return tool
	}
	mgr := kitchen(t, []mcp.Tool{long(55), long(56), long(57), long(64), mcp.NewTool("short")}, []mcp.Tool{mcp.NewTool("with.dot"), long(60)},
		[]mcp.Tool{schema("fine", `{"type": "object"}`), schema("none", ""), schema("odd", `{"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}`), schema("bad", `{"type": "string"}`)})
	c := &checkup{path: "mcp.json", tools: mgr.Default().Placements(), late: 0.5, marks: map[string][]scan.Mark{"mcp_s0__short": {{Kind: "k", Place: "/p", Text: "t\"x"}, {Kind: "k2", Place: "/p2", Text: "t2"}}, "s1": {{Kind: "k3", Text: "t3"}}}}
	for i, timeout := range []time.Duration{0, 10 * time.Second, time.Minute} {
		name := fmt.Sprintf("s%d", i)
		c.servers = append(c.servers, mcphybrid.ServerConfig{Name: name, Command: "x", StartTimeout: timeout})
		c.statuses = append(c.statuses, mcphybrid.ServerStatus{Name: name, State: mcphybrid.StateReady, Took: 5 * time.Second, Tools: 2 - i, Instructions: strings.Repeat("x", i)})
	}
	c.statuses[2].Tools, c.statuses[2].Took = 0, 30*time.Second-1
	c.tokens.All, c.tokens.Inline, c.unset = 100, 40, []string{"variables"}
	var b strings.Builder
	b.WriteString("What is found in tools and starts, and how it is printed: of one file, of several, without servers.\n\n")
	d := c.diagnose()
	for i := range d.Servers {
		d.Servers[i].Tokens = 10 * (i + 1) // estimates may change
	}
	d.print(terminal.Paper(&b, 100), false)
	b.WriteByte('\n')
	d.Findings = d.Findings[:1]
	d.print(terminal.Paper(&b, 100), true)
	b.WriteByte('\n')
	(&diagnosis{File: "empty.json"}).print(terminal.Paper(&b, 100), true)
	one, other := finding{warning, "a", "k", "w", "d"}, finding{note, "a", "k", "w", "d"}
	list := []finding{one, {warning, "b", "k", "w", "d"}, {warning, "", "k", "w", "d"}, other, {warning, "c", "k", "w", "d"}, {warning, "a", "k2", "w", "d"}, {warning, "", "k", "w", "d"}}
	for _, f := range grouped(list) {
		fmt.Fprintf(&b, "%+v\n", f)
	}
	for _, levels := range [][]level{{}, {bad}, {bad, bad}, {warning}, {note}, {note, note, note}, {note, warning, bad, bad}} {
		d := diagnosis{File: "f"}
		for i, l := range levels {
			d.Findings = append(d.Findings, finding{Level: l, What: fmt.Sprint(i)})
		}
		b.WriteString(d.summary() + "\n")
	}
	states := slices.Clone(c.statuses)
	for _, what := range []mcphybrid.ServerStatus{{Name: "s0", State: mcphybrid.StateReady}, {Name: "s0", State: mcphybrid.StateReady, Resources: 1}, {Name: "s0", State: mcphybrid.StateReady, Templates: 1}, {Name: "s0", State: mcphybrid.StateReady, Prompts: 1}, {Name: "s0", State: mcphybrid.StateReady, Skills: 1}, {Name: "s0", State: mcphybrid.StateDown}} {
		c.statuses = []mcphybrid.ServerStatus{what}
		fmt.Fprintf(&b, "empty with %d resources, %d templates, %d prompts, %d skills, %s:\n", what.Resources, what.Templates, what.Prompts, what.Skills, what.State)
		listed(&b, func(_ *checkup, tell teller) { c.empty(tell) })
	}
	c.statuses = states
	golden.Compare(t, "tools.golden", b.String())
}
