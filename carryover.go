package mcphybrid

// What counts in a session though its catalogs no longer say it.

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// A carryOver is what was before in a session and still counts beside its catalogs. It is
// taken when they change, at the next look.
type carryOver struct {
	inlineUsed inlineUse

	// nameOwners says whose tool a name means, by the name, if the catalogs alone would
	// give it to another owner: see Session.nameOwners.
	nameOwners map[string]*owner
}

// key returns a hash that identifies p.nameOwners, however many names there are.
func (p carryOver) key() (sum [sha256.Size]byte) {
	if len(p.nameOwners) == 0 {
		return sum
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.nameOwners)) {
		fmt.Fprintf(h, "%s %q,", name, p.nameOwners[name].user)
	}
	h.Sum(sum[:0])
	return sum
}

// carryOver returns what of the session before counts beside catalogs. The caller holds mu.
func (s *Session) carryOver(catalogs []*catalog) carryOver {
	return carryOver{inlineUsed: s.inlineUsed(catalogs), nameOwners: s.nameOwners(catalogs)}
}

// An inlineUse is a part of the room for inline tools.
type inlineUse struct{ tools, tokens int }

// inlineUsed returns the room for inline tools that restored tools use which were inline
// when the session was saved, and whose server is missing here. So what was deferred does not move up in the
// place of a server that is not here. The caller holds mu.
func (s *Session) inlineUsed(catalogs []*catalog) (r inlineUse) {
	if len(s.restored) == 0 {
		return r
	}
	for _, e := range s.shown {
		if e.slot != asTool || e.section == noSection {
			continue
		}
		if s.restored.isAway(e.tool, catalogs) && !isThere(e.tool, catalogs) {
			r.tools++
			r.tokens += s.tenant.toolTokens(e.tool)
		}
	}
	return r
}
