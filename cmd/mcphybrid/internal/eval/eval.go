// Package eval measures how well search finds tools. It needs queries labelled with the
// tools that answer them, and tools: those of running servers, or of a corpus.
//
//	mcphybrid eval -queries Q.jsonl [-config FILE] [-least SHARE] [-suggest FILE] [-hints FILE] [-json]
//	mcphybrid eval -queries Q.jsonl -tools T.jsonl [-ranker R] [-json] [-misses N]
//	mcphybrid eval -corpora DIR [-ranker R] [-json] [-save RUN.json]
//	mcphybrid eval -compare BASE.json OTHER.json...
//
// The first form starts the servers of a configuration file, and says of each query whose
// tool is not first why: see [parseWanted] for the form of the queries. The exit status is 1 if
// hit@5 is below -least, and 2 if something can't be measured.
//
// The third form measures each sub-folder of DIR that has tools.jsonl and
// queries.jsonl. The mean counts each corpus the same. The last form compares saved
// runs, for example of two versions of this library: see [compare].
//
// -slips misspells one long word in three of each query. -context N puts N paragraphs
// of other text before it. -sentences writes queries in several sentences, as models do:
// "framed" puts a sentence on each side that says nothing, and "joined" joins two requests
// with the same relevant tools, and leaves out queries that have no such other.
//
// -half takes half of the queries, by a hash of their texts: "chosen", to choose a way by,
// or "aside", to report it on. See [inHalf]. -sessions N first lets N sessions use the tools
// that the other half is labelled with, as [mcphybrid.LearnOptions] learn it.
//
// The ranker "hybrid" combines the default ranker with an embedding model: -ollama URL
// or -openai URL, -model M, -alpha A. -random N takes random vectors instead of a model's:
// they must not cost anything. On a terminal, standard error shows progress.
//
// Each line of a corpus is a JSON object; further members are ignored:
//
//	{"id": …, "server": …, "name": …, "description": …, "input_schema": {…}, "annotations": {…}}
//	{"id": …, "query": …, "relevant": [ids of tools]}
//
// Instead of a file, -tools may name a folder of answers to tools/list, each with the
// member "server" added. The id of such a tool is server/name.
//
// testdata/corpus has a corpus to start with. Your own tells you more.
package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
)

var rankers = []string{"default", "lexical", "classic", "hybrid"}

const depth = 10 // results considered per query

// Main runs the command and returns its exit status.
func Main(ctx context.Context, args []string, _, out, errs *os.File) int {
	return exit.With(command(ctx, args, out, errs), "eval", errs)
}

func command(ctx context.Context, args []string, stdout, stderr *os.File) error {
	var s settings
	rest, err := s.parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
	case s.form == ofServers:
		return s.runServers(ctx, stdout, stderr)
	default:
		err = s.run(rest, stdout, onTerminal(stderr))
	}
	if err != nil {
		return exit.Unusable(err)
	}
	return nil
}

// A form is what is measured: the flag that asks for it.
type form string

const (
	ofServers form = "-config"
	ofTools   form = "-tools"
	ofCorpora form = "-corpora"
	ofRuns    form = "-compare"
)

// settings are what the flags say.
type settings struct {
	form                        form
	tools, queriesFile, corpora string

	ranker  string
	service service
	alpha   float64

	slips     bool
	context   int
	sentences string
	half      string
	sessions  int

	asJSON, compare bool
	misses          int
	save            string

	servers        servers.File
	least          float64
	hints, suggest string // files
}

// only has the flags that have an effect in some forms only.
var only = map[string][]form{
	"config": {ofServers}, "dialect": {ofServers}, "tokens": {ofServers}, "least": {ofServers}, "hints": {ofServers}, "suggest": {ofServers},
	"tools": {ofTools}, "misses": {ofTools}, "corpora": {ofCorpora}, "save": {ofCorpora}, "queries": {ofServers, ofTools},
	"ranker": {ofServers, ofTools, ofCorpora}, "slips": {ofServers, ofTools, ofCorpora}, "context": {ofServers, ofTools, ofCorpora},
	"sentences": {ofTools, ofCorpora}, "half": {ofTools, ofCorpora}, "sessions": {ofTools, ofCorpora},
	"json":   {ofServers, ofTools, ofCorpora},
	"ollama": {ofTools, ofCorpora}, "openai": {ofTools, ofCorpora}, "model": {ofTools, ofCorpora}, "random": {ofTools, ofCorpora}, "alpha": {ofTools, ofCorpora},
}

func (s *settings) parse(args []string, errs io.Writer) (rest []string, err error) {
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&s.queriesFile, "queries", "", "the `file` with the queries")
	s.servers.AddFlags(flags, "the `file` in which an MCP client has its servers")
	flags.Float64Var(&s.least, "least", 0, "with -config: fail if hit@5 is below this `share`, from 0 to 1")
	flags.StringVar(&s.suggest, "suggest", "", "with -config: write hints that help the misses to a `file`")
	flags.StringVar(&s.hints, "hints", "", "with -config: use the hints of a `file`, as -suggest writes them")
	flags.StringVar(&s.tools, "tools", "", "the `file` with the tools, or a folder of answers to tools/list")
	flags.StringVar(&s.corpora, "corpora", "", "instead of -queries: a `folder` of corpora")
	flags.StringVar(&s.ranker, "ranker", rankers[0], "how tools are ranked: "+strings.Join(rankers, ", "))
	flags.BoolVar(&s.asJSON, "json", false, "print JSON")
	flags.IntVar(&s.misses, "misses", 0, "with -tools: show the first `N` queries with recall@5 below 1")
	flags.BoolVar(&s.slips, "slips", false, "misspell one long word in three of each query")
	flags.IntVar(&s.context, "context", 0, "put `N` paragraphs of other text before each query")
	flags.StringVar(&s.sentences, "sentences", "", "write queries in several sentences: `framed` or joined")
	flags.StringVar(&s.half, "half", "", "take half of the queries: `chosen` or aside")
	flags.IntVar(&s.sessions, "sessions", 0, "with -half: learn from `N` sessions of the other half")
	flags.StringVar(&s.save, "save", "", "with -corpora: save the run to a `file`, for -compare")
	flags.BoolVar(&s.compare, "compare", false, "compare saved runs with the first: -compare BASE.json OTHER.json...")
	flags.StringVar(&s.service.ollama, "ollama", "", "with -ranker hybrid: the `URL` of Ollama, such as http://localhost:11434")
	flags.StringVar(&s.service.openai, "openai", "", "with -ranker hybrid: the `URL` of a service with OpenAI's /embeddings")
	flags.StringVar(&s.service.model, "model", "nomic-embed-text", "with -ranker hybrid: the embedding `model`")
	flags.IntVar(&s.service.random, "random", 0, "with -ranker hybrid: instead of a model, random vectors with `N` dimensions")
	flags.Float64Var(&s.alpha, "alpha", 0, "with -ranker hybrid: what the meaning weighs, up to 1; negative: nothing; 0: what each search finds it is worth")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	rest = flags.Args()
	s.form = ofServers
	switch {
	case s.compare:
		s.form = ofRuns
	case s.corpora != "":
		s.form = ofCorpora
	case s.tools != "":
		s.form = ofTools
	}
	flags.Visit(func(f *flag.Flag) {
		if forms, some := only[f.Name]; some && err == nil && !slices.Contains(forms, s.form) {
			err = fmt.Errorf("-%s has no effect with %s", f.Name, s.form)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case s.compare && len(rest) < 2:
		return nil, errors.New("-compare needs at least two saved runs")
	case s.compare:
	case len(rest) > 0 || s.queriesFile == "" && s.corpora == "":
		return nil, errors.New("-queries is needed, with -config or -tools, or -corpora, and no other arguments")
	case !slices.Contains(rankers, s.ranker):
		return nil, fmt.Errorf("there is no ranker %q; there are %s", s.ranker, strings.Join(rankers, ", "))
	case s.ranker == "hybrid" && s.form == ofServers:
		return nil, errors.New("-ranker hybrid can't be measured with -config")
	case s.context < 0 || s.context > len(paragraphs):
		return nil, fmt.Errorf("-context is %d, must be 0 to %d", s.context, len(paragraphs))
	case !(s.least >= 0 && s.least <= 1): // NaN is neither
		return nil, fmt.Errorf("-least is %v, must be 0 to 1", s.least)
	case !slices.Contains([]string{"", framed, joined}, s.sentences):
		return nil, fmt.Errorf("-sentences is %q, must be %q or %q", s.sentences, framed, joined)
	case s.sessions < 0 || s.sessions > 0 && s.half == "":
		return nil, errors.New("-sessions needs -half, and must not be negative")
	case !slices.Contains([]string{"", chosenHalf, asideHalf}, s.half):
		return nil, fmt.Errorf("-half is %q, must be %q or %q", s.half, chosenHalf, asideHalf)
	}
	return rest, nil
}

// run measures all but running servers. It writes the report to stdout, and the progress
// to term.
func (s *settings) run(files []string, stdout, term io.Writer) error {
	show := &progress{w: term}
	defer show.end()
	switch s.form {
	case ofRuns:
		return compareFiles(files, stdout)
	case ofCorpora:
		return s.runCorpora(stdout, show)
	}
	m, err := s.measure(s.tools, s.queriesFile, show)
	if err != nil {
		return err
	}
	defer m.Close()
	if s.asJSON {
		return json.NewEncoder(stdout).Encode(m.figures)
	}
	report := m.table()
	for _, i := range m.missed[:max(0, min(s.misses, len(m.missed)))] {
		report += m.miss(m.queries[i])
	}
	_, err = io.WriteString(stdout, report)
	return err
}

// alter changes queries as the flags say.
func (s *settings) alter(queries []query) {
	for i := range queries {
		if s.slips {
			queries[i].Query = misspelled(queries[i].Query, uint64(i))
		}
		queries[i].Query = inContext(queries[i].Query, s.context)
	}
}

// A measurement is a subject and how it answered queries.
type measurement struct {
	figures
	*subject
	queries []query
	answers [][]string // by query
	missed  []int      // the queries with a recall@5 below 1
}

// measure asks the queries of one file for the tools of another.
func (s *settings) measure(toolsFile, queriesFile string, show *progress) (*measurement, error) {
	tools, queries, err := readCorpus(toolsFile, queriesFile)
	if err != nil {
		return nil, err
	}
	others := inHalf(queries, otherHalf(s.half))
	if queries = inHalf(queries, s.half); len(queries) == 0 {
		return nil, fmt.Errorf("%s: no query is in this half", queriesFile)
	}
	if queries = inSentences(queries, s.sentences); len(queries) == 0 {
		return nil, fmt.Errorf("%s: %w", queriesFile, errNoneJoined)
	}
	s.alter(queries)
	begun := time.Now()
	opts := mcphybrid.Options{Search: mcphybrid.RankingOptions{Ranker: mcphybrid.Ranker(s.ranker)}}
	var ready <-chan struct{}
	if s.ranker == "hybrid" {
		e, err := s.service.embedder()
		if err == nil {
			_, err = e.EmbedQuery(context.Background(), "is there a model?")
		}
		if err != nil {
			return nil, err
		}
		opts.Search.Ranker = mcphybrid.RankerDefault
		opts.Semantic, ready = hybrid(e, s.alpha, len(tools), show)
	}
	m := &measurement{queries: queries}
	var learned document
	if s.sessions > 0 {
		opts.Learn = &mcphybrid.LearnOptions{Store: &learned}
	}
	if m.subject, err = newSubject(tools, opts); err != nil {
		return nil, err
	}
	if s.sessions > 0 {
		err = m.learn(&learned, others[:min(s.sessions, len(others))])
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	if ready != nil {
		<-ready
	}
	m.Search(queries[0].Query, depth)
	build := time.Since(begun)
	answers, times := m.ask(queries, show)
	show.end()
	if m.failed != nil {
		return nil, m.failed
	}
	m.answers = answers
	m.figures, m.missed = newFigures(queries, answers)
	m.Ranker, m.figures.Tools = s.ranker, len(tools)
	m.BuildMS, m.QueryUSP50, m.QueryUSP99 = build.Seconds()*1e3, percentile(times, 50), percentile(times, 99)
	return m, nil
}

// A subject is a Manager with the tools of a corpus, all deferred.
type subject struct {
	*mcphybrid.Manager
	ids    map[[2]string]string // ids of tools, by server and name
	failed error                // of a search by meaning
}

// newSubject adds tools as a host would, server by server in the order of the file.
func newSubject(tools []tool, opts mcphybrid.Options) (*subject, error) {
	opts.Inline.Max = -1
	opts.Search.Limit = max(depth, len(tools)) // all, for the rank of a miss
	opts.Limits.MaxDefinition = 1 << 30
	s := &subject{Manager: mcphybrid.NewManager(&opts), ids: make(map[[2]string]string)}
	var servers []string
	of := make(map[string][]mcpserver.ServerTool)
	for _, t := range tools {
		if of[t.Server] == nil {
			servers = append(servers, t.Server)
		}
		definition := mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema)
		definition.Title, definition.Annotations = t.Title, t.Annotations
		of[t.Server] = append(of[t.Server], mcpserver.ServerTool{Tool: definition})
		s.ids[[2]string{t.Server, t.Name}] = t.ID
	}
	for _, name := range servers {
		if err := s.AddTools(name, of[name]...); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// find returns the ids of the n best tools, best first, and the time of the search.
func (s *subject) find(query string, n int) (ids []string, took time.Duration) {
	begun := time.Now()
	answer := s.Default().Find(context.Background(), query, mcphybrid.SearchOptions{Limit: n})
	took = time.Since(begun)
	s.failed = cmp.Or(s.failed, answer.Err)
	for _, h := range answer.Hits {
		ids = append(ids, s.ids[[2]string{h.Tool.Server(), h.Tool.OriginalName()}])
	}
	return ids, took
}

// ask returns the results of each query and the sorted times of all searches. It asks
// each query five times, or until a second has passed.
func (s *subject) ask(queries []query, show *progress) (answers [][]string, times []time.Duration) {
	begun := time.Now()
	doing := "asking query"
	for pass := 0; pass == 0 || pass < 5 && time.Since(begun) < time.Second; pass++ {
		for i, q := range queries {
			ids, took := s.find(q.Query, depth)
			answers, times = append(answers, ids), append(times, took)
			show.show(doing, i+1, len(queries))
		}
		doing = "asking again, for the times: query"
	}
	slices.Sort(times)
	return answers[:len(queries)], times
}

// miss returns, in readable form, the rank of each relevant tool among all tools, and
// the first 5 tools found.
func (s *subject) miss(q query) string {
	text := fmt.Sprintf("\n%s: %s\n", q.ID, q.Query)
	all, _ := s.find(q.Query, len(s.ids))
	for _, id := range q.Relevant {
		rank := "not found"
		if at := slices.Index(all, id); at >= 0 {
			rank = fmt.Sprintf("rank %d", at+1)
		}
		text += fmt.Sprintf("  relevant: %s, %s\n", id, rank)
	}
	return text + "  found: " + strings.Join(all[:min(5, len(all))], ", ") + "\n"
}
