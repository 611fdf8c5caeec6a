package mcphybrid

import (
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// subject returns what patterns see of the tool.
func (d *definition) subject() rules.Subject {
	return rules.Subject{Name: d.registered, Server: d.Server, Own: d.Own, Wanted: d.wanted}
}

// anyTool returns what patterns see of a tool of which only the server is known.
func anyTool(c names.Claim) rules.Subject {
	return rules.Subject{Name: c.Name("any"), Server: c.Server, Own: "any"}
}
