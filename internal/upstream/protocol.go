package upstream

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A manner is how a connection is made.
type manner uint8

const (
	newest    manner = iota // server/discover, and initialize if the server refuses that
	handshake               // initialize, which leads to a protocol before 2026-07-28
	olderHTTP               // initialize over the older transport, HTTP with SSE
)

// discovered returns response, the answer to the server/discover request r. If it does not
// say that the server supports the version of r, discovered returns the error that such a
// server should send: mcp-go takes any result for a yes, and goes on with initialize after
// an error. Servers of the Go SDK that have sessions answer so, and those that
// answer every unknown method with {}.
func discovered(r transport.JSONRPCRequest, response *transport.JSONRPCResponse) *transport.JSONRPCResponse {
	var asked struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var version string
	if params, err := json.Marshal(r.Params); err == nil && json.Unmarshal(params, &asked) == nil {
		_ = json.Unmarshal(asked.Meta[mcp.MetaKeyProtocolVersion], &version)
	}
	var says struct {
		Versions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(response.Result, &says) == nil && slices.Contains(says.Versions, version) {
		return response
	}
	refusal := mcp.UnsupportedProtocolVersionError{Version: version, Supported: says.Versions}.JSONRPCError().Error
	return &transport.JSONRPCResponse{JSONRPC: response.JSONRPC, ID: response.ID, Error: &refusal}
}

// refusesVersion reports whether err is the answer to a request whose protocol version the
// server may not support. Some say so with status 400 and a text.
func refusesVersion(err error) bool {
	bad := new(badRequestError)
	return mcp.IsUnsupportedProtocolVersion(err) || errors.As(err, &bad)
}
