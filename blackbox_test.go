package mcphybrid_test

import (
	"context"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
)

// Short names that the tests of package mcphybrid_test share, the same as in
// package mcphybrid.
var (
	newTestManager = mcphybrid.NewTestManager
	check          = mcphybrid.Check
	child          = mcphybrid.Child
	serving        = mcphybrid.Serving
	meaningTools   = mcphybrid.MeaningTools
	embedded       = mcphybrid.Embedded
	echoTool       = mcptest.Echo
	soon           = mcptest.Soon
	resultText     = mcptest.Text
)

func inProcess(name string, n int) mcphybrid.ServerConfig {
	return serving(name, mcptest.Chores(name, n)...)
}

// deferredHits searches as the model's search tool does.
func deferredHits(m *mcphybrid.Manager, query string, n int) []mcphybrid.Hit {
	return m.Default().Find(context.Background(), query, mcphybrid.SearchOptions{Limit: n, DeferredOnly: true}).Hits
}

func hitNames(hits []mcphybrid.Hit) (names []string) {
	for _, h := range hits {
		names = append(names, h.Tool.Name())
	}
	return names
}

// A searchAnswer is the answer of the search tool.
type searchAnswer struct {
	Tools   []foundTool
	Count   int
	Message string
}

type foundTool struct {
	Name         string
	OriginalName string `json:"original_name"`
	Server       string
	Description  string
	NeededBy     string `json:"needed_by"`
}

// placements returns the standing of each tool by the tool's own name, such as
// "inline ci build".
func placements(s *mcphybrid.Session) map[string]string {
	list := make(map[string]string)
	for _, p := range s.Placements() {
		list[p.Tool.OriginalName()] = strings.TrimSpace(p.Standing + " " + p.Rule)
	}
	return list
}
