// Package doctor starts all servers of configuration files and says what is wrong, the worst
// first, and what to do about it.
//
//	mcphybrid doctor [-dialect CLIENT] [-json] FILE…
//
// A flag that would have no effect beside the others is an error. The exit status is 0 if
// there is nothing to do, 1 if there is, and 2 if a file can't be used.
package doctor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/mcphybrid/mcphybrid/scan"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/mcphybrid/mcphybrid/store"
)

// Main runs the command and returns its exit status.
func Main(ctx context.Context, args []string, _, out, errs *os.File) int {
	ctx, stop := exit.Interrupts(ctx)
	defer stop()
	return exit.With(run(ctx, args, out, errs), "doctor", errs)
}

// settings are the flags.
type settings struct {
	file  servers.File
	learn string // a file, or ""
	json  bool
}

func run(ctx context.Context, args []string, stdout, stderr *os.File) error {
	var s settings
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s.file.AddFlags(flags, "the `file` to check if none is behind the flags")
	flags.StringVar(&s.learn, "learn", "", "check the `file` of the gateway's -learn, too")
	flags.BoolVar(&s.json, "json", false, "print JSON")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return exit.Unusable(err)
	}
	if flags.NArg() == 0 {
		return s.examine(ctx, []string{s.file.Path}, stdout, stderr)
	}
	named := false
	flags.Visit(func(f *flag.Flag) { named = named || f.Name == "config" })
	if named {
		return exit.Unusable(errors.New("-config has no effect with files behind the flags"))
	}
	return s.examine(ctx, flags.Args(), stdout, stderr)
}

// A checkup is what the doctor knows of one file: what it says, and what became of its
// servers.
type checkup struct {
	path     string
	text     string // the file as it stands there
	exposed  bool   // others may read the file
	problems []error
	notes    []string
	servers  []mcphybrid.ServerConfig // without those that are a problem
	unset    []string                 // servers that were not tried, since variables are not set
	late     float64                  // the share of its time after which a start is slow

	statuses  []mcphybrid.ServerStatus
	tools     []mcphybrid.Placement
	marks     map[string][]scan.Mark // by registered name
	faults    []error                // of the Manager
	unsavable error                  // why no login can be saved, or nil
	smells    []smell
	tokens    snapshot.Tokens
}

// examine checks the files and prints what it finds. A file that can't be used does not
// keep it from the others.
func (s *settings) examine(ctx context.Context, files []string, stdout, stderr *os.File) error {
	results := []*diagnosis{}
	var failed []error
	for _, path := range files {
		c, err := s.checkup(ctx, path, stderr)
		switch {
		case ctx.Err() != nil:
			return servers.ErrInterrupted
		case err != nil:
			failed = append(failed, err)
		default:
			results = append(results, c.diagnose())
		}
	}
	if s.json {
		if err := terminal.PrintJSON(stdout, results); err != nil {
			return err
		}
	} else {
		sheet := terminal.NewSheet(stdout)
		for i, d := range results {
			if i > 0 {
				sheet.Gap()
			}
			d.print(sheet, len(files) > 1)
		}
		if sheet.Err() != nil {
			return sheet.Err()
		}
	}
	if failed != nil {
		return exit.Unusable(errors.Join(failed...))
	}
	for _, d := range results {
		if slices.ContainsFunc(d.Findings, func(f finding) bool { return f.Level != note }) {
			return exit.ErrFound
		}
	}
	return nil
}

// checkup reads the file and tries its servers.
func (s *settings) checkup(ctx context.Context, path string, stderr *os.File) (*checkup, error) {
	cfg, err := s.file.Load(path)
	if err != nil && len(cfg.Servers) == 0 {
		return nil, err
	}
	problems := servers.Problems(cfg, err)
	var unset []string
	cfg.Servers = slices.DeleteFunc(cfg.Servers, func(s mcphybrid.ServerConfig) bool { // it is one of these
		if s.Unset != nil && !s.Disabled {
			unset = append(unset, s.Name)
		}
		return s.Unset != nil
	})
	text, readErr := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err := errors.Join(readErr, statErr); err != nil {
		return nil, err
	}
	c := &checkup{
		path: path, text: string(text), exposed: runtime.GOOS != "windows" && info.Mode().Perm()&0o044 != 0,
		notes: cfg.Notes, servers: cfg.Servers, unset: unset, late: 0.5,
	}
	c.problems = problems
	opts := s.file.Options(cfg)
	if s.learn != "" {
		opts.Learn = &mcphybrid.LearnOptions{Store: store.File(s.learn)}
	}
	mgr := mcphybrid.NewManager(opts)
	defer mgr.Close()
	if err := servers.Start(ctx, mgr, stderr); err != nil {
		return nil, err
	}
	c.statuses, c.tools, c.marks = mgr.Servers(), mgr.Default().Placements(), mgr.Marks()
	c.smells = sniff(mgr.Default(), c.tools)
	c.faults, c.tokens = mgr.Problems(), mgr.Stats().Tokens
	if s.file.Logins() != "" {
		c.unsavable = s.file.CheckLogins()
	}
	return c, nil
}

// A diagnosis is what the doctor says of one file.
type diagnosis struct {
	File     string         `json:"file"`
	Servers  []serverState  `json:"servers"`
	Policy   []string       `json:"policy"` // what the default policy makes of the tools
	Tokens   tokenDiagnosis `json:"tokens"`
	Findings []finding      `json:"findings"` // the worst first
}

type serverState struct {
	Name     string          `json:"name"`
	State    mcphybrid.State `json:"state"`
	Seconds  float64         `json:"seconds"` // how long its start took
	Tools    int             `json:"tools"`
	Inline   int             `json:"inline"`
	Deferred int             `json:"deferred"`
	Tokens   int             `json:"tokens"`
}

type tokenDiagnosis struct {
	All  int `json:"all"`  // of all definitions
	Sent int `json:"sent"` // of the first request of a conversation
}

func (c *checkup) diagnose() *diagnosis {
	d := &diagnosis{
		File: c.path, Servers: []serverState{}, Policy: servers.Standings(c.tools), Findings: c.findings(),
		Tokens: tokenDiagnosis{c.tokens.All, c.tokens.Sent()},
	}
	for _, st := range c.statuses {
		row := serverState{Name: st.Name, State: st.State, Seconds: st.Took.Round(10 * time.Millisecond).Seconds(), Tools: st.Tools}
		for _, p := range c.tools {
			if p.Tool.Server() != st.Name {
				continue
			}
			row.Tokens += mcphybrid.EstimateTokens([]mcphybrid.Tool{p.Tool}, nil)
			switch p.Standing {
			case "inline":
				row.Inline++
			case "deferred", "summarized":
				row.Deferred++
			}
		}
		d.Servers = append(d.Servers, row)
	}
	for _, name := range c.unset {
		d.Servers = append(d.Servers, serverState{Name: name, State: mcphybrid.StateConfigured})
	}
	return d
}

// print writes the diagnosis: the findings, a line each, then the servers and the
// policy. With several files, each line of a finding begins with its file.
func (d *diagnosis) print(s *terminal.Sheet, several bool) {
	for _, f := range grouped(d.Findings) {
		where := ""
		if several {
			where = d.File + ": "
		}
		about := f.Kind
		if f.Server != "" {
			about = f.Server + ": " + f.Kind
		}
		s.Text(fmt.Sprintf("%s%s: %s: %s", where, f.Level, about, f.What), "→ "+f.Advice)
	}
	s.Text(d.summary())
	if len(d.Servers) == 0 {
		return
	}
	s.Gap()
	const figures = 51 // columns
	columns, strict := s.Columns()
	name := servers.NameColumn(d.names(), columns-figures, strict)
	row := func(server string, state, seconds, tools, inline, deferred, tokens any) {
		s.Row("%s  %-12v%7v%6v%7v%9v%8v", name(server), state, seconds, tools, inline, deferred, tokens)
	}
	row("server", "state", "start", "tools", "inline", "deferred", "tokens")
	for _, v := range d.Servers {
		row(v.Name, v.State, fmt.Sprintf("%.2fs", v.Seconds), v.Tools, v.Inline, v.Deferred, v.Tokens)
	}
	s.Gap()
	for _, line := range d.Policy {
		s.Text(line)
	}
	s.Text(fmt.Sprintf("about %d tokens in the first request, and %d if all tools were inline", d.Tokens.Sent, d.Tokens.All))
}

// grouped returns findings with those as one that differ in the server alone. Its Server has all
// their names.
func grouped(all []finding) (list []finding) {
	place := make(map[finding]int) // by the finding without its server
	for _, f := range all {
		if f.Server == "" {
			list = append(list, f)
			continue
		}
		alike := f
		alike.Server = ""
		if i, ok := place[alike]; ok {
			list[i].Server += ", " + f.Server
			continue
		}
		place[alike] = len(list)
		list = append(list, f)
	}
	return list
}

// names returns the servers' names.
func (d *diagnosis) names() (list []string) {
	for _, v := range d.Servers {
		list = append(list, v.Name)
	}
	return list
}

// summary counts the findings by level.
func (d *diagnosis) summary() string {
	count := make(map[level]int)
	for _, f := range grouped(d.Findings) {
		count[f.Level]++
	}
	var parts []string
	for _, l := range []level{bad, warning, note} {
		switch n := count[l]; {
		case n == 1:
			parts = append(parts, fmt.Sprintf("1 %s", l))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, l))
		}
	}
	if count[bad]+count[warning] == 0 {
		parts = append([]string{"nothing to do"}, parts...)
	}
	return d.File + ": " + strings.Join(parts, ", ")
}
