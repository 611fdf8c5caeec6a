package resources

import (
	"context"
	"slices"
	"strings"
)

// unlisted returns who may have a resource that is nowhere. Of two servers of one name, only
// the first is asked, and nobody learns of one that it may not ask. Files of skills are read by
// what a server lists of the skill, or not at all.
func (v *View) unlisted(ctx context.Context, server string, uri *asked) (have []*holder) {
	if scheme, _, _ := strings.Cut(uri.uri, ":"); strings.EqualFold(scheme, "skill") {
		return nil
	}
	for _, p := range v.Unlisted {
		names, there := v.Server(p)
		first := !slices.ContainsFunc(have, func(h *holder) bool { return h.Server == p.Server })
		if there && first && (server == "" || p.Server == server) && v.barURI(p.Of, names, uri) == nil {
			have = append(have, &holder{Place: p, refused: v.barExpanded(ctx, p, uri)})
		}
	}
	return have
}

// barExpanded returns why the session may not have a resource that is nowhere, or nil: uri is
// another spelling of one to which only templates can expand that the session may not use.
func (v *View) barExpanded(ctx context.Context, p Place, uri *asked) error {
	type judged struct {
		*template
		refused error
	}
	var templates []judged
	bars := false
	for _, s := range v.Shelves {
		for _, e := range s.All() {
			if s.Of == p.Of && e.Kind == Template && e.Names.Server == p.Server {
				refused := v.refusal(e, Resource, uri.uri)
				templates, bars = append(templates, judged{e.folded, refused}), bars || refused != nil
			}
		}
	}
	if !bars {
		return nil
	}
	forms, _ := uri.forms() // barURI has seen the error
	for _, form := range forms {
		var why error
		for _, t := range templates {
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.matches(form) {
				if why = t.refused; why == nil {
					break
				}
			}
		}
		if why != nil {
			return why
		}
	}
	return nil
}
