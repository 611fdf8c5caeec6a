package gateway

import (
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid"
)

// maxStarting is how many servers the instructions name that are still starting.
const maxStarting = 20

// instructions tells a client's model how to search, and what there is as far as that is
// known: it waits for no server. The Session is not the client's, because what that has
// shown once it would show forever. Who may not use every server is told of none that is
// still starting.
func (g *gateway) instructions(c *conversation) string {
	s := g.newSession(c, "")
	defer s.Close()
	if c.server != "" {
		return g.serverInstructions(c, s)
	}
	var starting []string // read before the tools: one that is ready has its tools
	for _, at := range g.mgr.Servers() {
		if c.of != nil && len(c.of.Access.Allow)+len(c.of.Access.Deny) > 0 {
			break
		}
		if at.State == mcphybrid.StateConfigured || at.State == mcphybrid.StateConnecting {
			starting = append(starting, fmt.Sprintf("%q", at.Name))
		}
	}
	section := ""
	if s.IsSearchMode() {
		section = s.SearchSection()
	}
	more := ""
	if len(starting) > maxStarting {
		more = fmt.Sprintf(" and %d more", len(starting)-maxStarting)
		starting = starting[:maxStarting]
	}
	if len(starting) == 0 {
		return section
	}
	if section == "" { // there is nothing to search for, and may never be
		return fmt.Sprintf("Still starting: %s%s. If `%s` is listed, it finds their tools that are not.\n", strings.Join(starting, ", "), more, mcphybrid.SearchToolName)
	}
	return fmt.Sprintf("%s\nStill starting: %s%s. Search for their tools, too.\n", strings.TrimSuffix(section, "\n"), strings.Join(starting, ", "), more)
}
