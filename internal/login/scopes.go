package login

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// union returns the scopes of all lists, each once.
func union(lists ...[]string) (all []string) {
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// within reports whether the lists have each of scopes.
func within(scopes []string, lists ...[]string) bool {
	all := union(lists...)
	return len(union(all, scopes)) == len(all)
}

// asks returns the scopes that a login asks for: those of the settings, else those
// that the server offers; if it has asked for more since the last login, those of that
// login and these, and for refreshes as any login does: see [offlineAccess].
func (a *Account) asks(known *record, offered []string) []string {
	switch {
	case len(known.Wanted) > 0:
		all := union(a.cfg.Scopes, known.Scopes, known.Wanted)
		if len(a.cfg.Scopes) == 0 && slices.Contains(offered, offlineAccess) {
			all = union(all, []string{offlineAccess})
		}
		return all
	case len(a.cfg.Scopes) > 0:
		return a.cfg.Scopes
	}
	return offered
}

// harmless returns the scopes without those that have a secret and are not of the
// settings: a server may name what we sent to it, and the address of the login page, which
// hosts log, has them all. If what is left has one together, only those of the settings
// stay.
func (a *Account) harmless(scopes []string) []string {
	if a.Hides == nil {
		return scopes
	}
	ours := func(s string) bool { return slices.Contains(a.cfg.Scopes, s) }
	kept := slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return a.Hides(s) && !ours(s) })
	if a.Hides(strings.Join(kept, " ")) {
		kept = slices.DeleteFunc(kept, func(s string) bool { return !ours(s) })
	}
	return kept
}

// maxStepUps is how many logins in a row may be for scopes that the server wants
// besides. It counts those that were granted too: a server may name new ones for ever,
// and its authorization server may grant them all.
const maxStepUps = 16

// want notes that the server wants more scopes. It fails if another login would not
// help.
func (r *record) want(scopes []string) error {
	switch {
	case within(scopes, r.Scopes, r.Tried):
		return fmt.Errorf("the server wants %s for this, which the login has or was refused before", Named(scopes))
	case r.StepUps >= maxStepUps:
		return fmt.Errorf("the server wants %s for this, and wanted more after each of the last %d logins: name in OAuth.Scopes what it may have, and log in", Named(scopes), maxStepUps)
	}
	r.Wanted = joined(r.Wanted, scopes)
	return nil
}

// follows notes in r, a new login, what was wanted of the one before it. A login that
// granted any of that gives those that were refused earlier another chance.
func (r *record) follows(known record) {
	if len(known.Wanted) == 0 {
		return
	}
	r.StepUps, r.Tried = known.StepUps+1, known.Wanted
	granted := func(s string) bool { return !slices.Contains(known.Scopes, s) && slices.Contains(r.Scopes, s) }
	if !slices.ContainsFunc(known.Wanted, granted) {
		r.Tried = joined(known.Tried, known.Wanted)
	}
}

// wantedSince returns what the next login after r asks for, which replaced the known one, by
// what is stored now: what another process was refused meanwhile, and what a login was granted
// that ended meanwhile. Nothing else of that is kept: who agreed last may have done so as somebody
// else.
func (r *record) wantedSince(known, stored record) []string {
	granted := slices.DeleteFunc(slices.Clone(stored.Scopes), func(s string) bool { return slices.Contains(known.Scopes, s) })
	if stored.AccessToken == "" {
		granted = nil // that login is over
	}
	return slices.DeleteFunc(joined(granted, stored.Wanted), func(s string) bool {
		return slices.Contains(known.Wanted, s) && !slices.Contains(granted, s) || slices.Contains(r.Scopes, s)
	})
}

// joined returns the scopes of both lists, or only the newer ones if the others make it
// too long.
func joined(older, newer []string) []string {
	if all := union(older, newer); len(strings.Join(all, " ")) <= maxChallenge {
		return all
	}
	return newer
}

// Named returns scopes for people.
func Named(scopes []string) string {
	return text.Line(fmt.Sprintf("the scopes %q", strings.Join(scopes, " ")), maxSaid)
}
