package mcphybrid

import (
	"context"

	"github.com/mcphybrid/mcphybrid/internal/guard"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// guard wraps the host's logger, stores, counter and functions, so that a panic in them becomes an
// error or a log record, and the stores take a bounded time. Middleware, registries and
// handlers are guarded where they are called.
func (o *Options) guard() {
	o.Logger = hostcode.Logger(o.Logger)
	o.Cache = guard.Document(o.Cache, "Options.Cache", guard.MaxCall)
	o.TrustStore = guard.Document(o.TrustStore, "Options.TrustStore", guard.MaxCall)
	o.StateParts = guard.Parts(o.StateParts, "Options.StateParts")
	if o.Usage != nil {
		u := *o.Usage
		u.Store = guard.Document(u.Store, "UsageOptions.Store", guard.MaxCall)
		o.Usage = &u
	}
	if o.Learn != nil {
		l := *o.Learn
		l.Store = guard.Document(l.Store, "LearnOptions.Store", guard.MaxCall)
		o.Learn = &l
	}
	if _, ours := o.Tokens.(quarterBytes); !ours {
		o.Tokens = hostTokens{&hostcode.Counter{What: "Options.Tokens", Of: o.Tokens.CountTokens, Estimate: quarterBytes{}.CountTokens, Log: o.Logger}}
	}
	if tell := o.OnResources; tell != nil {
		o.OnResources = func(user string) { hostcode.Logged(o.Logger, "Options.OnResources", func() { tell(user) }) }
	}
	if tell := o.OnRequest; tell != nil {
		o.OnRequest = func(ctx context.Context, server string) {
			hostcode.Logged(o.Logger, "Options.OnRequest", func() { tell(ctx, server) })
		}
	}
	if tell := o.OnEvent; tell != nil {
		o.OnEvent = func(e Event) { hostcode.Logged(o.Logger, "Options.OnEvent", func() { tell(e) }) }
	}
}
