package upstream

import (
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A Config says how one server is reached: by Command, URL or InProcess. It is
// not changed once a [Server] is made of it.
type Config struct {
	Name string // of the server; seeds the times between attempts

	Command string // of a child process, with its arguments
	Args    []string
	Env     map[string]string // beside the few variables that every child gets
	Dir     string            // "" for this process's

	URL     string // of streamable HTTP
	Headers map[string]string

	InProcess *mcpserver.MCPServer // not shut down with the Server

	// Invalid, if not nil, is what is wrong with the rest. Each attempt to
	// connect fails with it, and none follows by itself.
	Invalid error

	LogLevel       mcp.LoggingLevel              // from which on log messages are asked for, or ""
	OnNotification func(mcp.JSONRPCNotification) // nil if nobody wants to know; called where messages are read

	Log *slog.Logger // of what no caller is told
}
