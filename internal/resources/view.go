package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/nearest"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
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
	Bar func(rules.Subject) error

	// BarSkill, if not nil, does so for skills and their files, beside Bar.
	BarSkill func(rules.Subject) error

	// BarURI does so for a URI that no list has.
	BarURI func(any, rules.Subject) error

	// Unlisted are servers that may have what they list nowhere. Those of the first shelf come
	// first.
	Unlisted []Place

	// Server returns what patterns see of something of a server whose name is not
	// known. It reports whether there is such a server.
	Server func(Place) (rules.Subject, bool)
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
	return e.Barred == nil && e.Quarantined == nil && !v.covered(i, e) && v.Bar(e.Names) == nil
}

// Sees reports whether the session may have e, which is on the shelf of an owner.
func (v *View) Sees(of any, e *Entry) bool {
	i := slices.IndexFunc(v.Shelves, func(s Owned) bool { return s.Of == of })
	return i >= 0 && v.sees(i, e)
}

// refusal returns why the session may not have what is asked for by e, or nil.
func (v *View) refusal(e *Entry, kind Kind, id string) error {
	why := cmp.Or(v.Bar(e.Names), e.Barred)
	if why == nil && e.Kind == Skill && v.BarSkill != nil {
		why = v.BarSkill(e.Names)
	}
	if why != nil {
		return upstream.About(why, kind.String(), id, e.Names.Server)
	}
	return e.Quarantined
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

// Reads reports whether there is a resource or a template that the session may have, or a
// server that may have one without listing it.
func (v *View) Reads() bool {
	for _, p := range v.Unlisted {
		if names, there := v.Server(p); there && v.Bar(names) == nil {
			return true
		}
	}
	for i, s := range v.Shelves {
		if slices.ContainsFunc(s.All(), func(e *Entry) bool { return e.Kind.isRead() && v.sees(i, e) }) {
			return true
		}
	}
	return false
}

// ReadsFiles reports whether there is a skill of more than one file that the session may have.
func (v *View) ReadsFiles() bool {
	for i, s := range v.Shelves {
		if slices.ContainsFunc(s.All(), func(e *Entry) bool { return e.Kind == Skill && len(e.Manifest.Files) > 1 && v.sees(i, e) }) {
			return true
		}
	}
	return false
}

// Entry returns what a place has of a kind under that ID, or nil.
func (v *View) Entry(at Place, kind Kind, id string) *Entry {
	for _, s := range v.Shelves {
		if s.Of == at.Of {
			if e := s.Find(ID{at.Server, kind, id}); e != nil {
				return e
			}
		}
	}
	return nil
}

// Skilled returns the servers that have skills, listed or not, and that the session may know
// of.
func (v *View) Skilled() (list []Place) {
	seen := make(map[string]bool)
	for _, s := range v.Shelves {
		if s.Shelf == nil {
			continue
		}
		for _, server := range s.skilled {
			at := Place{s.Of, server}
			names, there := v.Server(at)
			if there && !seen[server] && v.Bar(names) == nil {
				list = append(list, at)
			}
			seen[server] = true
		}
	}
	return list
}

// MayAsk returns the servers that may be asked for a skill by its URI, of all that have
// skills or of that one, which need not be known to have any.
func (v *View) MayAsk(server, uri string) (list []Place) {
	asked := &asked{uri, sync.OnceValues(func() ([]string, error) { return Forms(uri) })}
	places := v.Skilled()
	if server != "" {
		places = nil
		for _, s := range v.Shelves {
			places = append(places, Place{s.Of, server})
		}
	}
	for _, at := range places {
		names, there := v.Server(at)
		if !there || slices.ContainsFunc(list, func(other Place) bool { return other.Server == at.Server }) {
			continue
		}
		names.Own = SkillPath(uri)
		if v.barURI(at.Of, names, asked) == nil && (v.BarSkill == nil || v.BarSkill(names) == nil) {
			list = append(list, at)
		}
	}
	return list
}

// Verify returns an error if r was read from a place as the file of a skill, and is not what
// the place lists of it. What skills that are held back list does not count. Of a [Skill],
// only its own list does.
func (v *View) Verify(kind Kind, at Place, uri string, r *mcp.ReadResourceResult) (err error) {
	for _, s := range v.Shelves {
		if s.Of != at.Of {
			continue
		}
		for _, e := range s.skillsWith(uri) {
			if e.Names.Server != at.Server || e.Barred != nil || e.Quarantined != nil || kind == Skill && e.ID != uri {
				continue
			}
			if err = e.Verify(uri, r); err == nil {
				return nil
			}
		}
	}
	return err
}

// Search returns the resources and templates that best match query, at most n of each
// shelf and best first. The shelves take turns.
func (v *View) Search(query string, n int) (list []*Entry) {
	found := make([][]*Entry, len(v.Shelves))
	for i, s := range v.Shelves {
		found[i] = s.Search(query, n, func(e *Entry) bool { return e.Kind.isRead() && v.sees(i, e) })
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
// A resource need not be listed if a template can expand to its URI, a skill has a file of
// that URI, or links lead to it. One that is nowhere so is with the servers that may have
// unlisted ones. Who has it does not depend on what the session may have: so no server answers
// in the place of another. The error is an [Unknown], says why the session may not have
// it, or is that of ctx.
func (v *View) Locate(ctx context.Context, kind Kind, server, id string, links *Links) (Place, error) {
	have := v.holders(ctx, kind, server, id, links)
	if err := ctx.Err(); err != nil {
		return Place{}, fmt.Errorf("mcphybrid: %s %q: %w", kind, text.Line(id, text.MaxName), err)
	}
	if len(have) == 1 {
		return have[0].Place, have[0].refused
	}
	unknown := &Unknown{Server: server, ID: id}
	for _, h := range have {
		if h.refused == nil {
			unknown.Servers = append(unknown.Servers, h.Server)
		}
	}
	if have == nil {
		unknown.Nearest = v.nearest(kind, server, id[:min(len(id), maxAsked)])
	} else if unknown.Servers == nil {
		return have[0].Place, have[0].refused
	}
	return Place{}, unknown
}

// A holder is a place that has what is asked for.
type holder struct {
	Place
	listed  bool  // in a list, which decides; else a template can expand to it, a skill has it, or a link leads to it
	refused error // why the session may not have it from there, or nil
}

// asked is a URI that somebody asks for.
type asked struct {
	uri   string
	forms func() ([]string, error) // as [Forms], in any order; made once
}

// holders returns who has something, of servers with different names. Of two servers of
// one name, the first counts. Of each owner, those that list it come first, and those
// that linked to it last. It returns early when ctx ends.
func (v *View) holders(ctx context.Context, kind Kind, server, id string, links *Links) (have []*holder) {
	named := make(map[string]*holder)
	uri := &asked{id, sync.OnceValues(func() ([]string, error) { return Forms(id) })}
	for _, s := range v.Shelves {
		// open reports whether it is still to be found out whether from has it.
		open := func(from string) bool {
			h := named[from]
			return h == nil || h.Of == s.Of && !h.listed && h.refused != nil
		}
		add := func(from string, listed bool, refused error) {
			h := named[from]
			if h == nil {
				h = &holder{Place{s.Of, from}, listed, refused}
				named[from], have = h, append(have, h)
			} else if refused == nil {
				h.refused = nil
			}
		}
		for _, e := range s.All() {
			if e.Kind == kind && e.ID == id && (server == "" || e.Names.Server == server) && open(e.Names.Server) {
				add(e.Names.Server, true, v.refusal(e, kind, id))
			}
		}
		if kind != Resource {
			continue
		}
		for _, e := range s.All() {
			if ctx.Err() != nil {
				return nil
			}
			if e.Kind == Template && (server == "" || e.Names.Server == server) && open(e.Names.Server) && e.template.matches(id) {
				refused := v.refusal(e, kind, id)
				if refused == nil {
					refused = v.barURI(s.Of, e.Names, uri)
				}
				add(e.Names.Server, false, refused)
			}
		}
		for _, e := range s.skillsWith(id) {
			if (server == "" || e.Names.Server == server) && open(e.Names.Server) {
				refused := v.refusal(e, kind, id)
				if refused == nil {
					refused = v.barURI(s.Of, e.Names, uri)
				}
				add(e.Names.Server, false, refused)
			}
		}
		for _, p := range links.To(id) {
			if names, there := v.Server(p); there && p.Of == s.Of && (server == "" || p.Server == server) && open(p.Server) {
				add(p.Server, false, v.barURI(s.Of, names, uri))
			}
		}
	}
	if have == nil && kind == Resource {
		have = v.unlisted(ctx, server, uri)
	}
	for _, h := range have {
		if h.refused == nil && kind == Resource {
			h.refused = cmp.Or(v.barSpelled(h, uri), v.barSkills(h, uri))
		}
	}
	return have
}

// barSkills returns why the session may not read a file of skills that are all held back,
// or nil. If h does not list uri, it may not read one of skills of which it may have none
// either, however uri spells it.
func (v *View) barSkills(h *holder, uri *asked) error {
	forms := []string{uri.uri}
	if !h.listed {
		forms, _ = uri.forms() // barURI has seen the error
	}
	for _, s := range v.Shelves {
		if s.Of != h.Of {
			continue
		}
		for _, form := range forms {
			if why := v.barFile(h, s, form, uri.uri); why != nil {
				return why
			}
		}
	}
	return nil
}

// barFile is barSkills for one shelf and one form of a URI.
func (v *View) barFile(h *holder, s Owned, form, uri string) (why error) {
	skills := s.skillsSpelled(form)
	if h.listed {
		skills = s.skillsWith(form)
	}
	for _, e := range skills {
		switch {
		case e.Names.Server != h.Server || h.listed && e.Barred != nil:
			continue
		case h.listed:
			why = e.Quarantined
		default:
			why = v.refusal(e, Resource, uri)
		}
		if why == nil {
			return nil
		}
	}
	return why
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

// barURI returns why the session may not have a URI in one of its forms, or nil.
func (v *View) barURI(of any, names rules.Subject, uri *asked) error {
	forms, err := uri.forms()
	for i := range forms {
		names.URI, names.Forms = forms[i], nil
		if addsHost(forms[i], uri.uri) { // an allow list need not know it
			names.URI, names.Forms = uri.uri, forms[i:i+1]
		}
		if err = v.BarURI(of, names); err != nil {
			forms[0], forms[i] = forms[i], forms[0] // it likely bars the next template too
			break
		}
	}
	if err != nil {
		return upstream.About(err, Resource.String(), uri.uri, names.Server)
	}
	return nil
}

// barSpelled returns why the session may not have a resource that h lists and of which
// uri is another spelling, or nil. If h lists uri too, both may have a spelling that
// neither is, such as without their queries.
func (v *View) barSpelled(h *holder, uri *asked) error {
	forms, _ := uri.forms() // barURI or Parse has seen the error
	known := func(form string) bool { return slices.Contains(forms, form) }
	for _, s := range v.Shelves {
		for _, e := range s.All() {
			if s.Of == h.Of && e.Kind == Resource && e.Names.Server == h.Server && (known(foldHost(e.ID)) || !h.listed && slices.ContainsFunc(e.Names.Forms, known)) {
				if err := v.refusal(e, Resource, uri.uri); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
