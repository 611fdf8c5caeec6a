package rules

import (
	"fmt"
	"slices"
)

// Access says by patterns which tools may be used: those that one of Allow matches, or
// all if it is empty, without those that one of Deny matches.
type Access struct{ Allow, Deny []string }

// Permits reports whether a allows the tool and does not deny it.
func (a Access) Permits(t Subject) bool {
	return !t.Forbidden(a.Deny) && (len(a.Allow) == 0 || t.MatchesAny(a.Allow))
}

// MayPermit reports whether a may permit something of a server that has not said what it has. Of
// t.Name is known how it begins, and t.URI may be known. It is false only for what a certainly
// forbids.
func (a Access) MayPermit(t Subject) bool {
	if t.Own != "" {
		return a.Permits(t)
	}
	for _, p := range a.Deny {
		if t.ownsAll(p) || t.URI != "" && t.Matches(p) {
			return false
		}
	}
	return len(a.Allow) == 0 || slices.ContainsFunc(a.Allow, func(p string) bool { return t.mayOwn(p) || t.matchesURI(p, t.Server+"/") })
}

// permitsName is [Access.Permits] for what has only one name.
func (a Access) permitsName(name string) bool {
	return !MatchAny(a.Deny, name) && (len(a.Allow) == 0 || MatchAny(a.Allow, name))
}

// Empty reports whether a permits everything.
func (a Access) Empty() bool { return len(a.Allow) == 0 && len(a.Deny) == 0 }

// Idle returns an error for each entry of a that matches no tool, as [Known.Idle] does.
// It begins with where, which says where a stands.
func (a Access) Idle(k Known, where string) []error {
	return slices.Concat(k.Idle(where+".Allow", a.Allow, Subject.MatchesAny), k.Idle(where+".Deny", a.Deny, Subject.Forbidden))
}

// Rights say what somebody may use: whatever all the lists permit. No list at all
// permits everything.
type Rights []Access

// Permit reports whether all lists permit the tool.
func (r Rights) Permit(t Subject) bool {
	for _, a := range r {
		if !a.Permits(t) {
			return false
		}
	}
	return true
}

// Key returns a text that other rights do not have, "" for those that permit everything.
func (r Rights) Key() string {
	if !slices.ContainsFunc(r, func(a Access) bool { return !a.Empty() }) {
		return ""
	}
	return fmt.Sprintf("%q", r)
}

// PermitName is [Rights.Permit] for what has only one name.
func (r Rights) PermitName(name string) bool {
	for _, a := range r {
		if !a.permitsName(name) {
			return false
		}
	}
	return true
}

// Denies reports whether a list forbids the name, whatever the lists allow.
func (r Rights) Denies(name string) bool {
	for _, a := range r {
		if MatchAny(a.Deny, name) {
			return true
		}
	}
	return false
}

// Because says why the tool is not permitted: which entry denies it, or that it is not
// among what is allowed.
func (r Rights) Because(t Subject) string {
	for _, a := range r {
		for i, entry := range a.Deny {
			if t.Forbidden(a.Deny[i : i+1]) {
				return fmt.Sprintf(": it denies %q", entry)
			}
		}
	}
	return ": it allows only others"
}

// And returns r, further restricted to a. It keeps a copy.
func (r Rights) And(a Access) Rights {
	if a.Empty() {
		return r
	}
	return append(slices.Clip(r), Access{slices.Clone(a.Allow), slices.Clone(a.Deny)})
}
