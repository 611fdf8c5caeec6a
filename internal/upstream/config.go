package upstream

import (
	"log/slog"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/login"
)

// A Config says how to reach one server: by InProcess, URL or Command. The
// caller must not change it after [New].
type Config struct {
	Name string // of the server; seeds the random part of reconnect delays

	Command string // program to run as a child process
	Args    []string
	Env     map[string]string // added to the few variables that every child gets
	Dir     string            // working directory; "" for that of this process

	URL     string // endpoint of streamable HTTP, or of the older HTTP with SSE
	SSE     bool   // the latter; if false, it is tried after the former was refused
	Headers map[string]string

	HeadersHelper string         // command that prints more headers; "" for none
	HeaderSources []HeaderSource // of more headers, each after the ones before
	HTTPClient    *http.Client   // the host's; nil for one of the connection's own

	Account *login.Account // of the user; nil if there can be none. Close closes it

	// Unauthorized, if not nil, returns the error of a request that the server refuses
	// with status 401, or, if there are scopes, with 403 for want of them. It must wrap
	// [ErrUnauthorized].
	Unauthorized func(scopes []string) error

	Secrets []string // further values to hide in errors and logs

	InProcess InProcess // Close does not shut it down

	// Invalid, if not nil, says why the configuration cannot work. Each attempt
	// to connect fails with it and is not repeated.
	Invalid error

	User string      // who owns the server, or ""
	Ask  ask.Options // who answers what the server asks, and how much it may ask

	LogLevel       mcp.LoggingLevel              // least level of log messages to request; "" for no request
	OnNotification func(mcp.JSONRPCNotification) // called on the goroutine that reads messages; may be nil

	Log *slog.Logger // receives problems that no caller learns of
}
