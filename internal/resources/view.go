package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/nearest"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Place is a server of an owner. Owners are compared, so they must be comparable.
type Place struct {
	Of     any
	Server string
}

// A View is what one session sees of the shelves of several owners. Of what two have
// under one server's name, only that of the first counts.
type View struct {
	Shelves []Owned

	// Bar returns why the session may not have something, or nil.
	Bar func(rules.Tool) error

	// BarURI does so for a URI that no list has.
	BarURI func(any, rules.Tool) error

	// Server returns what patterns see of something of a server whose name is not
	// known. It reports whether there is such a server.
	Server func(Place) (rules.Tool, bool)
}

// An Owned is the shelf of an owner.
type Owned struct {
	Of any
	*Shelf
}

// covered reports whether an earlier shelf than the i-th has e too.
func (v *View) covered(i int, e *Entry) bool {
	return slices.ContainsFunc(v.Shelves[:i], func(s Owned) bool { return s.Find(e.Key()) != nil })
}

func (v *View) sees(i int, e *Entry) bool {
	return e.Barred == nil && !v.covered(i, e) && v.Bar(e.Names) == nil
}

// refusal returns why the session may not have e, or nil.
func (v *View) refusal(e *Entry) error {
	if err := v.Bar(e.Names); err != nil {
		return err
	}
	return e.Barred
}

// Offered returns what the session may have of a kind, that of the last shelf first.
func (v *View) Offered(kind Kind) (list []*Entry) {
	for i, s := range slices.Backward(v.Shelves) {
		for _, e := range s.All() {
			if e.Kind == kind && v.sees(i, e) {
				list = append(list, e)
			}
		}
	}
	return list
}

// Reads reports whether there is a resource or a template that the session may have.
func (v *View) Reads() bool {
	for i, s := range v.Shelves {
		if slices.ContainsFunc(s.All(), func(e *Entry) bool { return e.Kind != Prompt && v.sees(i, e) }) {
			return true
		}
	}
	return false
}

// Search returns the resources and templates that best match query, at most n of each
// shelf and best first. The shelves take turns.
func (v *View) Search(query string, n int) (list []*Entry) {
	found := make([][]*Entry, len(v.Shelves))
	for i, s := range v.Shelves {
		found[i] = s.Search(query, n, func(e *Entry) bool { return e.Kind != Prompt && v.sees(i, e) })
	}
	for i := range n {
		for _, of := range found {
			if i < len(of) {
				list = append(list, of[i])
			}
		}
	}
	return list
}

// An Unknown says that nothing is found, or too much.
type Unknown struct {
	Server  string   // that was asked for, or ""
	ID      string   // the URI or the name
	Nearest []string // similar ones, nearest first
	Servers []string // those that have it, if there are several
}

func (e *Unknown) Error() string { return "it is unknown" }

const (
	maxNearest = 3
	maxAsked   = 512 // bytes of an ID for which similar ones are sought
)

// Locate returns who has what is asked for, of one server or, if that is "", of all.
// A resource need not be listed if a template can expand to its URI or links lead to
// it. The error is an [Unknown], or has the reason why the session may not have it.
func (v *View) Locate(kind Kind, server, id string, links *Links) (Place, error) {
	l := location{kind: kind, server: server, id: id, listed: make(map[Place]bool)}
	for i, s := range v.Shelves {
		for _, e := range s.All() {
			if e.Kind == kind && e.ID == id && !v.covered(i, e) {
				l.listed[Place{s.Of, e.Names.Server}] = true
				l.add(Place{s.Of, e.Names.Server}, v.refusal(e))
			}
		}
	}
	if kind == Resource {
		v.locateUnlisted(&l, links)
	}
	unknown := &Unknown{Server: server, ID: id}
	switch {
	case len(l.found) == 1:
		return l.found[0], nil
	case len(l.found) > 1:
		for _, p := range l.found {
			unknown.Servers = append(unknown.Servers, p.Server)
		}
		return Place{}, unknown
	case l.refused != nil:
		return Place{}, l.refused
	}
	unknown.Nearest = v.nearest(kind, server, id[:min(len(id), maxAsked)])
	return Place{}, unknown
}

// nearest returns the IDs that are most like id, of what the session may have.
func (v *View) nearest(kind Kind, server, id string) []string {
	plain := strings.NewReplacer("/", "_", ":", "_", ".", "_") // the names of tools have a server before these
	byPlain := make(map[string]string)
	near := nearest.Names(plain.Replace(id), func(yield func(string) bool) {
		for _, e := range v.Offered(kind) {
			name := plain.Replace(e.ID)
			if _, there := byPlain[name]; there || server != "" && e.Names.Server != server {
				continue
			}
			byPlain[name] = e.ID
			if !yield(name) {
				return
			}
		}
	}, maxNearest)
	for i, name := range near {
		near[i] = byPlain[name]
	}
	return near
}

func (v *View) locateUnlisted(l *location, links *Links) {
	spelled := make(map[Place]error) // why a list bars the URI
	add := func(p Place, refused error) {
		if _, there := spelled[p]; !there {
			spelled[p] = v.barSpelled(p, l.id)
		}
		l.add(p, cmp.Or(refused, spelled[p]))
	}
	for i, s := range v.Shelves {
		s.Matching(l.server, l.id, func(e *Entry) {
			p := Place{s.Of, e.Names.Server}
			if l.listed[p] || v.covered(i, e) {
				return
			}
			refused := v.refusal(e)
			if refused == nil {
				refused = v.barURI(s.Of, e.Names, l.id)
			}
			add(p, refused)
		})
	}
	for _, p := range links.To(l.id) {
		if names, there := v.Server(p); there && !l.listed[p] {
			add(p, v.barURI(p.Of, names, l.id))
		}
	}
}

// barURI returns why the session may not have a URI in one of its forms, or nil.
func (v *View) barURI(of any, names rules.Tool, uri string) error {
	for _, names.URI = range Forms(uri) {
		if err := v.BarURI(of, names); err != nil {
			return err
		}
	}
	return nil
}

// barSpelled returns why the session may not have a resource that p lists and of which
// uri is another spelling, or nil.
func (v *View) barSpelled(p Place, uri string) error {
	forms := Forms(uri)
	for _, s := range v.Shelves {
		for _, e := range s.All() {
			if s.Of == p.Of && e.Names.Server == p.Server && slices.ContainsFunc(e.forms, func(form string) bool { return slices.Contains(forms, form) }) {
				if err := v.refusal(e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A location is where something is found.
type location struct {
	kind       Kind
	server, id string
	listed     map[Place]bool // it is in that server's list, which decides
	found      []Place        // of servers with different names
	refused    error          // why it can't be had from another, or nil
}

// add adds a place. Of two servers of one name, the first counts.
func (l *location) add(p Place, refused error) {
	switch {
	case l.server != "" && p.Server != l.server:
	case refused != nil:
		l.refused = Refused(l.kind, p.Server, l.id, refused)
	case !slices.ContainsFunc(l.found, func(other Place) bool { return other.Server == p.Server }):
		l.found = append(l.found, p)
	}
}

// Refused returns the error that something can't be had from a server.
func Refused(kind Kind, server, id string, why error) error {
	return fmt.Errorf("mcphybrid: %s %q of server %q: %w", kind, text.Line(id, text.MaxName), server, why)
}
