package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxInputs is how many questions a result may have that asks for input. mcp-go
// starts a goroutine for each.
const maxInputs = 100

// takeInputs tells the broker which questions a result has that asks for input.
func takeInputs(ctx context.Context, result json.RawMessage) error {
	if !bytes.Contains(result, []byte("inputRequests")) {
		return nil
	}
	var in struct {
		Type     mcp.ResultType             `json:"resultType"`
		Requests map[string]json.RawMessage `json:"inputRequests"`
	}
	if _ = json.Unmarshal(result, &in); len(in.Requests) > maxInputs {
		return fmt.Errorf("it asks for more inputs at once than the limit of %d", maxInputs)
	}
	if in.Type != mcp.ResultTypeInputRequired {
		return nil
	}
	requests := make(mcp.InputRequests)
	for name, raw := range in.Requests {
		var r mcp.InputRequest
		if json.Unmarshal(raw, &r) == nil { // else mcp-go refuses the result
			requests[name] = r
		}
	}
	broker.SetInputs(ctx, requests)
	return nil
}

// declare returns a request that declares what its caller can answer, if it declares
// capabilities: since protocol 2026-07-28 each request does.
func declare(ctx context.Context, r transport.JSONRPCRequest) transport.JSONRPCRequest {
	can, declared := broker.Declared(ctx)
	params, ok := r.Params.(map[string]json.RawMessage) // as mcp-go makes them then
	if !declared || !ok {
		return r
	}
	var meta map[string]json.RawMessage
	var has mcp.ClientCapabilities
	if json.Unmarshal(params["_meta"], &meta) != nil || json.Unmarshal(meta[mcp.MetaKeyClientCapabilities], &has) != nil {
		return r
	}
	meta[mcp.MetaKeyClientCapabilities] = text.RawJSON(broker.Both(has, can))
	params = maps.Clone(params)
	params["_meta"] = text.RawJSON(meta)
	r.Params = params
	return r
}

// A CapabilityError is why a server refused a request that needs what the client did not
// declare.
type CapabilityError struct {
	Required json.RawMessage // the capabilities, as the server writes them; null if it names none
	error
}

func (e *CapabilityError) Unwrap() error { return e.error }

// missingCapability returns the error of a response if it is that of a capability, which
// mcp-go would return without its data.
func missingCapability(e *mcp.JSONRPCErrorDetails) error {
	if e.Code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY {
		return nil
	}
	var data struct {
		Required json.RawMessage `json:"requiredCapabilities"`
	}
	if raw, err := json.Marshal(e.Data); err == nil {
		_ = json.Unmarshal(raw, &data)
	}
	return &CapabilityError{data.Required, e.AsError()}
}
