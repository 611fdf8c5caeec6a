package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/findability"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
)

// whyNothing says in sentences why a search for query found nothing.
func whyNothing(mgr *mcphybrid.Manager, query string) (why []string) {
	var away []string
	all := mgr.Servers()
	for _, s := range all {
		if s.State != mcphybrid.StateReady && s.Tools == 0 {
			away = append(away, fmt.Sprintf("%s (%s)", s.Name, s.State))
		}
	}
	placements := mgr.Default().Placements()
	tools := slices.Concat(mgr.InlineTools(), mgr.DeferredTools())
	switch {
	case len(all) == 0:
		return []string{"the configuration has no server that is switched on"}
	case len(away) == len(all):
		return []string{"no server is up: " + strings.Join(away, ", ")}
	case len(placements) == 0:
		why = append(why, "no server has a tool")
	case len(tools) == 0:
		why = append(why, servers.Standings(placements)...)
	default:
		why = append(why, explained(mgr.Default(), query, tools))
	}
	if len(away) > 0 {
		why = append(why, "the tools of these servers are missing: "+strings.Join(away, ", "))
	}
	return why
}

// explained says why a search for query finds none of the tools.
func explained(s *mcphybrid.Session, query string, tools []*mcphybrid.BridgeTool) string {
	nearest, best := findability.Nearest(s, query, tools)
	missing := strings.Join(best.Missing, ", ")
	switch {
	case len(best.Parts) == 0 && missing == "":
		return findability.NoWord
	case len(best.Parts) == 0:
		if len(tools) == 1 {
			return "the only tool has no word of the query: " + missing
		}
		return fmt.Sprintf("none of the %d tools has a word of the query: %s", len(tools), missing)
	}
	if len(tools) == 1 {
		return fmt.Sprintf("the only tool, %s, %s", nearest.Name(), findability.Unfound(best))
	}
	return fmt.Sprintf("the nearest of %d tools, %s, %s", len(tools), nearest.Name(), findability.Unfound(best))
}
