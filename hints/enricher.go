package hints

import (
	"context"
	"encoding/json"
)

// An Enricher looks up hints for tools, for example in a file, a database or a
// service. The Manager calls it in the background from several goroutines, never
// during a search or a call.
//
// The model reads the hints as the host's own words. So don't copy a server's
// texts into them unread.
type Enricher interface {
	// LookupHints returns the hints for a tool and whether there are any. ctx ends
	// after Options.EnrichTimeout and with Manager.Close.
	//
	// The Manager logs an error, a panic, a timeout, and hints that exceed the
	// limits. The tool then keeps its previous hints, if any, until
	// Manager.RefreshHints.
	LookupHints(ctx context.Context, tool Tool) (hints Hints, ok bool, err error)
}

// A Tool is what an Enricher sees of a tool: a BridgeTool of package mcphybrid, which
// documents the methods. What they return must not be changed.
type Tool interface {
	Name() string         // registered name
	OriginalName() string // name on its server
	Server() string
	Title() string
	Description() string // as the server sent it; don't trust its content
	InputSchema() json.RawMessage
	OutputSchema() json.RawMessage
	Raw() json.RawMessage // the tool's element of the tools/list result
}

// NopEnricher is an [Enricher] without hints. It has the same effect as none.
type NopEnricher struct{}

// LookupHints returns no hints.
func (NopEnricher) LookupHints(context.Context, Tool) (Hints, bool, error) {
	return Hints{}, false, nil
}
