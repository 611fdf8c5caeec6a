package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/servers"
	"github.com/mcphybrid/mcphybrid/search"
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
	var best search.Explanation
	var nearest string
	for i, t := range tools {
		if e := s.Explain(query, t.Name()); i == 0 || e.Score > best.Score {
			best, nearest = e, t.Name()
		}
	}
	missing := strings.Join(best.Missing, ", ")
	switch {
	case len(best.Parts) == 0 && missing == "":
		return "the query has no word to search for: words such as “the” and “my” find nothing"
	case len(best.Parts) == 0:
		return fmt.Sprintf("none of the %d tools has a word of the query: %s", len(tools), missing)
	case best.Score < best.Least && missing != "":
		return fmt.Sprintf("the nearest of %d tools, %s, scores %.3f, below the threshold of %.3f; it lacks: %s",
			len(tools), nearest, best.Score, best.Least, missing)
	case best.Score < best.Least:
		return fmt.Sprintf("the nearest of %d tools, %s, scores %.3f, below the threshold of %.3f",
			len(tools), nearest, best.Score, best.Least)
	}
	return fmt.Sprintf("none of the %d tools matches well enough", len(tools))
}
