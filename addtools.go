package mcphybrid

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// AddTools adds tools that need no connection. Their handlers run in this process,
// on the goroutine of the call. They must heed their context, which ends after
// [config.Limits.CallTimeout]. A tool without a handler can be found but not called.
//
// name takes the place of a server's name: it must not be empty. The tools come
// last in registration order, in the order given. You can add more tools under the
// same name later: they follow the earlier ones.
//
// If AddTools returns an error, it has added nothing. The error is [ErrDuplicate]
// if a server has that name or name already has a tool with the same name.
func (m *Manager) AddTools(name string, tools ...mcpserver.ServerTool) error {
	return prefixed(m.addTools(name, tools), "tools of %q: ", name)
}

func (m *Manager) addTools(name string, tools []mcpserver.ServerTool) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if !utf8.ValidString(name) { // a state and a store would have another
		return errors.New("the name is not valid UTF-8")
	}
	var defs []*definition
	var problems []error
	for i, t := range tools {
		d, err := m.localDefinition(name, t)
		if err != nil {
			problems = append(problems, fmt.Errorf("tool %d: %w", i, err))
			continue
		}
		defs = append(defs, d)
	}
	if problems != nil {
		return errors.Join(problems...)
	}
	if _, err := m.loadStores(); err != nil {
		return err
	}
	if err := m.countTokens(m.life, defs); err != nil {
		if m.life.Err() != nil {
			return ErrClosed
		}
		return err
	}
	return m.publishChange(func() error {
		src := cmp.Or(m.sourceNamed(name), &source{name: name})
		if src.server != nil {
			return ErrDuplicate
		}
		all := slices.Concat(src.defs, defs)
		names := make(map[string]bool, len(all))
		for _, d := range all {
			if names[d.Own] {
				return fmt.Errorf("tool %q: %w", d.Own, ErrDuplicate)
			}
			names[d.Own] = true
		}
		if err := src.claimNames(m.names); err != nil {
			return err
		}
		for _, d := range defs {
			if err := src.nameTool(m.names, d); err != nil {
				return fmt.Errorf("tool %q: %w", d.Own, err)
			}
		}
		src.defs = all
		m.stageSource(src)
		return nil
	})
}

func (m *Manager) localDefinition(server string, t mcpserver.ServerTool) (*definition, error) {
	raw, err := json.Marshal(t.Tool)
	if err != nil {
		return nil, err
	}
	d, err := m.sharedDefinitions().parse(server, raw, m.opts.Limits.MaxDefinition)
	if err != nil {
		return nil, err
	}
	d.call = callHandler(t.Handler, d.Own, m.opts.Limits.CallTimeout)
	return d, nil
}

// callHandler returns a function that calls handler within the timeout. A panic of
// the handler becomes an error of that call.
func callHandler(handler mcpserver.ToolHandlerFunc, name string, timeout time.Duration) func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		return hostcode.Within(ctx, timeout, func(ctx context.Context) (*mcp.CallToolResult, error) {
			var r mcp.CallToolRequest
			r.Params.Name = name
			r.Params.RawArguments = args
			if err := json.Unmarshal(args, &r.Params.Arguments); err != nil {
				return nil, err
			}
			if handler == nil {
				return nil, errors.New("the tool has no handler")
			}
			return hostcode.Call("the handler", func() (*mcp.CallToolResult, error) {
				result, err := handler(ctx, r)
				if err == nil && result == nil {
					err = errors.New("the handler returned no result")
				}
				return result, err
			})
		})
	}
}
