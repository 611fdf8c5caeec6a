package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/foreign"
)

// AddTools adds tools that need no connection: their handlers are called in
// this process, on the goroutine of the call, and must heed their context,
// which ends after [Options.CallTimeout]. They stand under name as a
// server's tools do, in the order given, last in registration order; more
// tools may be added under the same name later. A tool without a handler can
// be found but not called. On an error, nothing is added; it is [ErrDuplicate]
// if name is a connected server's.
func (m *Manager) AddTools(name string, tools ...mcpserver.ServerTool) error {
	err := m.addTools(name, tools)
	if err != nil {
		return fmt.Errorf("mcphybrid: tools of %q: %w", name, err)
	}
	return nil
}

func (m *Manager) addTools(name string, tools []mcpserver.ServerTool) error {
	if name == "" {
		return errors.New("the name is empty")
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
	return m.change(func() error {
		i := m.find(name)
		if i < 0 {
			i = len(m.sources)
			m.sources = append(m.sources, &source{name: name})
		}
		src := m.sources[i]
		if src.server != nil {
			return ErrDuplicate
		}
		all := slices.Concat(src.defs, defs)
		names := make(map[string]bool, len(all))
		for _, d := range all {
			if names[d.name] {
				return fmt.Errorf("tool %q: %w", d.name, ErrDuplicate)
			}
			names[d.name] = true
		}
		src.defs = all
		m.owners.claim(namePrefix(name, ""), name)
		return nil
	})
}

func (m *Manager) localDefinition(server string, t mcpserver.ServerTool) (*definition, error) {
	raw, err := json.Marshal(t.Tool)
	if err != nil {
		return nil, err
	}
	d, err := parseDefinition(server, raw, m.opts.MaxDefinition)
	if err != nil {
		return nil, err
	}
	d.registered = registeredName(server, "", d.name)
	d.call = callHandler(t.Handler, d.name, m.opts.CallTimeout)
	return d, nil
}

// callHandler runs a tool that has no connection, within the timeout. A panic
// of the handler is an error of this call.
func callHandler(handler mcpserver.ToolHandlerFunc, name string, timeout time.Duration) func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		return foreign.Within(ctx, timeout, func(ctx context.Context) (*mcp.CallToolResult, error) {
			var r mcp.CallToolRequest
			r.Params.Name = name
			r.Params.RawArguments = args
			if err := json.Unmarshal(args, &r.Params.Arguments); err != nil {
				return nil, err
			}
			if handler == nil {
				return nil, errors.New("it has no handler")
			}
			return foreign.Call(func() (*mcp.CallToolResult, error) {
				result, err := handler(ctx, r)
				if err == nil && result == nil {
					err = errors.New("the handler returned no result")
				}
				return result, err
			})
		})
	}
}
