package mcphybrid

import (
	"crypto/sha256"
	"iter"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A partitionSet holds the partitions of one version of the catalogs and the
// policy.
type partitionSet struct {
	catalogs []*catalog
	policy   *policy

	mu    sync.Mutex
	byKey map[partitionKey]*lazyPartition
}

// most returns how many partitions the set has at most.
func (set *partitionSet) most() int {
	tools := 0
	for _, c := range set.catalogs {
		tools += len(c.tools)
	}
	return mostPartitions(tools)
}

// At most maxPartitions partitions are kept, fewer if they have more than maxVerdicts
// verdicts together. Each keeps at most maxPromptPrefixes first lists of each disclosure. At a limit, a new one
// takes the place of any other.
const (
	maxPartitions     = 1024
	maxVerdicts       = 16 << 20
	maxPromptPrefixes = 256 // and so many partitions in any case
)

// mostPartitions returns how many partitions of so many tools are kept.
func mostPartitions(tools int) int {
	return max(maxPromptPrefixes, min(maxPartitions, maxVerdicts/(1+tools)))
}

// A partitionKey identifies a partition in its set.
type partitionKey struct {
	screeningKey
	inlineUsed inlineUse
	nameOwners [sha256.Size]byte
}

type lazyPartition struct {
	once sync.Once
	partition
}

// current reports whether p was made from the newest catalogs and policy.
func (s *tenant) current(p *partition) bool {
	if p == nil || p.policy != s.policy.Load() || p.own() != s.cur.Load() {
		return false
	}
	return s.below == nil || p.catalogs[0] == s.below.cur.Load()
}

// forgetPartitions drops the kept partitions, and with them their catalogs.
func (s *tenant) forgetPartitions() {
	s.partitioning.Lock()
	defer s.partitioning.Unlock()
	s.partitioned = nil
}

// partition returns what a session with these rights and this intent sees now.
// carry returns what of the past decides too: see carryOver.
func (s *tenant) partition(r rules.Rights, intent string, carry func([]*catalog) carryOver) *partition {
	s.partitioning.Lock()
	if old := s.partitioned; old == nil || old.policy != s.policy.Load() || !slices.Equal(old.catalogs, s.catalogs()) {
		s.partitioned = &partitionSet{catalogs: s.catalogs(), policy: s.policy.Load(), byKey: make(map[partitionKey]*lazyPartition)}
	}
	all := s.partitioned
	s.partitioning.Unlock()

	before := carry(all.catalogs)
	of := newScreeningKey(r, intent)
	key := partitionKey{screeningKey: of, inlineUsed: before.inlineUsed, nameOwners: before.key()}
	all.mu.Lock()
	p := all.byKey[key]
	if p == nil {
		if len(all.byKey) >= all.most() {
			for other := range all.byKey { // any one makes room
				delete(all.byKey, other)
				break
			}
		}
		p = new(lazyPartition)
		all.byKey[key] = p
	}
	all.mu.Unlock()
	p.once.Do(func() {
		p.id = s.partitions.Add(1)
		p.catalogs, p.policy, p.rights, p.intent, p.carryOver = all.catalogs, all.policy, r, intent, before
		p.indexer = s.indexer
		for _, c := range p.catalogs {
			p.ended = p.ended || c.ended
		}
		w := newScreener(p.policy, r, intent)
		p.decide(w, s.screeningsOf(p.catalogs, w, of))
		beside := p.resources(s)
		p.reads, p.files, p.skilled = beside.Reads(), beside.ReadsFiles(), len(beside.Skilled()) > 0
	})
	return &p.partition
}

// searchedByDefault yields the tools of c, and whether a session without restrictions searches for
// them.
func (s *tenant) searchedByDefault(c *catalog) iter.Seq2[*BridgeTool, bool] {
	p := &partition{catalogs: []*catalog{c}, policy: s.policy.Load(), rights: rules.Rights{}.And(s.metaAccess)}
	w := newScreener(p.policy, p.rights, "")
	p.decide(w, []*screening{s.screenings.of(c, w, newScreeningKey(p.rights, ""))})
	return func(yield func(*BridgeTool, bool) bool) {
		for t, st := range p.each() {
			if !yield(t, st.Searchable()) {
				return
			}
		}
	}
}
