package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
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
// answer every unknown method with {}. With preferEarlier set, discovered does the same if
// the server has an earlier version too.
func discovered(r transport.JSONRPCRequest, response *transport.JSONRPCResponse, preferEarlier bool) *transport.JSONRPCResponse {
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
	earlier := func(v string) bool { return mcp.IsValidProtocolVersion(v) && !mcp.IsModernProtocol(v) }
	if json.Unmarshal(response.Result, &says) == nil && slices.Contains(says.Versions, version) && !(preferEarlier && slices.ContainsFunc(says.Versions, earlier)) {
		return response
	}
	refusal := mcp.UnsupportedProtocolVersionError{Version: version, Supported: says.Versions}.JSONRPCError().Error
	return &transport.JSONRPCResponse{JSONRPC: response.JSONRPC, ID: response.ID, Error: &refusal}
}

// speaks returns an error unless the connection's protocol is the one that was asked for.
func (c *conn) speaks(version string) error {
	if has := c.client.ProtocolVersion(); version != "" && has != version {
		return fmt.Errorf("it speaks protocol %s, and not %s", has, version)
	}
	return nil
}

// refusesVersion reports whether err is the answer to a request whose protocol version the
// server may not support. Some say so with status 400 and a text.
func refusesVersion(err error) bool {
	bad := new(badRequestError)
	return mcp.IsUnsupportedProtocolVersion(err) || errors.As(err, &bad)
}

// refusesWhatItHas reports whether err refuses a protocol version and says that there is this
// very version. It is worth another try: the instances of a server may differ for a while.
func refusesWhatItHas(err error) bool {
	var refused mcp.UnsupportedProtocolVersionError
	return errors.As(err, &refused) && slices.Contains(refused.Supported, refused.Version)
}

// maxRefusal is how many bytes the answer may have that says that there is no such method.
const maxRefusal = 64 << 10

// lacksMethod reports whether resp says that the server does not have the method, as
// protocol 2026-07-28 demands: with status 404, which otherwise means that the session is
// over, and a JSON-RPC error. The body can still be read as a whole.
func lacksMethod(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusNotFound || kind != "application/json" {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal+1))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	var m struct {
		Version string `json:"jsonrpc"`
		Error   struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	return err == nil && len(head) <= maxRefusal && json.Unmarshal(head, &m) == nil &&
		m.Version == mcp.JSONRPC_VERSION && m.Error.Code == mcp.METHOD_NOT_FOUND
}
