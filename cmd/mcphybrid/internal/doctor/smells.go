package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
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

// verbs are names that say nothing of what a tool is about.
var verbs = map[string]bool{
	"add": true, "call": true, "create": true, "delete": true, "do": true, "execute": true, "fetch": true, "find": true, "get": true, "insert": true, "invoke": true, "list": true,
	"open": true, "query": true, "read": true, "remove": true, "run": true, "search": true, "send": true, "set": true, "update": true, "write": true,
}

// sniff returns what keeps tools from being found, with a search that shows it, server by
// server in the order of tools.
func sniff(s *mcphybrid.Session, tools []mcphybrid.Placement) (list []smell) {
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
				if place := found(s, t.OriginalName(), t); place != "" {
					list = append(list, smell{"verb", server, fmt.Sprintf("tool %s is a verb alone: a search for %q finds it %s", t.OriginalName(), t.OriginalName(), place)})
				}
			}
		}
		if mute != nil {
			says := fmt.Sprintf("%d of %d tools have no description, such as %s", len(mute), len(of[server]), mute[0])
			if len(of[server]) == 1 {
				says = fmt.Sprintf("its only tool, %s, has no description", mute[0])
			}
			list = append(list, smell{"no-description", server, says + ": a search finds it by the words of its name only"})
		}
		for _, text := range texts {
			group := alike[text]
			last := group[len(group)-1]
			list = append(list, smell{"alike", server, fmt.Sprintf("%d tools have one description, such as %s and %s: a search for %q finds %s %s", len(group), group[0].OriginalName(), last.OriginalName(), cut(text), last.OriginalName(), cmp.Or(found(s, text, last), "at place 1"))})
		}
	}
	return list
}

// found says where a search for query finds a tool and, unless it is the first, why. It is
// "" if it is the first.
func found(s *mcphybrid.Session, query string, t *mcphybrid.BridgeTool) string {
	a := findability.Ask(s, query, t)
	if a.Rank == 1 {
		return ""
	}
	return a.Place() + "; " + strings.Join(a.Why().Sentences(), "; ")
}

// cut returns the first words of a description.
func cut(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(len(words), 8)], " ")
}
