package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/trust"
	naming "github.com/mcphybrid/mcphybrid/internal/names"
)

// A scope says which servers a client has, and so what it calls what they have. Beside the
// endpoint of all servers each has one of its own, for clients that know the server: scripts, and hosts of
// its apps. There, all its tools are listed, under its own names, those for apps too. All else is
// as for other clients: calls go by a Session with the rights of the token, under
// the registered names.
type scope struct {
	server string // "" for all
	single bool   // there is one server in all
}

// scope returns that of the endpoint to which a request was sent.
func (g *gateway) scope(ctx context.Context) scope {
	return scope{web.ServerOf(ctx), len(*g.servers.Load()) == 1}
}

// hasServer reports whether there is a server of that name, in whatever state.
func (g *gateway) hasServer(name string) bool {
	return slices.ContainsFunc(g.mgr.Servers(), func(s mcphybrid.ServerStatus) bool { return s.Name == name })
}

// has reports whether a client has what is a server's.
func (s scope) has(server string) bool { return s.server == "" || s.server == server }

// onlyServer narrows a Session to what the client has. It has no search, so that nothing
// points to that.
func (s scope) onlyServer() mcphybrid.Access {
	return mcphybrid.Access{Allow: []string{s.server + "/*"}, Deny: []string{mcphybrid.SearchToolName}}
}

// ownTools returns the tools that a client of one server may call: those for its model, then
// those that are for apps only.
func (c *conversation) ownTools() []*mcphybrid.BridgeTool {
	tools := append(c.session.InlineTools(), c.session.DeferredTools()...)
	for _, t := range c.session.AppTools(c.server) {
		if !slices.Contains(tools, t) {
			tools = append(tools, t)
		}
	}
	return slices.DeleteFunc(tools, func(t *mcphybrid.BridgeTool) bool { return t.Server() != c.server })
}

// ownTool returns the tool that the server calls so, or nil. isForApps says that it is not for
// models.
func (c *conversation) ownTool(own string) (tool *mcphybrid.BridgeTool, isForApps bool) {
	tools := c.ownTools()
	i := slices.IndexFunc(tools, func(t *mcphybrid.BridgeTool) bool { return t.OriginalName() == own })
	if i < 0 {
		return nil, false
	}
	forModels := append(c.session.InlineTools(), c.session.DeferredTools()...)
	return tools[i], !slices.Contains(forModels, tools[i])
}

// pageTool returns the tool that reads on in long results, or nil if nothing is cut or kept for the
// client.
func (c *conversation) pageTool() mcphybrid.Tool {
	tools := c.session.Tools()
	if i := slices.IndexFunc(tools, func(t mcphybrid.Tool) bool { return t.Name() == mcphybrid.PageToolName }); i >= 0 {
		return tools[i]
	}
	return nil
}

// listedTool returns the tool that the client calls so, if it is listed, or nil.
func (c *conversation) listedTool(name string) mcphybrid.Tool {
	if c.server != "" {
		if t, _ := c.ownTool(name); t != nil {
			return t
		}
		return nil
	}
	tools := c.session.Tools()
	if i := slices.IndexFunc(tools, func(t mcphybrid.Tool) bool { return t.Name() == name }); i >= 0 {
		return tools[i]
	}
	return nil
}

// listOwn is the list of a client of one server: see [listed].
func (c *conversation) listOwn(wary, modern bool) []mcp.Tool {
	tools := []mcp.Tool{}
	for _, t := range c.ownTools() {
		tool := listed(t, wary, modern)
		tool.Name = t.OriginalName()
		tools = append(tools, tool)
	}
	if page := c.pageTool(); page != nil && len(tools) > 0 {
		if t, _ := c.ownTool(page.Name()); t == nil {
			tools = append(tools, listed(page, wary, modern))
		}
	}
	return tools
}

// callTool calls the tool that a client calls so.
func (g *gateway) callTool(ctx context.Context, c *conversation, name string, args any) (*mcp.CallToolResult, error) {
	if c.server == "" {
		return c.session.Call(ctx, name, args)
	}
	t, isForApps := c.ownTool(name)
	if t == nil && name == mcphybrid.PageToolName {
		return c.session.Call(ctx, name, args)
	}
	registered := g.registered(c.server, name)
	if t != nil {
		registered = t.Name()
	}
	var result *mcp.CallToolResult
	var err error
	if !isForApps {
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
	if t, _ := c.ownTool(own); t != nil {
		return true
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

// serverInstructions are those of the server, if the client has something of it.
func (g *gateway) serverInstructions(c *conversation, s *mcphybrid.Session) string {
	all := g.mgr.Servers()
	i := slices.IndexFunc(all, func(at mcphybrid.ServerStatus) bool { return at.Name == c.server })
	may := c.of == nil || len(c.of.Access.Allow)+len(c.of.Access.Deny) == 0
	switch {
	case i < 0:
		return ""
	case may && (all[i].State == mcphybrid.StateConfigured || all[i].State == mcphybrid.StateConnecting):
		return fmt.Sprintf("Still starting: %q. Its tools are listed when it is ready.\n", c.server)
	case len(s.InlineTools())+len(s.DeferredTools()) == 0:
		return ""
	}
	return all[i].Instructions
}
