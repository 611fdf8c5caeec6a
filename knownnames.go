package mcphybrid

import (
	"slices"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A knownName is a tool that a model knows by name, though its list does not have it.
type knownName struct {
	rules.Subject
	owner *owner
}

// maxNames is how many tools a session remembers by name alone.
const maxNames = 1_000

// nameOwners returns the names that mean a user's tool which has left, or the system's
// where the user has one of that name by now: a name that the model was shown means
// the tool that it was shown. The caller holds mu.
func (s *Session) nameOwners(catalogs []*catalog) map[string]*owner {
	if len(catalogs) == 1 {
		return nil
	}
	system, user := catalogs[0], catalogs[1]
	owners := make(map[string]*owner)
	know := func(name, server string, of *owner) {
		others := user.overrides(name, server)
		if of.user != "" {
			others = !others && (system.tool(name) != nil || system.quarantined[name] != nil)
		}
		if others && owners[name] == nil {
			owners[name] = of
		}
	}
	for _, e := range s.shown {
		if e.tool != nil {
			know(e.tool.name, e.tool.def.Server, e.tool.owner)
		}
	}
	for _, t := range s.knownNames {
		know(t.Name, t.Server, t.owner)
	}
	return owners
}

// nameKnown says that the model reads of these tools in an answer. In a user's session
// their names mean them from now on, unless they meant others before.
func (s *Session) nameKnown(tools []*BridgeTool) {
	if s.tenant.below == nil || len(tools) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewLocked()
	if v.ended {
		return
	}
	listed := make(map[string]bool)
	for _, e := range s.updateShown(v) {
		if e.tool != nil {
			listed[e.tool.name] = true
		}
	}
	first := make(map[string]knownName, len(s.knownNames))
	for _, known := range s.knownNames {
		first[known.Name] = known
	}
	var names []knownName
	for _, t := range tools {
		known, ok := first[t.name]
		if !ok {
			known = knownName{t.def.subject(), t.owner}
		}
		if !listed[t.name] {
			names = append(names, known)
		}
	}
	if names != nil {
		s.remember(names)
		s.seen = weak.Pointer[partition]{} // the catalogs may have changed since the answer was found
	}
}

// remember adds to s.knownNames. Beyond the limit it forgets what was added first. The
// caller holds mu.
func (s *Session) remember(tools []knownName) {
	if s.tenant.below == nil || len(tools) == 0 { // in the system's sessions, a name has one owner anyway
		return
	}
	known := make(map[string]bool, len(tools))
	var names []knownName // newest first
	for _, list := range [][]knownName{tools, s.knownNames} {
		for _, t := range slices.Backward(list) {
			if !known[t.Name] && len(names) < maxNames {
				known[t.Name] = true
				names = append(names, t)
			}
		}
	}
	slices.Reverse(names)
	s.knownNames = names
}

// isAway reports whether t is a tool of a saved state, and its server has not listed its
// tools here: the tool has not left.
func (k restoredTools) isAway(t *BridgeTool, catalogs []*catalog) bool {
	kept := k[t.name]
	return kept != nil && kept.is(t) && !kept.removed && !hasListed(catalogs, t.owner, t.def.Server)
}
