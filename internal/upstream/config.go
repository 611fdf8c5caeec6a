package upstream

import (
	"log/slog"
	"maps"

	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/login"
)

// A Config says how to reach one server. The caller must not change it after [New].
type Config struct {
	config.Server // its name also seeds the random part of reconnect delays

	Turns *Turns // shared by all children of the program; nil to start at once

	Account *login.Account // of the user; nil if there can be none. Close closes it

	// Unauthorized, if not nil, returns the error of a request that the server refuses
	// with status 401, or, if there are scopes, with 403 for want of them. It must wrap
	// [ErrUnauthorized].
	Unauthorized func(scopes []string) error

	// NamesNone, if not nil, returns the error of a server that refuses requests without a
	// token and names no place to log in. It must wrap [ErrUnauthorized].
	NamesNone func() error

	// Invalid, if not nil, says why the configuration cannot work. Each attempt
	// to connect fails with it and is not repeated.
	Invalid error

	User string      // who owns the server, or ""
	Ask  ask.Options // who answers what the server asks, and how much it may ask

	Extensions map[string]any // of the protocol, which the host supports; or nil

	Log *slog.Logger // receives problems that no caller learns of
}

// clientCredentials is the extension of MCP by which a client signs in as itself.
const clientCredentials = "io.modelcontextprotocol/oauth-client-credentials"

// GatewayExtension is the extension by which a gateway knows itself. What it says differs with each
// run, and no server answers otherwise for it.
const GatewayExtension = "mcphybrid/gateway"

// supported returns the extensions that the server is told of: those of the host,
// [skillsExtension], and [clientCredentials] if the client signs in so.
func (cfg *Config) supported() map[string]any {
	all := map[string]any{skillsExtension: struct{}{}}
	if cfg.OAuth != nil && cfg.OAuth.GrantType == config.ClientCredentials {
		all[clientCredentials] = struct{}{}
	}
	maps.Copy(all, cfg.Extensions)
	return all
}
