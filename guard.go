package mcphybrid

import (
	"context"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/saved"
)

// guard keeps the host's code from ending the process: a panic in it becomes an error
// or a log record.
func (o *Options) guard() {
	o.Logger = foreign.Logger(o.Logger)
	o.Cache = foreign.Guarded(o.Cache, "Options.Cache", maxStoring)
	o.TrustStore = foreign.Guarded(o.TrustStore, "Options.TrustStore", maxStoring)
	o.StateParts = saved.Guarded(o.StateParts, "Options.StateParts", o.Logger)
	if o.Usage != nil {
		u := *o.Usage
		u.Store = foreign.Guarded(u.Store, "UsageOptions.Store", maxStoring)
		o.Usage = &u
	}
	if _, ours := o.Tokens.(quarterBytes); !ours {
		o.Tokens = hostTokens{&foreign.Counter{What: "Options.Tokens", Of: o.Tokens.CountTokens, Estimate: quarterBytes{}.CountTokens, Log: o.Logger}}
	}
	if tell := o.OnResources; tell != nil {
		o.OnResources = func(user string) { foreign.Logged(o.Logger, "Options.OnResources", func() { tell(user) }) }
	}
	if tell := o.OnRequest; tell != nil {
		o.OnRequest = func(ctx context.Context, server string) {
			foreign.Logged(o.Logger, "Options.OnRequest", func() { tell(ctx, server) })
		}
	}
	if tell := o.OnEvent; tell != nil {
		o.OnEvent = func(e Event) { foreign.Logged(o.Logger, "Options.OnEvent", func() { tell(e) }) }
	}
}
