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

// claimNames gives the listing the prefix of its tools' names: the same at each call.
func (src *listing) claimNames(book *names.Book) error {
	c, first, err := book.Claim(src.name, src.prefix)
	if err != nil {
		return err
	}
	src.claim, src.number, src.collision = c, book.Number(c), nil
	if first != "" {
		src.collision = &CollisionError{src.name, c.Wanted, c.Prefix, first}
	}
	return nil
}

// nameTool gives d its registered name: the same at each call.
func (src *listing) nameTool(book *names.Book, d *definition) (err error) {
	if d.registered, err = book.Name(src.claim, d.Own); err != nil {
		return err
	}
	if alone := names.Alone(src.name, src.prefix); alone != src.claim {
		d.wanted = alone.Name(d.Own)
	}
	return nil
}

// namesOf returns what patterns see of what a server lists under a name, beside tools.
func (src *listing) namesOf(own string) rules.Tool {
	t := rules.Tool{Name: src.claim.Name(own), Server: src.name, Own: own}
	if own == "" {
		t.Name = src.claim.Start()
	}
	if alone := names.Alone(src.name, src.prefix); alone != src.claim {
		t.Wanted = alone.Name(own)
	}
	return t
}

// names returns what patterns see of the tool.
func (d *definition) names() rules.Tool {
	return rules.Tool{Name: d.registered, Server: d.Server, Own: d.Own, Wanted: d.wanted}
}

// anyTool returns what patterns see of a tool of which only the server is known.
func (src *listing) anyTool() rules.Tool { return anyTool(src.claim) }

func anyTool(c names.Claim) rules.Tool {
	return rules.Tool{Name: c.Name("any"), Server: c.Server, Own: "any"}
}
