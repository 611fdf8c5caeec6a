package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
)

// A smell is what keeps tools of a server from being found.
type smell struct{ kind, server, what string }

// smells finds those of one kind.
func smells(kind string) finder {
	return func(c *checkup, tell teller) {
		for _, s := range c.smells {
			switch {
			case s.kind != kind:
			case kind == "no-description":
				tell(s.server, s.what, c.path)
			default:
				tell(s.server, s.what)
			}
		}
	}
}

// hits is how many hits of a search count: a model sees no more by default.
const hits = 5

// verbs are names that say nothing of what a tool is about.
var verbs = map[string]bool{
	"add": true, "call": true, "create": true, "delete": true, "do": true, "execute": true, "fetch": true, "find": true, "get": true, "insert": true, "invoke": true, "list": true,
	"open": true, "query": true, "read": true, "remove": true, "run": true, "search": true, "send": true, "set": true, "update": true, "write": true,
}

// sniff returns what keeps tools from being found, with a search that shows it, server by
// server in the order of tools.
func sniff(tools []mcphybrid.Placement, search func(query string, n int) []mcphybrid.Hit) (found []smell) {
	var order []string
	of := make(map[string][]*mcphybrid.BridgeTool)
	for _, p := range tools {
		server := p.Tool.Server()
		if of[server] == nil {
			order = append(order, server)
		}
		of[server] = append(of[server], p.Tool)
	}
	for _, server := range order {
		var mute []string
		alike := make(map[string][]*mcphybrid.BridgeTool)
		var texts []string
		for _, t := range of[server] {
			text := strings.TrimSpace(t.Description())
			if text == "" {
				mute = append(mute, t.OriginalName())
				continue
			}
			if alike[text] = append(alike[text], t); len(alike[text]) == 2 {
				texts = append(texts, text)
			}
			if verbs[strings.ToLower(t.OriginalName())] {
				if n := rank(search(t.OriginalName(), hits), t); n != 1 {
					found = append(found, smell{"verb", server, fmt.Sprintf("tool %s is a verb alone: a search for %q finds it %s", t.OriginalName(), t.OriginalName(), place(n))})
				}
			}
		}
		if mute != nil {
			found = append(found, smell{"no-description", server, fmt.Sprintf("%d of %d tools have no description, such as %s: a search finds it by the words of its name only", len(mute), len(of[server]), mute[0])})
		}
		for _, text := range texts {
			group := alike[text]
			list, last := search(text, hits), group[len(group)-1]
			found = append(found, smell{"alike", server, fmt.Sprintf("%d tools have one description, such as %s and %s: a search for %q finds %s %s", len(group), group[0].OriginalName(), last.OriginalName(), cut(text), last.OriginalName(), place(rank(list, last)))})
		}
	}
	return found
}

// rank returns the place of a tool among hits, from 1, or 0 if it is not there.
func rank(list []mcphybrid.Hit, t *mcphybrid.BridgeTool) int {
	return 1 + slices.IndexFunc(list, func(h mcphybrid.Hit) bool { return h.Tool.Name() == t.Name() })
}

func place(n int) string {
	if n == 0 {
		return fmt.Sprintf("not among the first %d", hits)
	}
	return fmt.Sprintf("at place %d", n)
}

// cut returns the first words of a description.
func cut(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), 8)], " ")
}
