// Inspect shows which tools a model would get from the MCP servers of a configuration
// file: which are inline and which deferred, how many tokens each server costs, and how
// many deferring saves. It can also try a search or a call.
//
//	go run ./examples/inspect -config mcp.json [-dialect CLIENT] [-login SERVER | -logout SERVER] [-json] [-query Q] [-call NAME -args JSON] [-cache FILE]
//
// With -login, it prints the address of a page where you log in to the server, and waits
// for the browser. Later runs find the tokens in the folder -tokens.
//
// With -cache, it takes the tools of servers seen in the last five minutes from the file
// and starts such a server only for a call. On a terminal, standard error shows how the
// servers start.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/toml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "inspect:", err)
		}
		stop()
		os.Exit(1)
	}
}

// A report is the output. Its JSON form is a contract.
type report struct {
	Servers  []serverReport      `json:"servers"`
	Inline   []string            `json:"inline"`
	Deferred []string            `json:"deferred"`
	Tokens   tokenReport         `json:"tokens"`
	Hits     []hitReport         `json:"hits"`
	Result   *mcp.CallToolResult `json:"result"`
	Problems []string            `json:"problems"`

	costs []cost // for people only
}

type serverReport struct {
	Name  string          `json:"name"`
	State mcphybrid.State `json:"state"`
	Tools int             `json:"tools"`
	Error string          `json:"error"`
}

type tokenReport struct {
	All      int `json:"all"`
	Inline   int `json:"inline"`
	Sections int `json:"sections"`
}

type hitReport struct {
	Name   string  `json:"name"`
	Server string  `json:"server"`
	Score  float64 `json:"score"`
}

func run(ctx context.Context, args []string, stdout, stderr *os.File) error {
	flags := flag.NewFlagSet("inspect", flag.ContinueOnError)
	config := flags.String("config", "mcp.json", "the `file` with the servers, as an MCP client writes it")
	dialect := flags.String("dialect", "", "the `client` that the file is written for, such as vscode; by default it is recognized")
	asJSON := flags.Bool("json", false, "print JSON")
	query := flags.String("query", "", "search the deferred tools")
	call := flags.String("call", "", "call the tool of this registered `name`")
	arguments := flags.String("args", "{}", "the arguments of the call, as `JSON`")
	login := flags.String("login", "", "log in to the `server` of this name")
	logout := flags.String("logout", "", "log out from the `server` of this name")
	tokens := flags.String("tokens", defaultTokens(), "keep the tokens of logins in this `folder`")
	cache := flags.String("cache", "", "keep the tools in this `file`, and start from it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	cfg, err := mcphybrid.LoadConfigWith(*config, &mcphybrid.ConfigOptions{Dialect: *dialect, TOML: toml.ToJSON})
	if err != nil {
		if len(cfg.Servers) == 0 {
			return err
		}
		fmt.Fprintln(stderr, err) // the other servers work
	}
	for _, note := range cfg.Notes {
		fmt.Fprintln(stderr, note)
	}
	for _, s := range cfg.Servers {
		if s.Disabled {
			fmt.Fprintf(stderr, "%s: server %q is switched off\n", *config, s.Name)
		}
	}
	opts := &mcphybrid.Options{Servers: cfg.Servers, Limits: mcphybrid.ServerLimits{Reconnect: -1}}
	if *cache != "" {
		opts.Cache = mcphybrid.NewCache(mcphybrid.FileStore(*cache))
	}
	if *tokens != "" {
		opts.TokenStore = mcphybrid.FileTokens(*tokens)
	}
	opts.OpenURL = func(_ context.Context, page mcphybrid.LoginPage) (string, error) {
		_, err := fmt.Fprintf(stderr, "To log in to %s, open this page:\n%s\n", page.Server, page.URL)
		return "", err
	}
	mgr := mcphybrid.NewManager(opts)
	defer mgr.Close()

	show := newProgress(stderr, mgr.Servers)
	_ = mgr.Start(ctx) // each server's error is in the report
	show.stop()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if *login != "" {
		if err := mgr.Login(ctx, *login); err != nil {
			return err
		}
	}
	if *logout != "" {
		if err := mgr.Logout(ctx, *logout); err != nil {
			return err
		}
	}

	r := newReport(mgr)
	for _, h := range search(mgr, *query) {
		r.Hits = append(r.Hits, hitReport{h.Tool.Name(), h.Tool.Server(), h.Score})
	}
	if *call != "" {
		r.Result, err = mgr.Call(ctx, *call, *arguments)
		if err != nil {
			fmt.Fprintln(stderr, err) // the result says it too
		}
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	return r.print(stdout, width(stdout))
}

// defaultTokens returns where the user's tokens are, or "" if there is no such place.
func defaultTokens() string {
	folder, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "mcphybrid", "tokens")
}

func search(mgr *mcphybrid.Manager, query string) []mcphybrid.Hit {
	if query == "" {
		return nil
	}
	return mgr.Search(query, 0)
}

func newReport(mgr *mcphybrid.Manager) report {
	r := report{
		Servers: []serverReport{}, Inline: []string{}, Deferred: []string{},
		Hits: []hitReport{}, Problems: []string{},
	}
	for _, s := range mgr.Servers() {
		row := serverReport{Name: s.Name, State: s.State, Tools: s.Tools}
		if s.Err != nil {
			row.Error = s.Err.Error()
		}
		r.Servers = append(r.Servers, row)
	}
	for _, t := range mgr.InlineTools() {
		r.Inline = append(r.Inline, t.Name())
	}
	for _, t := range mgr.DeferredTools() {
		r.Deferred = append(r.Deferred, t.Name())
	}
	tokens := mgr.Stats().Tokens
	r.Tokens = tokenReport{tokens.All, tokens.Inline + tokens.Meta, tokens.Sections}
	for _, p := range mgr.Problems() {
		r.Problems = append(r.Problems, p.Error())
	}
	r.costs = costs(mgr)
	return r
}

// print writes the report for people. columns is the width of the bars' chart.
func (r report) print(w io.Writer, columns int) error {
	p := &printer{w: w}
	for _, s := range r.Servers {
		p.line("%-20s %-10s %4d tools  %s", s.Name, s.State, s.Tools, s.Error)
	}
	for _, problem := range r.Problems {
		p.line("%s", problem)
	}
	p.line("\n%d inline, %d deferred", len(r.Inline), len(r.Deferred))
	p.line("about %d tokens for all definitions; %d for the inline ones and those that search, %d for the prompt sections\n",
		r.Tokens.All, r.Tokens.Inline, r.Tokens.Sections)
	for _, line := range chart(r.costs, columns) {
		p.line("%s", line)
	}
	p.line("\ninline:")
	for _, name := range r.Inline {
		p.line("  %s", name)
	}
	if len(r.Deferred) > 0 {
		p.line("\ndeferred:")
	}
	for _, name := range r.Deferred {
		p.line("  %s", name)
	}
	if len(r.Hits) > 0 {
		p.line("\nfound:")
	}
	for _, h := range r.Hits {
		p.line("  %6.3f  %s (%s)", h.Score, h.Name, h.Server)
	}
	if r.Result != nil {
		p.line("\nresult:")
		for _, c := range r.Result.Content {
			p.line("%s", mcp.GetTextFromContent(c))
		}
	}
	return p.err
}

// A printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); p.err == nil {
		p.err = err
	}
}
