package mcphybrid

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// Call runs what the model called: the search tool, or a tool by its
// registered name, which is activated first if it is deferred. args is a JSON
// object in any of the shapes in which providers' clients hand it over: a
// string, []byte or [json.RawMessage] with JSON, a map, or nil.
//
// The result is never nil: it is the answer for the model. If it is a tool's
// own, errors of the tool included, the error is nil. Otherwise the result
// says in words for the model why there is none, and the error says it for the
// host: it may be [ErrUnknownTool], [ErrBadArguments], [ErrServerDown],
// [context.DeadlineExceeded] for a call timeout, or what the server answered.
func (s *Session) Call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	result, err := s.call(ctx, name, args)
	if err != nil {
		return mcp.NewToolResultError(textRefused(name, err, s.IsSearchMode())), err
	}
	return result, nil
}

func (s *Session) call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	raw, err := parseArguments(args)
	if err != nil {
		return nil, fmt.Errorf("mcphybrid: %w for %q: %w", ErrBadArguments, name, err)
	}
	tool, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	return tool.Call(ctx, raw)
}

// resolve returns the tool that the session offers under name. A deferred tool
// is activated first.
func (s *Session) resolve(name string) (Tool, error) {
	if t := s.offered(name); t != nil {
		return t, nil
	}
	if tools := s.activate([]string{name}); len(tools) == 1 {
		return tools[0], nil
	}
	return nil, fmt.Errorf("mcphybrid: %w: %q", ErrUnknownTool, name)
}
