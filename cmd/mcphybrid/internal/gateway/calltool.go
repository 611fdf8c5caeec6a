package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	naming "github.com/mcphybrid/mcphybrid/internal/names"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
)

// callTool calls the tool that a client calls so.
func (g *gateway) callTool(ctx context.Context, c *conversation, name string, args any) (*mcp.CallToolResult, error) {
	if c.server == "" {
		return c.session.Call(ctx, name, args)
	}
	t := c.ownTool(name)
	if t == nil && name == mcphybrid.PageToolName {
		return c.session.Call(ctx, name, args)
	}
	registered := g.registered(c.server, name)
	if t != nil {
		registered = t.Name()
	}
	var result *mcp.CallToolResult
	var err error
	if t == nil || !isForApps(t) {
		result, err = c.session.Call(ctx, registered, args)
		if t != nil || !errors.Is(err, mcphybrid.ErrUnknownTool) || !g.isForApps(c, name) {
			return c.inOwnNames(result, registered, name, err), err
		}
	}
	ofApp, failed := c.session.CallFromApp(ctx, c.server, name, args)
	switch {
	case failed == nil:
		return ofApp, nil
	case result == nil || !errors.Is(failed, mcphybrid.ErrUnknownTool): // else who asks may not know of it
		result, err = mcp.NewToolResultErrorf("%s gave no result: %s", name, strings.TrimPrefix(failed.Error(), "mcphybrid: ")), failed
	}
	return c.inOwnNames(result, registered, name, err), err
}

// isForApps reports whether a name that no tool for the model has is that of one for apps. The call of
// it may have connected its server, or it is held back.
func (g *gateway) isForApps(c *conversation, own string) bool {
	if t := c.ownTool(own); t != nil {
		return isForApps(t) // one for the model was listed just now
	}
	return slices.ContainsFunc(trust.Quarantined(g.mgr), func(e *mcphybrid.ChangedError) bool {
		return e.Kind == "tool" && e.Server == c.server && e.Tool == own
	})
}

// registered returns the name that a tool of a server has among all servers, as long as it is not
// listed: who asks for it learns whether it is held back, not permitted or not there.
func (g *gateway) registered(server, own string) string {
	prefix := ""
	all := *g.servers.Load()
	if i := slices.IndexFunc(all, func(s mcphybrid.ServerConfig) bool { return s.Name == server }); i >= 0 {
		prefix = all[i].Prefix
	}
	return naming.Alone(server, prefix).Name(own)
}

// inOwnNames returns the answer to a call that failed with err, as it is told a client of one
// server: by the server's own names. An answer of the tool stays as it is.
func (c *conversation) inOwnNames(r *mcp.CallToolResult, registered, own string, err error) *mcp.CallToolResult {
	if err == nil || r == nil {
		return r
	}
	pairs := []string{registered, own}
	if unknown := new(mcphybrid.UnknownToolError); errors.As(err, &unknown) {
		for _, t := range c.ownTools() {
			if slices.Contains(unknown.Nearest, t.Name()) {
				pairs = append(pairs, t.Name(), t.OriginalName())
			}
		}
	}
	copied, inOwn := *r, strings.NewReplacer(pairs...)
	copied.Content = slices.Clone(r.Content)
	for i, content := range copied.Content {
		if text, ok := content.(mcp.TextContent); ok {
			text.Text = inOwn.Replace(text.Text)
			copied.Content[i] = text
		}
	}
	return &copied
}
