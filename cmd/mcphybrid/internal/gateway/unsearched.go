package gateway

import (
	"slices"

	"github.com/mcphybrid/mcphybrid"
)

// Where no tool is deferred, a client gets the tools as they are. If some are deferred
// later, the client is told that its tools have changed, and the next list has the tools that search:
// its Session answers them at any time, also when a client has them from an earlier list.
//
// While servers may still list their tools for the first time, these stay in the list: a client
// that does not list again reaches what comes.

// haveCome reports whether all servers have started or failed. A client that never
// lists its tools again needs all of them to serve: one that failed may come later.
func (g *gateway) haveCome(c *conversation) bool {
	if g.all.Err() == nil {
		return false
	}
	return !c.once || !slices.ContainsFunc(g.mgr.Servers(), func(s mcphybrid.ServerStatus) bool {
		return s.State != mcphybrid.StateReady && s.State != mcphybrid.StateDegraded && s.State != mcphybrid.StateCached
	})
}

// withoutSearch returns tools, none of which is deferred, without those that find, describe
// and call others. The text of a skill names two of them. What reads on in results stays
// if there is something whose results may be cut.
func withoutSearch(tools []mcphybrid.Tool) []mcphybrid.Tool {
	has := func(name string) bool {
		return slices.ContainsFunc(tools, func(t mcphybrid.Tool) bool { return t.Name() == name })
	}
	drop := []string{mcphybrid.SearchToolName, mcphybrid.ReadOnlyCallToolName}
	if !has(mcphybrid.SkillLoadToolName) {
		drop = append(drop, mcphybrid.DescribeToolName, mcphybrid.CallToolName)
	}
	left := slices.DeleteFunc(slices.Clone(tools), func(t mcphybrid.Tool) bool { return slices.Contains(drop, t.Name()) })
	if len(left) == 1 && left[0].Name() == mcphybrid.PageToolName {
		return nil
	}
	return left
}
