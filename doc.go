// Package mcphybrid lets an agent runtime have thousands of MCP tools while
// its model sees a few dozen.
//
// A [Manager] connects MCP servers and gives the model their first 40 tools in
// full (inline). The rest it keeps out of the prompt (deferred) until they are
// needed: the model finds them with the tool mcp_tool_search, or calls one by
// its name, and they become callable in the same turn (active). A [Session] is
// one conversation's view of it, a [BridgeTool] one MCP tool as a Go value.
//
//	MCP servers ── tools/list ──▶ catalog ─┬─ inline ───────────────▶ prompt, tools
//	                                       └─ deferred ── search ──▶ active ──▶ call
//
// This is the whole of it in an agent's loop:
//
//	cfg, err := mcphybrid.LoadConfig("mcp.json")
//	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
//	defer mgr.Close()
//	if err := mgr.Start(ctx); err != nil {
//		log.Print(err) // names each server that failed; the others work
//	}
//
//	sess := mgr.NewSession(nil)
//	for {
//		system := base + sess.PromptSections(mcphybrid.PromptFull)
//		reply := model.Chat(system, messages, sess.Tools())
//		for _, call := range reply.ToolCalls {
//			res, err := sess.Call(ctx, call.Name, call.Arguments)
//			…
//		}
//	}
//
// A host with a loop and a table of tools of its own gives the Manager that
// table as a [Registry], and uses [Session.ActivateTools] and the sections.
//
// # Order
//
// Equal configurations and tool lists give equal bytes. Tools stand in
// registration order: servers as they were configured, tools as their server
// lists them, whoever connects first. Active tools follow in the order of
// their activation, so that activating one changes nothing that was sent to
// the model before.
//
// # Sessions
//
// Which tools a session has, and which of them are inline, follows from access
// lists, [Rule]s, pins, budgets and use: see [Session.Placements].
//
// What a model is sent at the head of each request is cached by its provider as
// long as not a byte changes. So the sections and the tools of a session only
// grow, whatever happens to the catalog, until the host calls
// [Session.Compact], where active tools are given up that are too many or too
// old. A session can be saved by one process and restored by another.
//
// Each call goes one way: found, permitted, valid, let pass by the host's
// [Middleware], activated, run. See [Session.Call].
//
// # What servers send
//
// Names, descriptions, schemas and results come from third parties. Registered
// names are safe for model providers; a description in a prompt section or a
// search answer is one line of bounded length without characters that can't be
// seen; messages and definitions have a size limit; a server that hangs, dies
// or panics costs its own calls. What a tool definition itself says to the
// model, its full description and schema, is not changed.
package mcphybrid
