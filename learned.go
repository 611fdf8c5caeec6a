package mcphybrid

import (
	"cmp"
	"slices"
	"time"
)

// What the sessions of a tenant used comes sooner in its searches: see [LearnOptions]. It is
// counted here, kept by internal/usage, and stored by stores.go.
// search/EXPERIMENTS.md has what this finds, and why there are no pairs of tools used together.
const (
	learnedDepth = 20  // so many of the best hits may change places
	learnedLeast = 1.5 // sessions that must have used a tool: two, not long ago
	learnedGain  = 0.2 // of the best score, which a tool gains that many sessions used
	learnedHalf  = 3   // it gains half if so many did
)

// learn counts that the session has called t with success, once for each tool.
func (s *Session) learn(t *BridgeTool) {
	if s.tenant.learnRecord == nil {
		return
	}
	s.mu.Lock()
	first := !s.learned[t.name] && len(s.learned) < maxLearned
	if first && s.learned == nil {
		s.learned = make(map[string]bool)
	}
	if first {
		s.learned[t.name] = true
	}
	s.mu.Unlock()
	if first {
		s.tenant.learnRecord.Note(t.name, time.Now())
	}
}

// learnedUse returns a function that returns in how many sessions the tool with a registered
// name was used, or nil if nothing is learned.
func (s *tenant) learnedUse() func(name string) float64 {
	if s.learnRecord == nil {
		return nil
	}
	now := time.Now()
	return func(name string) float64 { return s.learnRecord.Count(name, now) }
}

// preferUsed raises the scores of hits that were used, and puts them in order again. The first
// stays first: a request for something new has its words. So no score rises above its, and of
// those that are equal the more used comes sooner.
func preferUsed(found []Hit, used func(name string) float64) {
	best := found[:min(len(found), learnedDepth)]
	if used == nil || len(best) == 0 {
		return
	}
	sessions := func(h Hit) float64 {
		if n := used(h.Tool.name); n >= learnedLeast {
			return n
		}
		return 0
	}
	top, rest := best[0].Score, best[1:]
	for i := range rest {
		n := sessions(rest[i])
		rest[i].Score = min(top, rest[i].Score+learnedGain*top*n/(n+learnedHalf))
	}
	slices.SortStableFunc(rest, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(sessions(b), sessions(a)))
	})
}
