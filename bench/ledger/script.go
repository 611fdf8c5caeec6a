package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mcphybrid/mcphybrid"
)

// A script is a conversation, without what depends on the form in which it is sent.
type script struct {
	turns   []turn
	queries map[int]string // what the model searches for that wants the tool
	asides  []string       // what it says when it searches or asks for a description
}

// A turn begins with what the user says and ends with the model's answer. Before that, the model
// calls tools, one after the other.
type turn struct {
	user   string
	uses   []use
	answer string
}

type use struct {
	tool        int
	say, result string
}

// The size of a conversation, in tokens where nothing else is said.
const (
	userTurns     = 20
	systemTokens  = 400
	userTokens    = 50
	sayTokens     = 100 // before a call
	answerTokens  = 150
	resultLeast   = 200
	resultTimes   = 10 // the longest, of the least
	searchResults = mcphybrid.DefaultSearchResults
)

// A kind is how many searches a conversation takes, and in how many of them the model will want
// a second tool of those that were found.
type kind struct {
	name            string
	searches, pairs int
}

var kinds = []kind{{"focused", 2, 1}, {"wandering", 10, 5}}

// A find is what one search is for.
type find struct {
	tool, second int // second is -1 if there is none
}

// write writes a conversation. It reports false if the catalog has too few tools for it.
func (w *world) write(k kind, seed int) (*script, bool) {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	s := &script{queries: make(map[int]string)}
	finds, ok := w.finds(k, s, random)
	if !ok {
		return nil, false
	}
	wanted := schedule(k, finds)
	var known []int
	for t := range userTurns {
		next := turn{user: prose(random, userTokens)}
		calls := random.IntN(4)
		if len(wanted[t]) > 0 {
			calls = 1 + random.IntN(2)
		}
		for n := range calls {
			switch {
			case n < len(wanted[t]):
				known = append(known, wanted[t][n])
				next.uses = append(next.uses, w.use(wanted[t][n], random))
			case len(known) > 0: // again one of the last
				recent := known[max(0, len(known)-4):]
				next.uses = append(next.uses, w.use(recent[random.IntN(len(recent))], random))
			}
		}
		next.answer = prose(random, answerTokens)
		s.turns = append(s.turns, next)
	}
	for range 2 * userTurns {
		s.asides = append(s.asides, prose(random, sayTokens))
	}
	return s, true
}

// finds draws what is searched for: tools that a search finds by their own words. How often
// searches fail is another question.
func (w *world) finds(k kind, s *script, random *rand.Rand) (finds []find, ok bool) {
	from, in := make([]int, len(w.tools)), w.nothing
	for i := range from {
		from[i] = i
	}
	if deferred := w.deferring.DeferredTools(); len(deferred) > 0 {
		from, in = nil, w.deferring
		for _, t := range deferred {
			from = append(from, w.byName[t.Name()])
		}
	}
	random.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	drawn := make(map[int]bool)
	for _, i := range from {
		if len(finds) == k.searches {
			break
		}
		if drawn[i] || !w.callable(i) {
			continue
		}
		var others []int
		found := false
		for _, hit := range in.Default().Find(context.Background(), w.query(i), mcphybrid.SearchOptions{Limit: searchResults, DeferredOnly: true}).Hits {
			j := w.byName[hit.Tool.Name()]
			found = found || i == j
			if j != i && !drawn[j] && w.callable(j) {
				others = append(others, j)
			}
		}
		f := find{i, -1}
		if len(finds) < k.pairs && len(others) > 0 {
			f.second = others[0]
		}
		if !found || len(finds) < k.pairs && f.second < 0 {
			continue
		}
		for _, j := range []int{f.tool, f.second} {
			if j >= 0 {
				drawn[j] = true
				s.queries[j] = w.query(j)
			}
		}
		finds = append(finds, f)
	}
	random.Shuffle(len(finds), func(i, j int) { finds[i], finds[j] = finds[j], finds[i] })
	return finds, len(finds) == k.searches
}

// schedule returns which tools are first wanted in which turn. A focused conversation finds
// what it needs in its first third, a wandering one goes on finding.
func schedule(k kind, finds []find) [][]int {
	wanted := make([][]int, userTurns)
	for n, f := range finds {
		at, gap := n*userTurns/k.searches, 1
		if k.searches == 2 {
			at, gap = n*userTurns*3/10, 2
		}
		wanted[at] = append(wanted[at], f.tool)
		if f.second >= 0 {
			wanted[at+gap] = append(wanted[at+gap], f.second)
		}
	}
	return wanted
}

// use returns a call of a tool. The lengths of results are spread evenly over their logarithms.
func (w *world) use(tool int, random *rand.Rand) use {
	tokens := int(resultLeast * math.Pow(resultTimes, random.Float64()))
	return use{tool, prose(random, sayTokens), prose(random, tokens)}
}

// hostPrompt is the host's own system prompt.
var hostPrompt = prose(rand.New(rand.NewPCG(1, 1)), systemTokens)

// scripts returns n scripts, or fewer if the catalog is too small.
func (w *world) scripts(k kind, n int) []*script {
	var all []*script
	for seed := 0; len(all) < n && seed < n+20; seed++ {
		if s, ok := w.write(k, seed); ok {
			all = append(all, s)
		}
	}
	return slices.Clip(all)
}
