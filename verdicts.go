package mcphybrid

import (
	"maps"
	"slices"
)

// A standing is what a session may do with a tool.
type standing uint8

const (
	hidden     standing = iota // the session does not know of it
	inline                     // the model gets its definition from the start
	summarized                 // deferred, but listed by name and description
	deferred                   // the model must search for it
)

// Searchable reports whether a search may find the tool.
func (st standing) Searchable() bool { return st == summarized || st == deferred }

func (st standing) String() string {
	return [...]string{hidden: "hidden", inline: "inline", summarized: "summarized", deferred: "deferred"}[st]
}

// A placementReason is the reason for a standing.
type placementReason uint8

const (
	whyDenied      placementReason = iota // hidden: an access list does not permit it
	whyOverridden                         // hidden: the name is another tool's
	whyExcluded                           // hidden: a rule excludes it
	whyNotIncluded                        // hidden: rules include other tools only
	whyPin                                // inline: it is pinned
	whyServer                             // inline: its server wants it always loaded
	whyUsed                               // inline: it is among the most used
	whyFits                               // inline: there is room for it
	whyNoSearch                           // inline: the session has no search
	whyRule                               // summarized: a rule says so
	whyCount                              // deferred: the number of inline tools is used up
	whyTokens                             // deferred: the tokens of inline tools are used up
	whyListFull                           // deferred: a session's list has no room
	whyListFixed                          // deferred: it came after a session's list was fixed
	whyUndecided                          // deferred, until it is decided who gets room
)

// A verdict is the standing of a tool and the reason for it.
type verdict struct {
	standing standing
	why      placementReason
	rule     uint16 // index of the rule, if the reason is one
}

// undecided is the verdict on a tool that is inline if there is room.
var undecided = verdict{standing: deferred, why: whyUndecided}

// A serverVerdicts has the verdicts on the tools of one server. It is shared, and does not change.
type serverVerdicts struct {
	of         []verdict // by index of the tool; nil if all are alike
	all        verdict   // that on each, if they are
	version    uint64    // of the tools
	seen       int       // number of tools that are not hidden
	summarized int       // and of those that are summarized
	singled    bool      // one is to get room before others
}

// at returns the verdict on the j-th tool.
func (s *serverVerdicts) at(j int) verdict {
	if s.of == nil {
		return s.all
	}
	return s.of[j]
}

// verdicts are those on the tools of a catalog.
type verdicts struct {
	catalog *catalog
	servers []*serverVerdicts       // by index of the server, shared; nil for one without tools
	own     map[int]*serverVerdicts // in the place of those, by index of the server
	ownTo   int                     // no index in own is greater
	rest    placementReason         // why tools are deferred that are undecided
}

// server returns the verdicts on the tools of the k-th server.
func (all *verdicts) server(k int) *serverVerdicts {
	if k <= all.ownTo {
		if own := all.own[k]; own != nil {
			return own
		}
	}
	return all.servers[k]
}

// ofTool returns the verdict on the i-th tool of the catalog.
func (all *verdicts) ofTool(i int) verdict {
	if all.catalog.isPart() {
		return all.atPlace(toolPlace{index: int32(i)})
	}
	return all.atPlace(all.catalog.places()[i])
}

// atPlace returns the verdict on the tool at a place.
func (all *verdicts) atPlace(p toolPlace) verdict {
	return all.final(all.server(int(p.server)).at(int(p.index)))
}

// final returns v, or what it is by now if it was undecided.
func (all *verdicts) final(v verdict) verdict {
	if v.why == whyUndecided {
		return verdict{standing: deferred, why: all.rest}
	}
	return v
}

// set sets the verdict on the tool at a place. It keeps the figures of its server as they are.
func (all *verdicts) set(p toolPlace, v verdict) {
	k := int(p.server)
	own := all.own[k]
	if own == nil {
		shared := all.servers[k]
		own = new(serverVerdicts)
		*own = *shared
		if own.of = slices.Clone(shared.of); own.of == nil {
			own.of = slices.Repeat([]verdict{shared.all}, len(all.catalog.toolsAt(k)))
		}
		if all.own == nil {
			all.own = make(map[int]*serverVerdicts)
		}
		all.own[k], all.ownTo = own, max(all.ownTo, k)
	}
	own.of[p.index] = v
}

// changed returns the indexes of the servers whose verdicts are not shared, ascending.
func (all *verdicts) changed() []int { return slices.Sorted(maps.Keys(all.own)) }
