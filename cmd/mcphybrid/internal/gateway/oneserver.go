package gateway

import (
	"context"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/web"
)

// A scope says which servers a client has, and so what it calls what they have. Beside the
// endpoint of all servers each has one of its own, for clients that know the server: scripts, and hosts of
// its apps. There, all its tools are listed, under its own names, those for apps too. All else is
// as for other clients: calls go by a Session with the rights of the token, under
// the registered names.
type scope struct {
	server string // "" for all
	only   string // the name of the only server in all, or ""
}

// scope returns that of the endpoint to which a request was sent.
func (g *gateway) scope(ctx context.Context) scope {
	s := scope{server: web.ServerOf(ctx)}
	if all := *g.servers.Load(); len(all) == 1 {
		s.only = all[0].Name
	}
	return s
}

// hasServer reports whether there is a server of that name, in whatever state: also one that the
// file has changed, while the old one has ended and the new one has not begun, and one that it has
// removed, while calls of it run.
func (g *gateway) hasServer(name string) bool {
	return slices.ContainsFunc(*g.servers.Load(), func(c mcphybrid.ServerConfig) bool { return c.Name == name && !c.Disabled }) ||
		slices.ContainsFunc(g.mgr.Servers(), func(s mcphybrid.ServerStatus) bool { return s.Name == name })
}

// has reports whether a client has what is a server's.
func (s scope) has(server string) bool { return s.server == "" || s.server == server }

// onlyServer narrows a Session to what the client has. It has no search, so that nothing
// points to that.
func (s scope) onlyServer() mcphybrid.Access {
	return mcphybrid.Access{Allow: []string{s.server + "/*"}, Deny: []string{mcphybrid.SearchToolName}}
}

// ownTools returns the tools that a client of one server may call: those for its model, then
// those that are for apps only. Each is there once, also if the server changes it meanwhile.
func (c *conversation) ownTools() []*mcphybrid.BridgeTool {
	tools := append(c.session.InlineTools(), c.session.DeferredTools()...)
	for _, t := range c.session.AppTools(c.server) {
		if isForApps(t) {
			tools = append(tools, t)
		}
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(tools, func(t *mcphybrid.BridgeTool) bool {
		again := seen[t.Name()]
		seen[t.Name()] = true
		return again || t.Server() != c.server
	})
}

// ownTool returns the tool that the server calls so, or nil.
func (c *conversation) ownTool(own string) *mcphybrid.BridgeTool {
	tools := c.ownTools()
	if i := slices.IndexFunc(tools, func(t *mcphybrid.BridgeTool) bool { return t.OriginalName() == own }); i >= 0 {
		return tools[i]
	}
	return nil
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
		if t := c.ownTool(name); t != nil {
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
		if !slices.ContainsFunc(tools, func(t mcp.Tool) bool { return t.Name == page.Name() }) {
			tools = append(tools, listed(page, wary, modern))
		}
	}
	return tools
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
