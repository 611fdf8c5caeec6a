package eval

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// runServers measures the tools of running servers.
func (s *settings) runServers(ctx context.Context, stdout, stderr *os.File) error {
	ctx, stop := exit.Interrupts(ctx)
	defer stop()
	r, err := s.measureServers(ctx, stderr)
	switch {
	case ctx.Err() != nil:
		return servers.ErrInterrupted
	case err != nil:
		return exit.Unusable(err)
	}
	if s.asJSON {
		err = terminal.PrintJSON(stdout, r)
	} else {
		sheet := terminal.NewSheet(stdout)
		r.print(sheet)
		err = sheet.Err()
	}
	if err == nil && !r.Passed {
		return exit.ErrFound
	}
	return err
}

// An evaluation is a Manager with running servers, and what is asked of it.
type evaluation struct {
	*mcphybrid.Manager
	hints   *enricher
	given   hintTable // of -hints
	queries []query
	wanted  [][]*mcphybrid.BridgeTool // by query
}

// measureServers starts the servers and asks the queries.
func (s *settings) measureServers(ctx context.Context, stderr *os.File) (*report, error) {
	data, err := readBounded(s.queriesFile)
	if err != nil {
		return nil, err
	}
	x := &evaluation{hints: &enricher{}}
	if x.queries, err = parseWanted(s.queriesFile, data); err != nil {
		return nil, err
	}
	if s.hints != "" {
		if data, err = readBounded(s.hints); err != nil {
			return nil, err
		}
		if x.given, err = parseHints(s.hints, data); err != nil {
			return nil, err
		}
	}
	cfg, err := s.servers.Load(s.servers.Path)
	if err != nil {
		return nil, err // also of one server, since the others would be found too well
	}
	complaints := terminal.NewSheet(stderr)
	for _, note := range cfg.Notes {
		complaints.Text(note)
	}
	opts := s.servers.Options(cfg)
	opts.Search.Ranker, opts.Search.Limit, opts.Enricher = mcphybrid.Ranker(s.ranker), mcphybrid.NoLimit, x.hints
	x.Manager = mcphybrid.NewManager(opts)
	defer x.Close()
	if err := servers.Start(ctx, x.Manager, stderr); err != nil {
		return nil, err
	}
	for _, st := range x.Servers() {
		if st.State == mcphybrid.StateReady || st.State == mcphybrid.StateDegraded {
			continue
		}
		const why = "without its tools, the others would be found too well"
		if st.Err == nil {
			return nil, fmt.Errorf("%s: server %q is %s; %s", s.servers.Path, st.Name, st.State, why)
		}
		return nil, fmt.Errorf("%s: server %q is %s (%w); %s", s.servers.Path, st.Name, st.State, st.Err, why)
	}
	for _, p := range x.Problems() {
		complaints.Text(p.Error()) // a tool may be left out
	}
	all := newCatalog(x.Default().Placements())
	if x.wanted, err = all.wanted(s.queriesFile, x.queries); err != nil {
		return nil, err
	}
	if x.given, err = x.given.labelled(s.hints, all); err != nil {
		return nil, err
	}
	if err := x.hints.use(ctx, x.Manager, x.given); err != nil {
		return nil, err
	}
	s.alter(x.queries)
	r := &report{Servers: len(x.Servers()), Tools: len(all.tools), Least: s.least, file: s.queriesFile}
	answers := x.ask()
	r.scores = x.scores(answers)
	r.Passed = r.Hit5 >= s.least
	for i, a := range answers {
		if a.Rank != 1 && a.Wanted != nil {
			r.Misses = append(r.Misses, newMiss(x.queries[i], x.wanted[i], a))
		}
	}
	suggested, err := x.help(ctx, r, answers)
	if err == nil && s.suggest != "" {
		err = suggested.write(s.suggest)
	}
	return r, err
}

// ask returns the answers to all queries.
func (x *evaluation) ask() []findability.Answer {
	answers := make([]findability.Answer, len(x.queries))
	for i, q := range x.queries {
		answers[i] = findability.Ask(x.Default(), q.Query, x.wanted[i]...)
	}
	return answers
}

// scores returns the figures of answers. A query is answered by any tool that it wants.
func (x *evaluation) scores(answers []findability.Answer) scores {
	const right = "right"
	queries, found := make([]query, len(answers)), make([][]string, len(answers))
	for i, a := range answers {
		for range a.Hits[:min(len(a.Hits), depth)] {
			found[i] = append(found[i], "")
		}
		if len(x.wanted[i]) > 0 {
			queries[i].Relevant = []string{right}
		}
		if a.Rank > 0 && a.Rank <= depth {
			found[i][a.Rank-1] = right
		}
	}
	f, _ := newFigures(queries, found)
	return scores{f.Queries, f.Hit1, f.Hit5, f.MRR10, f.Unanswerable, f.Rejected}
}

// help tries hints for the tools that a model does not see: the words that they lack. It
// tells the report which are seen with them, and returns these hints and the given ones.
func (x *evaluation) help(ctx context.Context, r *report, before []findability.Answer) (hintTable, error) {
	table, tried := x.given, make(map[int]*miss) // by query
	miss := 0
	for i, a := range before {
		if a.Rank == 1 || a.Wanted == nil {
			continue
		}
		m := &r.Misses[miss]
		miss++
		if a.Rank > 0 && a.Rank <= findability.Seen {
			continue
		}
		if words := suggestion(m.why); words != nil {
			m.Words, tried[i] = words, m
		}
	}
	for len(tried) > 0 {
		table = maps.Clone(x.given)
		for _, i := range slices.Sorted(maps.Keys(tried)) {
			label := findability.Label(before[i].Wanted)
			h := table[label]
			h.Preconditions = append(slices.Clone(h.Preconditions), hint(tried[i].Words))
			if h.Check() != nil { // it has no more room
				delete(tried, i)
				continue
			}
			table[label] = h
		}
		if err := x.hints.use(ctx, x.Manager, table); err != nil {
			return nil, err
		}
		after := x.ask()
		all := len(tried)
		for i, m := range tried {
			if m.Helped = after[i].Rank; m.Helped > findability.Seen {
				m.Helped = 0
			}
			if m.Helped == 0 {
				delete(tried, i)
			}
		}
		if len(tried) == all {
			helped := x.scores(after)
			r.Helped = &helped
			break
		}
		table = x.given
	}
	return table, nil
}
