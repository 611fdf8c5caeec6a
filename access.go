package mcphybrid

import (
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Access says by name which tools may be used. Each entry is a name or a
// pattern, in which * stands for any run of characters and ? for one. The zero
// value permits every tool.
type Access struct {
	// Allow, if not empty, lists the only tools that may be used.
	Allow []string

	// Deny lists tools that may not be used, allowed or not.
	Deny []string
}

// permits reports whether a allows name and does not deny it.
func (a Access) permits(name string) bool {
	return !rules.MatchAny(a.Deny, name) && (len(a.Allow) == 0 || rules.MatchAny(a.Allow, name))
}

// empty reports whether a permits everything.
func (a Access) empty() bool { return len(a.Allow) == 0 && len(a.Deny) == 0 }

func (a Access) clone() Access {
	return Access{Allow: slices.Clone(a.Allow), Deny: slices.Clone(a.Deny)}
}

// rights are what a session may use: what all of them permit. None permit
// everything.
type rights []Access

func (r rights) permit(name string) bool {
	return !slices.ContainsFunc(r, func(a Access) bool { return !a.permits(name) })
}

// and returns r, further restricted to a.
func (r rights) and(a Access) rights {
	if a.empty() {
		return r
	}
	return append(slices.Clip(r), a.clone())
}

// mayUse reports whether r does not deny a meta tool. An allow list is about
// the servers' tools: it need not name the meta tools.
func (r rights) mayUse(meta string) bool {
	return !slices.ContainsFunc(r, func(a Access) bool { return rules.MatchAny(a.Deny, meta) })
}
