package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

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
	return wire.Refuse(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, map[string]any{"requiredCapabilities": json.RawMessage(required)},
		"the server needs a capability that the client did not declare")
}

// notFound returns the error for a resource that is not there as the client's protocol has
// it, with its URI; other errors as they are.
func notFound(ctx context.Context, uri string, err error) error {
	if !errors.Is(err, mcphybrid.ErrUnknownResource) && !errors.Is(err, mcp.ErrResourceNotFound) {
		return err
	}
	code := mcp.RESOURCE_NOT_FOUND
	if server.IsModernRequest(ctx) {
		code = mcp.INVALID_PARAMS
	}
	return wire.Refuse(code, map[string]any{"uri": uri}, err.Error())
}
