package mcphybrid

import (
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// A CollisionError reports a server whose tools can't have the names that they
// would have without other servers: models could take them for the tools of another
// one. The names under a prefix belong to the server that had it first, for the life
// of the Manager and beyond, with [Options.Cache] or, unless trust is off,
// [Options.TrustStore]. The later server gets a prefix with a hash.
type CollisionError struct {
	Server string // the server whose tools have other names
	Wanted string // the prefix that it would have, such as mcp_github
	Prefix string // the one that it has, such as mcp_github_0a1b2c3d
	First  string // the server that has such names; it may have been removed
}

func (e *CollisionError) Error() string {
	return fmt.Sprintf("mcphybrid: names that begin with %q belong to server %q; the names of server %q begin with %q",
		e.Wanted+"__", e.First, e.Server, e.Prefix+"__")
}

// names returns what patterns see of the tool.
func (d *definition) names() rules.Tool {
	return rules.Tool{Name: d.registered, Server: d.Server, Own: d.Own, Wanted: d.wanted}
}

// anyTool returns what patterns see of a tool of which only the server is known.
func anyTool(c names.Claim) rules.Tool {
	return rules.Tool{Name: c.Name("any"), Server: c.Server, Own: "any"}
}
