package snapshot

import "time"

// Stats are the figures of a session: what it sees, what that costs in tokens, and what
// happened in it so far. mcphybrid.Session.Stats returns them.
type Stats struct {
	Servers  int // servers that have tools in the session
	Tools    int // the sum of Inline, Deferred and Active
	Inline   int
	Deferred int // without the active ones
	Active   int
	Crowded  int // deferred only because the list has no room, or was fixed before they came: see mcphybrid.ListOptions
	Tokens   Tokens

	Usage         Usage
	Activations   int
	Searches      int // searches by the model
	EmptySearches int // searches by the model that found nothing

	// Measured is what the provider counted, and EstimatedSaved an estimate of how
	// much more [Measured.Input] would be without deferring: the sum, over the
	// same requests, of [Tokens.All] less [Tokens.Sent], at the call of
	// mcphybrid.Session.CountUsage. It is negative if deferring has cost more than it saved,
	// which may be so with few tools.
	Measured       Measured
	EstimatedSaved int
}

// Tokens are token counts by mcphybrid.Options.Tokens. Those of tools follow the current
// catalog. The model may have been shown more.
type Tokens struct {
	All      int // definitions of all tools: the cost of a request without deferring
	Inline   int // definitions of the inline tools
	Meta     int // definitions of the meta tools that the session offers
	Active   int // definitions of the active tools
	Sections int // prompt sections
	Searches int // answers so far of the meta tools that search and describe
}

// Sent returns the cost of a request: all tokens except those of deferred tools.
func (t Tokens) Sent() int { return t.Inline + t.Meta + t.Active + t.Sections + t.Searches }

// Measured are sums over the requests of a session, as the provider counted them. They
// stay 0 unless the host or its adapter calls mcphybrid.Session.CountUsage.
type Measured struct {
	Requests int // calls of CountUsage
	Input    int // tokens, with those Cached and Written: see provider.Usage
	Cached   int // read from the provider's cache
	Written  int // written to it
	Output   int
	Losses   int // requests that lost the provider's cache: see [Loss]
	Lost     int // input tokens that they could have read from it
}

// Usage counts calls of tools.
type Usage struct {
	Calls   int
	Errors  int           // calls that were rejected, failed, or got an error from the tool
	Latency time.Duration // total of all calls
}
