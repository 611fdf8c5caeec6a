package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// refusedBy returns the error of the protocol that a call ends with, or nil if the model is
// told by a result: one that the gateway has already, or the server's that needs what the
// client can't do.
func refusedBy(err error) error {
	if refused := new(wire.Refusal); errors.As(err, &refused) {
		return refused
	}
	missing := new(upstream.CapabilityError)
	if !errors.As(err, &missing) {
		return nil
	}
	required := cmp.Or(string(missing.Required), "{}")
	return wire.Refuse(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, map[string]any{"requiredCapabilities": json.RawMessage(required)}, errCapability)
}

// Why the gateway or a server refuses a request, beside what package mcphybrid has.
var (
	errCapability = errors.New("the server needs a capability that the client did not declare")
	errMirrored   = errors.New("the headers of the request do not fit its arguments")
)

// checkMirrored returns an error if a call of a listed tool over HTTP has other arguments in
// its headers than in its message. Since protocol 2026-07-28 a client mirrors what the
// tool's schema says. Of a tool that is not listed, clients do not know the schema.
func checkMirrored(ctx context.Context, header http.Header, c *conversation, name string, args json.RawMessage) error {
	if !server.IsModernRequest(ctx) || header.Get(mcp.HeaderProtocolVersion) == "" {
		return nil
	}
	tool := c.listedTool(name)
	if tool == nil || !bytes.Contains(tool.InputSchema(), []byte("x-mcp-header")) {
		return nil
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params, err := json.Marshal(map[string]json.RawMessage{"arguments": args})
	if err != nil {
		return nil
	}
	lookup := func(name string) (string, bool) {
		values := header.Values(name)
		return strings.Join(values[:min(1, len(values))], ""), len(values) > 0
	}
	if err := mcp.ValidateParamHeadersLookup(lookup, &mcp.Tool{Name: name, RawInputSchema: tool.InputSchema()}, params); err != nil {
		return wire.Refuse(mcp.HEADER_MISMATCH, nil, fmt.Errorf("%w: %w", errMirrored, err))
	}
	return nil
}

// notFound returns the error for a resource that is not there as the client's protocol has
// it, with its URI; other errors as they are. A server says by [mcp.INVALID_PARAMS] that it has
// none, since protocol 2026-07-28, or that it can't use the URI.
func notFound(ctx context.Context, uri string, err error) error {
	code := mcp.RESOURCE_NOT_FOUND
	switch {
	case errors.Is(err, mcp.ErrInvalidParams):
		code = mcp.INVALID_PARAMS
	case !errors.Is(err, mcphybrid.ErrUnknownResource) && !errors.Is(err, mcp.ErrResourceNotFound):
		return err
	case server.IsModernRequest(ctx):
		code = mcp.INVALID_PARAMS
	}
	return wire.Refuse(code, map[string]any{"uri": uri}, err)
}

// noPrompt returns the error for a prompt that is not there as the protocol has it, as for what
// the prompt's server can't use; other errors as they are.
func noPrompt(err error) error {
	if errors.Is(err, mcphybrid.ErrUnknownResource) || errors.Is(err, mcp.ErrInvalidParams) {
		return wire.Refuse(mcp.INVALID_PARAMS, nil, err)
	}
	return err
}
