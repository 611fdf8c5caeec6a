package mcphybrid

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// What rights, pins and rules decide of each tool alone; partition.go decides the rest, by how much
// room there is. A screening takes over what the one before has of the servers that have not changed,
// and costs what the changed ones have:
//
//	servers      a  b  c     a  b' c
//	screening    a1 b1 c1    a1 b2 c1    a1 and c1 are shared
//
// All partitions of the same rights and intent share it, those of users too. It keeps no catalog
// and no tool alive.

// A screening says of each tool of a catalog what is decided of it alone: it is hidden, pinned,
// summarized or undecided. It never changes.
type screening struct {
	servers    []*serverVerdicts // by index of the server; nil for one without tools
	seen       int               // number of tools that are not hidden
	summarized int               // and of those that are summarized
	singled    []int             // indexes of the servers with a tool that is to get room before others; ascending

	// Screenings of one line were made one from the other, and are numbered in that order.
	line, number uint64
	news         []screeningNews // what was decided anew, ascending
	since        uint64          // news has all of the screenings with greater numbers
}

// A screeningNews says that the tools of a server were new in a screening.
type screeningNews struct {
	number uint64 // of the screening
	server int    // number of the server
}

// maxScreeningNews is how many servers with new tools a screening tells of.
const maxScreeningNews = 256

// A screener decides each tool by itself.
type screener struct {
	policy   *policy
	rights   rules.Rights
	applies  []bool // which rules apply to the intent
	included bool   // one of these includes
	plain    bool   // there is nothing to decide by
}

// plainly decides nothing.
var plainly = &screener{plain: true}

func newScreener(pol *policy, rights rules.Rights, intent string) *screener {
	applies := pol.rules.Applying(intent)
	return &screener{
		policy: pol, rights: rights, applies: applies, included: pol.rules.Including(applies),
		plain: len(rights) == 0 && len(pol.pins) == 0 && len(pol.popularity) == 0 && (pol.rules == nil || len(pol.rules.Rules) == 0),
	}
}

// verdict returns the verdict on a tool: hidden, inline as a pin, summarized, or undecided.
func (w *screener) verdict(t *BridgeTool) verdict {
	if !w.rights.Permit(t.def.subject()) {
		return verdict{why: whyDenied}
	}
	v := w.policy.byRules(w.policy.matchesOf(t), w.applies, w.included)
	if v.standing == deferred {
		return undecided
	}
	return v
}

// server returns the verdicts on the tools of a server. It is plain, those of a screener that has nothing to
// decide by, if it would be the same. plain may be nil.
func (w *screener) server(tools []*BridgeTool, version uint64, plain *serverVerdicts) *serverVerdicts {
	s := &serverVerdicts{version: version}
	equal := true
	for j, t := range tools {
		v := undecided
		if !w.plain {
			v = w.verdict(t)
		}
		if j == 0 {
			s.all = v
		}
		if equal = equal && v == s.all; !equal && s.of == nil {
			s.of = slices.Repeat([]verdict{s.all}, len(tools))
		}
		if s.of != nil {
			s.of[j] = v
		}
		if v.standing != hidden {
			s.seen++
		}
		if v.standing == summarized {
			s.summarized++
		}
		s.singled = s.singled || v.why == whyPin || v == undecided && (t.def.Always || !w.plain && w.policy.popularity[t.name] > 0)
	}
	if plain != nil && equal && s.all == undecided && s.singled == plain.singled {
		return plain
	}
	return s
}

// catalog returns the screening of a catalog, made from that of another version of it, or from nil.
// number is greater than those given before. If both versions have the same tools, it is the same.
// It shares what it can with plain, the plain screening of the catalog, or nil. It may append to what
// before has, so of each screening one other is made.
func (w *screener) catalog(c *catalog, before, plain *screening, number uint64) *screening {
	if c.isPart() {
		only := w.server(c.tools, 0, nil)
		return &screening{servers: []*serverVerdicts{only}, seen: only.seen, summarized: only.summarized, singled: []int{0}, line: number, number: number, since: number}
	}
	if before == nil {
		before = &screening{line: number, since: number}
	}
	now, was := c.list.servers, before.servers
	first, last := 0, 0 // so many are the same at the beginning and at the end
	for first < min(len(now), len(was)) && was[first].isOf(now[first]) {
		first++
	}
	for last < min(len(now), len(was))-first && was[len(was)-1-last].isOf(now[len(now)-1-last]) {
		last++
	}
	was = was[first : len(was)-last]
	if len(was) == 0 && first+last == len(now) && before.number > 0 {
		return before
	}
	x := &screening{
		servers: make([]*serverVerdicts, len(now)), seen: before.seen, summarized: before.summarized,
		line: before.line, number: number, news: before.news, since: before.since,
	}
	copy(x.servers, before.servers[:first])
	copy(x.servers[len(now)-last:], before.servers[len(before.servers)-last:])
	moved := make(map[uint64]*serverVerdicts) // those that were, by version
	for _, s := range was {
		if s != nil {
			x.seen, x.summarized = x.seen-s.seen, x.summarized-s.summarized
			moved[s.version] = s
		}
	}
	shift := len(now) - len(before.servers)
	from, _ := slices.BinarySearch(before.singled, first)
	to, _ := slices.BinarySearch(before.singled, len(before.servers)-last)
	x.singled = append(x.singled, before.singled[:from]...)
	for k := first; k < len(now)-last; k++ {
		if now[k] == nil || len(now[k].tools) == 0 {
			continue
		}
		s := moved[now[k].version]
		if s == nil {
			var like *serverVerdicts
			if plain != nil {
				like = plain.servers[k]
			}
			s = w.server(now[k].tools, now[k].version, like)
			x.news = append(x.news, screeningNews{number, now[k].number})
		}
		x.servers[k] = s
		x.seen, x.summarized = x.seen+s.seen, x.summarized+s.summarized
		if s.singled {
			x.singled = append(x.singled, k)
		}
	}
	for _, k := range before.singled[to:] {
		x.singled = append(x.singled, k+shift)
	}
	if drop := len(x.news) - maxScreeningNews; drop > 0 {
		x.since = x.news[drop-1].number
		x.news = x.news[drop:]
	}
	return x
}

// isOf reports whether s has the verdicts on what a server has, which may be nothing.
func (s *serverVerdicts) isOf(server *serverTools) bool {
	if server == nil || len(server.tools) == 0 {
		return s == nil
	}
	return s != nil && s.version == server.version
}

// newsSince returns the numbers of the servers whose tools are new since a screening of that line and
// number. It is not ok if that can't be told.
func (x *screening) newsSince(line, number uint64) (servers []int, ok bool) {
	if x.line != line || number < x.since || number > x.number {
		return nil, false
	}
	for _, n := range slices.Backward(x.news) {
		if n.number <= number {
			break
		}
		servers = append(servers, n.server)
	}
	return servers, true
}

// screenings have the last screening of a tenant's catalog for each rights and intent that
// sessions of the tenant, or of users above it, have. At most as many as partitions.
type screenings struct {
	mu     sync.Mutex
	policy *policy
	made   atomic.Uint64
	byKey  map[screeningKey]*lastScreening
	plain  lastScreening
}

// A screeningKey identifies what tools are screened by. The intent has a field of its own: it can be any
// text, and joined with the rights it could look like others.
type screeningKey struct{ intent, rights string }

func newScreeningKey(r rules.Rights, intent string) screeningKey {
	key := screeningKey{intent: intent}
	if len(r) > 0 {
		key.rights = fmt.Sprintf("%q", r)
	}
	return key
}

type lastScreening struct {
	mu sync.Mutex
	*screening
}

// next replaces last by the screening of c, and returns it.
func (last *lastScreening) next(c *catalog, w *screener, plain *screening, made *atomic.Uint64) *screening {
	last.mu.Lock() // before the number is taken, so that numbers ascend
	defer last.mu.Unlock()
	last.screening = w.catalog(c, last.screening, plain, made.Add(1))
	return last.screening
}

// of returns the screening of c for the rights and the intent of w, which key has.
func (all *screenings) of(c *catalog, w *screener, key screeningKey) *screening {
	plain := all.plain.next(c, plainly, nil, &all.made)
	if w.plain {
		return plain
	}
	all.mu.Lock()
	if all.policy != w.policy {
		all.policy, all.byKey = w.policy, make(map[screeningKey]*lastScreening)
	}
	last := all.byKey[key]
	if last == nil {
		if len(all.byKey) >= mostPartitions(len(c.tools)) {
			for other := range all.byKey { // any one makes room
				delete(all.byKey, other)
				break
			}
		}
		last = new(lastScreening)
		all.byKey[key] = last
	}
	all.mu.Unlock()
	return last.next(c, w, plain, &all.made)
}

// screeningsOf returns the screenings of catalogs, which the tenant's sessions see.
func (s *tenant) screeningsOf(catalogs []*catalog, w *screener, key screeningKey) []*screening {
	list := make([]*screening, len(catalogs))
	for i, c := range catalogs {
		of := s
		if i < len(catalogs)-1 {
			of = s.below
		}
		list[i] = of.screenings.of(c, w, key)
	}
	return list
}
