package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
)

// A plainMessage is a query of clauses.
type plainMessage struct {
	terms   []plainQuery
	clauses []plainClause
	telling float64
	leads   map[int]bool
	long    float64
	gain    float64
	several bool
	wanted  map[verbClass]bool
}

// verbGain returns what a document gains that does this.
func (m *plainMessage) verbGain(does verbClass) float64 {
	switch onlyReads := len(m.wanted) == 1 && m.wanted[reads]; {
	case len(m.wanted) == 0:
		return 0
	case m.wanted[does]:
		return 0.23
	case does == noVerb, does == changes && !onlyReads, does != reads && m.wanted[changes]:
		return 0.2
	case onlyReads:
		return 0
	}
	return 0.1
}

type plainClause struct {
	members []int // numbers of terms, ascending
	passed  bool
	asks    bool
	hollow  bool
	verb    verbClass
	weight  float64
}

func (p *plainIndex) message(query string) *plainMessage {
	most := min(len(query), 16<<10)
	if p.ranker != RankerDefault {
		m, _ := p.read(query[:most])
		return m
	}
	if most == len(query) {
		if m, over := p.read(query); !over {
			return m
		}
		most -= most / 3
	}
	for ; ; most -= most / 3 {
		if m, over := p.read(query[:most/2] + "\n" + query[len(query)-most/2:]); !over {
			return m
		}
	}
}

// foreign reports whether a clause has more unknown characters of scripts without
// spaces than stop words. Its other words are not foreign, since no lexicon here
// says what they mean.
func (p *plainIndex) foreign(terms []plainTerm) bool {
	others, english := 0, 0
	for _, t := range terms {
		class, inLexicon := p.lexicon.class[t.text]
		switch {
		case t.form == whole:
		case class == stop:
			english++
		case t.form != word && !inLexicon && p.df[t.text] == 0:
			others++
		}
	}
	return others > english
}

// read returns the message of a query, and whether there was no room for a term.
func (p *plainIndex) read(query string) (message *plainMessage, over bool) {
	m := &plainMessage{leads: map[int]bool{}, long: min(max((float64(len(query))-300)/300, 0), 1)}
	number := map[string]int{}
	var texts []string
	for rest := query; rest != ""; {
		end := clauseEnd([]byte(rest))
		text := rest[:end]
		rest = rest[end:]
		var c plainClause
		add := func(t plainTerm, weight float64) {
			n, seen := number[t.text]
			if !seen {
				over = over || len(m.terms) == 255 && p.lexicon.class[t.text] != stop && (t.form != whole || p.df[t.text] > 0)
				q, ok := p.term(t, weight)
				if !ok || len(m.terms) == 255 {
					return
				}
				n = len(m.terms)
				m.terms, number[t.text] = append(m.terms, q), n
				m.telling = max(m.telling, q.telling)
			}
			if !slices.Contains(c.members, n) {
				c.members = append(c.members, n)
			}
		}
		terms := plainTerms(text)
		for _, t := range terms {
			if p.lexicon.stands[t.text] == nil {
				add(t, 1)
			}
			for _, to := range p.lexicon.stands[t.text] {
				add(plainTerm{to, to, t.written, word}, 1)
			}
		}
		for i := 1; i < len(terms) && p.ranker == RankerDefault && !p.foreign(terms); i++ {
			if one, two := terms[i-1], terms[i]; one.form == word && two.form == word {
				joined := []byte(one.written + two.written)
				joined = joined[:stem(joined)]
				if p.df[string(joined)] > 0 {
					add(plainTerm{string(joined), string(joined), string(joined), whole}, joinedWeight)
				}
			}
		}
		if len(c.members) == 0 {
			continue
		}
		slices.Sort(c.members)
		named := map[string]bool{}
		for _, n := range c.members {
			if q := m.terms[n]; q.ways[q.exact] > 0 {
				named[q.exact] = true
			}
		}
		for _, n := range c.members {
			for term := range m.terms[n].weight {
				if term != m.terms[n].exact && named[term] {
					m.terms[n].weight[term] = 0
				}
			}
		}
		for _, n := range c.members {
			if q := m.terms[n]; !q.faint {
				m.leads[n] = true
				if c.verb = p.lexicon.verbs[q.text]; c.verb == noVerb && q.ways[q.exact] > 0 {
					c.verb = p.lexicon.verbs[q.exact]
				}
				break
			}
		}
		c.hollow = !slices.ContainsFunc(c.members, func(n int) bool { return !m.terms[n].fits })
		if wantsToKnow([]byte(text)) {
			c.verb = reads
		}
		m.clauses, texts = append(m.clauses, c), append(texts, text)
	}
	m.wanted = map[verbClass]bool{}
	want := func(c plainClause) {
		if c.verb != noVerb {
			m.wanted[c.verb] = true
		}
	}
	if len(m.clauses) < 2 || p.ranker != RankerDefault {
		if len(m.clauses) == 1 {
			want(m.clauses[0])
		}
		m.clauses = nil
		return m, over
	}
	end := len(m.clauses) - 1
	for end > 0 && m.clauses[end].hollow {
		end--
	}
	asking := 0
	for i := range m.clauses {
		asks, last := !m.clauses[i].hollow && p.lexicon.asks([]byte(texts[i])), i == end
		weight := 0.5
		if asks {
			asking++
			weight = 1
		} else if last {
			weight = 0.9
		}
		m.clauses[i].asks = asks
		m.clauses[i].weight = 1 - m.long*(1-weight)
		for _, n := range m.clauses[i].members {
			m.terms[n].central = m.terms[n].central || asks || last
		}
	}
	if m.gain, m.several = 0.3+2*m.long, asking > 1; m.several {
		m.gain = max(m.gain, 1.7)
	}
	for i, many := len(m.clauses)-65, 0; i >= 0; i-- {
		if m.clauses[i].asks && many < 64 {
			many++
		} else {
			m.clauses[i].passed = true
		}
	}
	for i, c := range m.clauses {
		if !c.passed && (c.asks || i == end) {
			want(c)
		}
	}
	for i := range m.terms {
		if q := &m.terms[i]; !q.central {
			factor := 1 - m.long*0.7
			q.telling *= factor
			for term, weight := range q.weight {
				q.weight[term] = uint64(math.Round(float64(weight) * factor))
			}
		}
	}
	return m, over
}

func (p *plainIndex) search(query string, n int, keep func(int) bool) []Match {
	m := p.message(query)
	least := math.Max(1, 65536*p.threshold*m.telling)
	// rank returns the documents that match some of the terms, best first.
	rank := func(members []int, extra []uint64) (found []Match) {
		for i, d := range p.docs {
			score := uint64(0)
			for _, n := range members {
				score += d.share(m.terms[n])
			}
			if extra != nil {
				score += extra[i]
			}
			if float64(score) >= least && (keep == nil || keep(i)) {
				found = append(found, Match{i, float64(score) / 65536})
			}
		}
		slices.SortStableFunc(found, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
		return found
	}
	all := make([]int, len(m.terms))
	for i := range all {
		all[i] = i
	}
	found := rank(all, nil)
	if len(m.clauses) > 0 && len(found) > 0 {
		favour := make([]uint64, len(p.docs))
		most := 0.0
		for _, q := range m.terms {
			if len(q.ways) > 0 {
				most = max(most, q.telling)
			}
		}
		for _, c := range m.clauses {
			mass, told, word := 0.0, 0.0, 0.0
			for _, n := range c.members {
				mass += m.terms[n].telling
				if len(m.terms[n].ways) > 0 {
					told += m.terms[n].telling
					word = max(word, m.terms[n].telling)
				}
			}
			if c.passed {
				continue
			}
			best := rank(c.members, nil)
			for i, d := range best[:min(len(best), 20)] {
				if d.Score < 0.5*best[0].Score {
					break
				}
				share := 65536 * c.weight * max(min(told/(2.5*most), 1), math.Pow(word/most, 3)) * math.Sqrt(min(best[0].Score/mass, 1)) / best[0].Score
				if m.several {
					d.Score /= 1 + 0.2*float64(i)
				}
				before, gain := favour[d.Doc], uint64(math.Round(share*d.Score))
				favour[d.Doc] = max(before, gain)
				if m.several && c.asks {
					favour[d.Doc] = min(favour[d.Doc]+uint64(math.Round(0.5*float64(min(before, gain)))), 2*65536)
				}
			}
		}
		for i := range favour {
			favour[i] = uint64(math.Round(found[0].Score * m.gain * float64(favour[i])))
		}
		found = rank(all, favour)
	}
	if p.ranker == RankerDefault && len(found) > 0 {
		p.lookCloser(found, m)
	}
	if n <= 0 || len(found) == 0 {
		return nil
	}
	return found[:min(n, len(found))]
}

func TestClauseEnd(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"one":                         "one",
		"Read it. Then stop.":         "Read it.| Then stop.",
		"open config.yaml at 3.5; go": "open config.yaml at 3.5;| go",
		"a, then b, and also c, or d": "a,| then b,| and also c, or d",
		"a\nb\n\nc":                   "a\n|b\n|\n|c",
		"Why? Because! So: there":     "Why?| Because!| So:| there",
		"查询天气。发送邮件！好？是": "查询天气。|发送邮件！|好？|是",
		"\x82\x81": "\x82\x81",
	} {
		var parts []string
		for rest := []byte(text); len(rest) > 0; {
			end := clauseEnd(rest)
			parts, rest = append(parts, string(rest[:end])), rest[end:]
		}
		assert.Equal(t, want, strings.Join(parts, "|"))
	}
}

func TestAsks(t *testing.T) {
	l := compileDefault()
	for _, clause := range []string{
		"merge the branch", "Please merge it", "- Merge it", "2. merge it", "can you merge it", "Could you please merge it",
		"I'd like to merge it", "I want you to merge it", "and then, merge it", "Help me merge it", "What is this?", "这是什么？", "MERGE",
		" \tmerge it", "this one? ", "这是什么？\u3000", "'merge it", "merge",
	} {
		assert.True(t, l.asks([]byte(clause)), clause)
	}
	for _, clause := range []string{
		"", "  ", "?!x", "the merge is done", "I merge things", "We merge on Mondays", "I have merge rights", "Yesterday we merged it",
		"You have access to tools", "查询天气", strings.Repeat("merge", 20), "please", "Some background first",
	} {
		assert.False(t, l.asks([]byte(clause)), clause)
	}
}

// A word is of letters, of whatever script, and of apostrophes but at its beginning.
func TestCutWord(t *testing.T) {
	var parts []string
	for rest := []byte("  'Let's MERGE, (Ärger\x80ÿ) @[`{ aZz2nd zzzzzzzzzzzzzzzzzzzzzzzz'yyy x--"); len(rest) > 0; {
		var word []byte
		var buffer [24]byte
		word, rest = cutWord(rest, buffer[:0])
		parts = append(parts, string(word)+"|"+string(rest))
	}
	assert.Equal(t, []string{
		"let's| MERGE, (Ärger\x80ÿ) @[`{ aZz2nd zzzzzzzzzzzzzzzzzzzzzzzz'yyy x--",
		"merge|, (Ärger\x80ÿ) @[`{ aZz2nd zzzzzzzzzzzzzzzzzzzzzzzz'yyy x--",
		"Ärger\x80ÿ|) @[`{ aZz2nd zzzzzzzzzzzzzzzzzzzzzzzz'yyy x--",
		"azz|2nd zzzzzzzzzzzzzzzzzzzzzzzz'yyy x--",
		"nd| zzzzzzzzzzzzzzzzzzzzzzzz'yyy x--",
		"zzzzzzzzzzzzzzzzzzzzzzzz| x--",
		"x|--",
		"|",
	}, parts)
	word, _ := cutWord([]byte("\x80a"), make([]byte, 0, 24))
	assert.Equal(t, "\x80a", string(word))
}

// "We need merge rights" asks for nothing, "we need to merge it" does.
func TestLeadsOfRequests(t *testing.T) {
	t.Parallel()
	c := compileDefault()
	for _, lead := range strings.Fields("please kindly also then and or but so now just next first second third finally lastly ok okay hi hello hey to you me us must should let's lets") {
		assert.True(t, c.asks([]byte(lead+" merge it")), lead)
	}
	for _, lead := range strings.Fields("i we i'd we'd can could would will want need have like love help let") {
		assert.False(t, c.asks([]byte(lead+" merge rights")), lead)
		assert.True(t, c.asks([]byte(lead+" to merge it")), lead)
	}
	assert.False(t, c.asks([]byte("they merge it")))
}

// chores are documents for long messages: each has words of its own.
func chores() (docs []*Document) {
	for _, line := range []string{
		"git merge_branch: Merges one branch into another", "mail send_email: Sends an e-mail to a recipient", "files read_file: Reads the contents of a file",
		"team list_members: Lists the members of the team with their office", "plan create_meeting: Creates a meeting in the calendar",
		"notes search_notes: Searches notes and messages", "shop compare_prices: Compares prices of offers", "rail find_trains: Finds trains for a trip",
		"print print_document: Prints a document", "photos show_photo: Shows a photo", "budget get_budget: Gets the budget of the year",
	} {
		name, description, _ := strings.Cut(line, ": ")
		server, name, _ := strings.Cut(name, " ")
		docs = append(docs, &Document{Server: server, Name: name, Description: description})
	}
	return docs
}

const story = `I joined the team two weeks ago and took over from Marta, who moved to the Lisbon office. She left good notes, but they end in spring. ` +
	`We meet on Mondays, and the customers get a summary by e-mail. Yesterday the printer stopped working, so I read the documents on a screen. ` +
	`A colleague showed me photos of her trip, the train was late, and I had to compare the prices of three caterers. ` +
	`My manager asked me to keep the budget in mind. The calendar is full of meetings, some files have odd names, and the members of the team are patient. `

// What a long message asks for is found as if the rest had not been said.
func TestLongMessage(t *testing.T) {
	x := NewIndex(chores(), nil)
	first := func(query string) string { return x.Document(x.Search(query, 1, nil)[0].Doc).Name }
	const want = "merge_branch"
	assert.Equal(t, want, first("merge the branch"))
	for _, query := range []string{
		story + "\\n\\nMerge the branch.", story + "Please merge the branch", "Can you merge the branch? " + story, story + "I'd like to merge the branch. " + story,
	} {
		assert.Equal(t, want, first(query), query)
	}
}

// However many clauses there are, a search takes little time and finds what the
// plain index finds.
func TestManyClauses(t *testing.T) {
	docs := chores()
	for i := range 2000 {
		docs = append(docs, &Document{Name: "issue_" + string(rune('a'+i%26)), Description: "files branches and issues"})
	}
	x, plain := NewIndex(docs, &Options{Lexicon: defaultLexicon()}), newPlainIndex(docs, RankerDefault, defaultPlainLexicon(), DefaultThreshold)
	for _, query := range []string{
		strings.Repeat("issue.\n", 2000), strings.Repeat("create issue. branch files\n", 600), "merge the branch. " + strings.Repeat("some files. ", 300),
		strings.Repeat("find trains?\nfiles.\n", 100),
	} {
		var got []Match
		mcptest.Quick(t, time.Second, func() { got = x.Search(query, 5, nil) }, "%.20q", query) // takes 5 ms
		if want := plain.search(query, 5, nil); !sameMatches(got, want) {
			t.Errorf("%.20q: got %v, want %v", query, got, want)
		}
	}
}

// Each of several requests has its documents among the first.
func TestSeveralRequests(t *testing.T) {
	docs := chores()
	for _, name := range []string{"merge_queue", "branch_merge_status", "list_branches", "abort_merge"} {
		docs = append(docs, &Document{Server: "git", Name: name, Description: "Is for merging a branch into another branch"})
	}
	x := NewIndex(docs, nil)
	var names []string
	for _, m := range x.Search("Merge the git branch into another branch. Then send to a recipient, and also look for a trip.", 5, nil) {
		names = append(names, x.Document(m.Doc).Name)
	}
	assert.Subset(t, names, []string{"merge_branch", "send_email", "find_trains"})
}

// A clause that says nothing of its own finds nothing of its own, and a document that
// answers two requests comes before those that answer one.
func TestRequestsOnOneTopic(t *testing.T) {
	docs := chores()
	for i := range 40 {
		docs = append(docs, &Document{Server: "any", Name: "tool_" + string(rune('a'+i%26)), Description: "Is a tool, does a task and returns a result"})
	}
	docs = append(docs, &Document{Server: "any", Name: "return_result", Description: "Finds a tool for a task and returns its result"})
	x := NewIndex(docs, nil)
	first := func(query string) string { return x.Document(x.Search(query, 1, nil)[0].Doc).Name }
	assert.Equal(t, "send_email", first("Tell the recipient that I am late. Find the tool for this task and return the result."))
	assert.Equal(t, "find_trains", first("Find trips for a budget. Show trips with a photo. Plan a trip."))
}

// Long or short, a message asks for what it says before a sentence that says nothing.
func TestHollowClause(t *testing.T) {
	docs := chores()
	for i := range 10 {
		docs = append(docs, &Document{Server: "any", Name: "tool_" + string(rune('a'+i)), Description: "Is a tool and returns a result"})
	}
	x := NewIndex(docs, nil)
	for _, query := range []string{"The branch is to be merged. Find the tool and return the result.", story + "Merge the branch. Find a tool. Return results.", "Find it. Merge the branch."} {
		assert.Equal(t, "merge_branch", x.Document(x.Search(query, 1, nil)[0].Doc).Name, query)
	}
	// One that is nothing else is searched all the same.
	assert.NotEmpty(t, x.Search("Find the tool. Return the result.", 20, nil))
	r := &retrieval{x: x}
	r.parse("Find the tool. Merge the branch. Get it?")
	assert.Equal(t, []bool{true, false, true}, []bool{r.clauses[0].hollow, r.clauses[1].hollow, r.clauses[2].hollow})
	assert.Equal(t, 1, r.last())
	assert.Equal(t, 1, r.requests())
}

// A document gains by the clause that it answers, and Explain says so.
func TestExplainClause(t *testing.T) {
	x := NewIndex(chores(), nil)
	const query = "Merge the branch. Send an email."
	for _, m := range x.Search(query, 2, nil) {
		e := x.Explain(query, m.Doc)
		assert.InDelta(t, m.Score, e.Score, 1e-9)
		assert.True(t, slices.ContainsFunc(e.Parts, func(p ScorePart) bool { return p.Field == "clause" && p.Score > 0 }), "%v", e.Parts)
	}
	e := x.Explain("Merge the branch", 0)
	assert.False(t, slices.ContainsFunc(e.Parts, func(p ScorePart) bool { return p.Field == "clause" }))
}

// Related words add to what a query's own words find. They don't stand for a word
// that the query has anyway, and a related generic word is generic.
func TestRelatedWordsOnlyAdd(t *testing.T) {
	docs := []*Document{
		{Name: "alpha_store", Description: "Keeps one thing"},
		{Name: "get_bargain", Description: "Has one"},
		{Name: "search_alpha", Description: "Looks for it"},
		{Name: "lookup"},
	}
	l := &Lexicon{Generic: []string{"search"}, Synonyms: [][]string{{"sale", "bargain"}}, Hints: []Hint{{[]string{"fact", "bargain"}, []string{"store", "search"}}}}
	x := NewIndex(docs, &Options{Lexicon: l, Threshold: -1})
	assert.Equal(t, 1, searchDocs(x, "bargain")[0], "in the same place, the word itself comes first")
	assert.Equal(t, []int{0, 2}, searchDocs(x, "fact"), "the hint to a generic word comes last")
	r := &retrieval{x: x}
	r.parse("sale bargain")
	var led []string
	for _, w := range r.ways {
		if !w.exact && w.weight > 0 && string(x.vocabulary.text(w.term)) == "bargain" {
			led = append(led, string(x.vocabulary.text(w.term)))
		}
	}
	assert.Empty(t, led, "bargain is in the query, so that sale need not lead to it")
}

// One tool with a deep schema does not attract queries that are about others.
func TestDeepSchema(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"properties":{"body":{"properties":{`)
	for i, word := range strings.Fields("read write file contents path folder branch email trains price photo meeting notes budget") {
		if i > 0 {
			schema.WriteByte(',')
		}
		schema.WriteString(`"` + word + `":{"description":"the ` + word + ` to read or to write, as the contents of a file"}`)
	}
	schema.WriteString(`}}}}`)
	docs := append(chores(), &Document{Server: "deep", Name: "update_body", Description: "Updates it", InputSchema: []byte(schema.String())},
		&Document{Server: "disk", Name: "spill", Description: "Lets an editor write a path"})
	x := NewIndex(docs, nil)
	for query, want := range map[string]string{"write a path": "spill", "photo": "show_photo", "budget": "get_budget"} {
		assert.Equal(t, want, x.Document(x.Search(query, 1, nil)[0].Doc).Name, query)
	}
	assert.Equal(t, "update_body", x.Document(x.Search("folder", 1, nil)[0].Doc).Name, "it is still found by what only it has")
}

// Two words that a document writes as one, and a long word with two letters swapped
// or one doubled in its ending.
func TestWrittenOtherwise(t *testing.T) {
	x := NewIndex([]*Document{{Name: "logout"}, {Name: "log_reader"}, {Name: "take_screenshot"}, {Name: "generate_report"}, {Name: "generic"}, {Name: "make_storyboard"}}, nil)
	for query, want := range map[string]string{"log out": "logout", "story board": "make_storyboard", "screen shots": "take_screenshot", "generaet": "generate_report", "geenration": "generate_report", "screenshoot": "take_screenshot"} {
		if found := x.Search(query, 1, nil); assert.NotEmpty(t, found, query) {
			assert.Equal(t, want, x.Document(found[0].Doc).Name, query)
		}
	}
	lexical := NewIndex([]*Document{{Name: "logout"}}, &Options{Ranker: RankerLexical})
	assert.Empty(t, lexical.Search("log out", 1, nil))
}

// Any text falls into clauses that make it up again, and any query is searched as
// by the plain index.
func FuzzClauses(f *testing.F) {
	docs := chores()
	x, plain := NewIndex(docs, &Options{Lexicon: defaultLexicon()}), newPlainIndex(docs, RankerDefault, defaultPlainLexicon(), DefaultThreshold)
	for _, seed := range []string{"", "Merge the branch. Then, please, send an email!", story, story + story, "a, then b\n\n- c?", "。！？查询天气", "\x81\x82\x9f", "log out; log  out", "I'd like to '", "theteam. the team"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for rest := []byte(query); len(rest) > 0; {
			end := clauseEnd(rest)
			if end < 1 || end > len(rest) {
				t.Fatalf("the clause of %q ends at %d", rest, end)
			}
			x.growth.lexicon.asks(rest[:end])
			rest = rest[end:]
		}
		if got, want := x.Search(query, 5, nil), plain.search(query, 5, nil); !sameMatches(got, want) {
			t.Fatalf("%q: got %v, want %v", query, got, want)
		}
	})
}
