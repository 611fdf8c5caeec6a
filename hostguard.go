package mcphybrid

import (
	"context"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
)

// guard wraps the host's logger, stores, counter and functions, so that a panic in them becomes an
// error or a log record, and the stores take a bounded time. Middleware, registries and
// handlers are guarded where they are called.
func (o *Options) guard() {
	o.Logger = hostcode.Logger(o.Logger)
	o.Cache = storeguard.Document(o.Cache, "Options.Cache", storeguard.MaxCall)
	o.TrustStore = storeguard.Document(o.TrustStore, "Options.TrustStore", storeguard.MaxCall)
	o.StateParts = storeguard.Parts(o.StateParts, "Options.StateParts")
	if o.Usage != nil {
		u := *o.Usage
		u.Store = storeguard.Document(u.Store, "UsageOptions.Store", storeguard.MaxCall)
		o.Usage = &u
	}
	if o.Learn != nil {
		l := *o.Learn
		l.Store = storeguard.Document(l.Store, "LearnOptions.Store", storeguard.MaxCall)
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
