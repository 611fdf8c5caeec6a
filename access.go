package mcphybrid

import (
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// Access lists count where tools come in (receive.go), where they are made (makeTools in servertools.go)
// and for each session and user (screening.go): a call finds only what is left (toolToCall in call.go).

// Access says by name which tools may be used: if Allow is not empty, those that one of
// its entries matches, and none that an entry of Deny matches. Entries are names, or
// patterns such as github/create_*: see [config.Access]. The zero value permits every tool.
type Access = config.Access

// permitsOwn reports whether a list of [ServerConfig.Tools] permits a tool. It is about
// the tools of one server.
func permitsOwn(a Access, t rules.Subject) bool { t.Within = true; return rules.Access(a).Permits(t) }

// mayUse reports whether r permits a meta tool. Only Deny can forbid one: an allow
// list is about the servers' tools and need not name the meta tools.
func mayUse(r rules.Rights, meta string) bool { return !r.Denies(meta) }
