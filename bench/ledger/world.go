package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/codemode"
	"github.com/mcphybrid/mcphybrid/internal/billing"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A world is a catalog with its Managers. All conversations over it share the reader of
// requests, so that equal parts are counted once.
type world struct {
	tools  []tool
	names  []string       // by tool: what it is registered as
	byName map[string]int // the reverse

	deferring *mcphybrid.Manager // with the default options
	nothing   *mcphybrid.Manager // with nothing inline
	coding    *mcphybrid.Manager // with the tool that runs scripts

	result string // what the next call of any tool returns
	args   map[int]json.RawMessage
	reader *billing.Reader

	definitions map[provider.Format][]json.RawMessage // as servers wrote them; see raw.go
}

func newWorld(tools []tool, counter *counter) (*world, error) {
	w := &world{
		tools: tools, names: make([]string, len(tools)), byName: make(map[string]int),
		args: make(map[int]json.RawMessage), reader: billing.NewReader(counter.CountTokens),
		definitions: make(map[provider.Format][]json.RawMessage),
	}
	var err error
	if w.deferring, err = w.manager(counter, 0); err != nil {
		return nil, err
	}
	if w.nothing, err = w.manager(counter, -1); err != nil {
		w.close()
		return nil, err
	}
	if w.coding, err = w.manager(counter, 0); err == nil {
		err = w.coding.AddTools("code", codemode.Tool(nil))
	}
	if err != nil {
		w.close()
		return nil, err
	}
	type key struct{ server, name string }
	at := make(map[key]int)
	for i, t := range tools {
		at[key{t.Server, t.Name}] = i
	}
	for _, t := range w.nothing.DeferredTools() {
		i := at[key{t.Server(), t.OriginalName()}]
		w.names[i], w.byName[t.Name()] = t.Name(), i
	}
	if len(w.byName) != len(tools) {
		w.close()
		return nil, fmt.Errorf("%d tools are registered", len(w.byName))
	}
	return w, nil
}

func (w *world) manager(counter *counter, inline int) (*mcphybrid.Manager, error) {
	m := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: inline}, Tokens: counter})
	answer := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(w.result), nil
	}
	for _, group := range byServer(w.tools) {
		var of []mcpserver.ServerTool
		for _, t := range group {
			of = append(of, mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema), Handler: answer})
		}
		if err := m.AddTools(group[0].Server, of...); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

func (w *world) close() {
	for _, m := range []*mcphybrid.Manager{w.deferring, w.nothing, w.coding} {
		if m != nil {
			m.Close()
		}
	}
}

// callable reports whether tool i accepts the arguments that we make for it.
func (w *world) callable(i int) bool {
	args, known := w.args[i]
	if !known {
		var err error
		if args, err = arguments(w.tools[i].InputSchema); err == nil {
			w.result = "done"
			res, err := w.nothing.NewSession(nil).Call(context.Background(), w.names[i], args)
			if err != nil || res.IsError {
				args = nil
			}
		}
		w.args[i] = args
	}
	return args != nil
}

// query returns what a model searches for that wants tool i: the words of its name, and the
// first of its description.
func (w *world) query(i int) string {
	const most = 300 // bytes
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-./", r) {
			return ' '
		}
		return r
	}, w.tools[i].Name)
	about := strings.Fields(w.tools[i].Description)
	query := strings.Join(append(strings.Fields(name), about[:min(8, len(about))]...), " ")
	return strings.ToValidUTF8(query[:min(most, len(query))], "")
}
