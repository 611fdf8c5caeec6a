package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// NewServer returns a server with the tools of s, for one client, whose model is the
// session's. The list of tools only grows at its end, and the client is told when it does:
// a session that is [mcphybrid.Automatic] is by activation here, since no Turn chooses for it.
// Calls of other names go to the session too, which calls tools that no search has found.
// If opts has no instructions, they are the session's sections, as they are now. Calls
// report their progress if the client asks for it.
//
// NewServer fails if s is ByProvider: MCP has no mark for tools that a model finds by
// itself. Make the session with [mcphybrid.SessionOptions.Client].
func NewServer(s *mcphybrid.Session, impl *mcp.Implementation, opts *mcp.ServerOptions) (*mcp.Server, error) {
	if s.Disclosure() == mcphybrid.ByProvider {
		return nil, errors.New("gosdk: a session ByProvider can't be a server: use ByActivation or ByBridge")
	}
	var own mcp.ServerOptions
	if opts != nil {
		own = *opts
	}
	if own.Instructions == "" {
		own.Instructions = s.PromptSections(mcphybrid.PromptFull)
	}
	//lint:ignore SA1019 servers of the SDK have it by default
	capabilities := mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}
	if own.Capabilities != nil {
		capabilities = *own.Capabilities
	}
	capabilities.Tools = &mcp.ToolCapabilities{ListChanged: true} // also if there are none yet
	own.Capabilities = &capabilities
	offer := &offer{session: s, server: mcp.NewServer(impl, &own)}
	if _, err := offer.tools(); err != nil {
		return nil, err
	}
	offer.server.AddReceivingMiddleware(offer.middleware)
	return offer.server, nil
}

// An offer is a session as a server.
type offer struct {
	session *mcphybrid.Session
	server  *mcp.Server

	mu   sync.Mutex
	told []string // the list that clients know of, or will ask for, each tool in JSON
}

// middleware answers what the server can't: it would list tools in the order of their
// names, and call no others.
func (o *offer) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req.GetParams().(type) {
		case *mcp.ListToolsParams:
			tools, err := o.tools()
			return &mcp.ListToolsResult{Tools: tools}, err
		case *mcp.CallToolParamsRaw:
			result, err := o.call(ctx, req.(*mcp.CallToolRequest))
			if err != nil {
				return nil, err
			}
			_, err = o.tools() // a search or a call may have added some
			return result, err
		}
		return next(ctx, method, req)
	}
}

// tools returns the session's list. It tells clients if it is not what it was.
func (o *offer) tools() ([]*mcp.Tool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := []*mcp.Tool{}
	var texts []string
	for _, t := range o.session.Tools() {
		tool := &mcp.Tool{Name: t.Name(), Description: t.Description(), InputSchema: objectSchema(t.InputSchema())}
		if b, ok := t.(*mcphybrid.BridgeTool); ok {
			tool.Title = b.Title()
			if err := convert(b.Annotations(), &tool.Annotations); err != nil {
				return nil, err
			}
		}
		text, err := json.Marshal(tool)
		if err != nil {
			return nil, err
		}
		list, texts = append(list, tool), append(texts, string(text))
	}
	known := len(o.told)
	if len(list) < known || !slices.Equal(texts[:known], o.told) { // after Compact
		known = 0
	}
	for _, tool := range list[known:] {
		o.server.AddTool(&mcp.Tool{Name: tool.Name, InputSchema: json.RawMessage(`{"type":"object"}`)}, unused)
	}
	o.told = texts
	return list, nil
}

// objectSchema returns a schema that says "type": "object". Some clients refuse the whole
// list if one does not.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members == nil || string(members["type"]) == `"object"` {
		return schema
	}
	members["type"] = json.RawMessage(`"object"`)
	changed, err := json.Marshal(members)
	if err != nil {
		return schema
	}
	return changed
}

func unused(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, errors.New("gosdk: the middleware answers")
}

func (o *offer) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, end := reporting(ctx, req)
	defer end()
	res, _ := o.session.Call(ctx, req.Params.Name, req.Params.Arguments) // res tells the model of an error
	out := new(mcp.CallToolResult)
	var kept struct{ StructuredContent json.RawMessage } // with its order and digits
	if err := errors.Join(convert(res, out), convert(res, &kept)); err != nil {
		return nil, err
	}
	if out.StructuredContent != nil {
		out.StructuredContent = kept.StructuredContent
	}
	return out, nil
}

// convert makes a value of one SDK one of the other.
func convert(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}
