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
// login and these.
func (a *Account) asks(known record, offered []string) []string {
	switch {
	case len(known.Wanted) > 0:
		return union(a.cfg.Scopes, known.Scopes, known.Wanted)
	case len(a.cfg.Scopes) > 0:
		return a.cfg.Scopes
	}
	return offered
}

// want notes that the server wants more scopes. It fails if another login would not
// help.
func (r *record) want(scopes []string) error {
	if within(scopes, r.Scopes, r.Tried) {
		return fmt.Errorf("the server wants %s for this, which the last login has or was refused", Named(scopes))
	}
	if r.Wanted = union(r.Wanted, scopes); len(strings.Join(r.Wanted, " ")) > maxChallenge {
		r.Wanted = scopes
	}
	return nil
}

// Named returns scopes for people.
func Named(scopes []string) string {
	return text.Line(fmt.Sprintf("the scopes %q", strings.Join(scopes, " ")), maxSaid)
}
