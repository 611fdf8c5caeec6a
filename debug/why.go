package debug

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/mcphybrid/mcphybrid/snapshot"
)

// maxCandidates is how many tools are offered if a name means several.
const maxCandidates = 30

// A whyPage says why the model does not have a tool, or a search does not find it.
type whyPage struct {
	Asked   bool
	Tool    *toolRow // the tool, or nil
	Verdict string   // in one sentence
	Details []string

	Candidates []toolRow // tools that the name may mean, if there are several
	Similar    bool      // their names are only similar
	More       int       // further ones

	examples // before a tool is named

	Score *search.Explanation // how the words of the query score the tool, or nil
	scoreParts
}

func newWhy(ctx context.Context, snap snapshot.Manager, r request) *whyPage {
	p := new(whyPage)
	name := strings.TrimSpace(r.Name)
	if name == "" {
		p.examples = whyExamples(snap, r)
		return p
	}
	p.Asked = true
	tools := snap.Tools()
	found := named(tools, name)
	switch len(found) {
	case 0:
		p.absent(ctx, snap, tools, name)
	case 1:
		row := newRow(found[0])
		p.Tool = &row
		p.judge(ctx, snap, found[0], r.Query)
	default:
		p.Verdict = fmt.Sprintf("%d tools have that in their names. Which one do you mean?", len(found))
		p.offer(found)
	}
	return p
}

// named returns the tools that a person means by name: the one with that registered
// name, else those with that name at their servers, else those whose names have it.
func named(tools []snapshot.Tool, name string) (list []snapshot.Tool) {
	for _, is := range []func(snapshot.Tool) bool{
		func(t snapshot.Tool) bool { return t.Name == name && !t.Hidden },
		func(t snapshot.Tool) bool { return t.Original.Line(len(name)+1) == name },
		func(t snapshot.Tool) bool {
			return strings.Contains(strings.ToLower(t.Name), strings.ToLower(name))
		},
	} {
		for _, t := range tools {
			if is(t) {
				list = append(list, t)
			}
		}
		if list != nil {
			return list
		}
	}
	return nil
}

func (p *whyPage) offer(tools []snapshot.Tool) {
	for _, t := range tools[:min(len(tools), maxCandidates)] {
		p.Candidates = append(p.Candidates, newRow(t))
	}
	p.More = max(len(tools)-maxCandidates, 0)
}

// absent says why there is no tool of that name.
func (p *whyPage) absent(ctx context.Context, snap snapshot.Manager, tools []snapshot.Tool, name string) {
	p.Verdict = "The catalog has no such tool."
	refusal := snap.WhyNot(name).String()
	if refusal != "" {
		p.Details = append(p.Details, capital(refusal)+".")
	}
	asker := snap.Session().User.String()
	for _, s := range snap.Servers() {
		if user := s.User.String(); user != "" && user != asker {
			continue // the session never sees its tools
		}
		if m, ok := serverMatter(s, nil); ok && s.Tools == 0 {
			why := m.What + " and has not listed its tools: " + m.Why
			if strings.HasPrefix(refusal, fmt.Sprintf("its server %q ", s.Name)) { // the others have nothing to do with it
				p.Details = []string{why}
				break
			}
			p.Details = append(p.Details, why)
		} else if s.State == string(mcphybrid.StateConnecting) && s.Tools == 0 {
			p.Details = append(p.Details, fmt.Sprintf("Server %s is still connecting.", s.Name))
		}
		if len(p.Details) == maxCandidates {
			break
		}
	}
	var like []snapshot.Tool
	for _, hit := range snap.Search(ctx, snapshot.Query{Text: strings.NewReplacer("_", " ", "-", " ", ".", " ", "/", " ").Replace(name), ByWords: true}).Hits {
		if i := slices.IndexFunc(tools, func(t snapshot.Tool) bool { return t.Name == hit.Tool.Name }); i >= 0 {
			like = append(like, tools[i])
		}
	}
	if len(like) > 0 {
		p.Similar = true
		p.offer(like)
	}
}

// judge says how t stands, and whether a search for query finds it.
func (p *whyPage) judge(ctx context.Context, snap snapshot.Manager, t snapshot.Tool, query string) {
	reason := p.Tool.Reason
	switch t.Standing {
	case "hidden":
		p.Verdict = "The session can neither find nor call it: " + reason + "."
		return
	case "quarantined":
		p.Verdict = "It is held back until somebody accepts it: " + reason + "."
		return
	case "inline":
		p.Verdict = "The model has it from the start, so a search leaves it out: " + reason + "."
	case "active":
		p.Verdict = fmt.Sprintf("The model has it, so a search leaves it out: it is active, last used in turn %d.", t.Used)
	default:
		p.Verdict = fmt.Sprintf("It is %s, since %s: the model has it once a search finds it.", t.Standing, reason)
		if strings.TrimSpace(query) != "" {
			p.searched(ctx, snap, t, query)
		}
	}
	servers := snap.Servers()
	serves := func(s snapshot.Server) bool {
		return s.Name == t.Server.Line(maxName) && cmp.Or(s.User.String(), snap.User().String()) == t.User.String()
	}
	if i := slices.IndexFunc(servers, serves); i >= 0 {
		if m, ok := serverMatter(servers[i], nil); ok {
			p.Details = append(p.Details, "A call will fail. "+m.What+": "+m.Why)
		}
	}
}

// searched says whether a search for query finds t, which is deferred, and why not.
func (p *whyPage) searched(ctx context.Context, snap snapshot.Manager, t snapshot.Tool, query string) {
	place := func(found snapshot.Search) int {
		return 1 + slices.IndexFunc(found.Hits, func(h snapshot.Hit) bool { return h.Tool.Name == t.Name })
	}
	found := snap.Search(ctx, snapshot.Query{Text: query})
	e := snap.Explain(query, t.Name)
	p.Score = &e
	p.scoreParts = newParts(e.Parts, new(float64))
	n := place(found)
	switch {
	case n > 0 && found.Hits[n-1].NeededBy != "":
		p.Verdict = fmt.Sprintf("A search finds it, since %s needs it.", found.Hits[n-1].NeededBy)
	case n > 0:
		p.Verdict = fmt.Sprintf("A search finds it: it is number %d of %d.", n, len(found.Hits))
	case len(e.Parts) == 0 && len(e.Missing) == 0:
		p.Verdict = "A search does not find it: the query has no word to search for."
	case len(e.Parts) == 0:
		p.Verdict = "A search does not find it: none of the query's words is in its texts."
	case e.Score < e.Least:
		p.Verdict = fmt.Sprintf("A search does not find it: its score of %.3f is below the threshold of %.3f.", e.Score, e.Least)
	case place(snap.Search(ctx, snapshot.Query{Text: query, ServerLimit: -1})) > 0:
		p.Verdict = "A search does not find it: other tools of its server match better, and the number of hits from one server is limited."
	case len(found.Hits) > 0:
		last := found.Hits[len(found.Hits)-1]
		others := fmt.Sprintf("%d tools, and the last of them, %s,", len(found.Hits), last.Tool.Name)
		if len(found.Hits) == 1 {
			others = fmt.Sprintf("one tool, %s, which", last.Tool.Name)
		}
		p.Verdict = fmt.Sprintf("A search does not find it: it finds %s scores %.3f; this one %.3f.", others, last.Score, e.Score)
	default:
		p.Verdict = "A search finds nothing."
	}
	if text := found.Err.String(); text != "" {
		p.Details = append(p.Details, text)
	}
}

// capital returns s with a capital letter first.
func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[n:]
}
