// Package mcphybrid lets an agent runtime use thousands of MCP tools while its
// model sees a few dozen of them.
//
// The catalog holds all tools of all servers. Its first 40 tools
// ([DefaultMaxInline]) are inline, as far as there is room ([InlineOptions]): the
// model sees them in full, from the start. The others are deferred: the model does
// not see them until it needs one. It then searches for the tool, or calls it by its
// name. Unless the session works [ByBridge], that activates the tool: the model has its
// full definition from then on. A session is one conversation. Each session has its own
// active tools.
//
// These are the names to know first. To start:
//
//   - [LoadConfig] reads the "mcpServers" file that MCP clients share, and the
//     files of other clients.
//   - [Options] configure everything else. The zero value works.
//   - [NewManager] returns a [Manager], which owns the servers and the catalog.
//   - [Manager.Start] connects the servers.
//   - [Manager.AddTools] adds tools that are Go functions.
//   - [Manager.NewSession] returns a [Session] for one conversation.
//
// For each request to the model:
//
//   - [Session.Turn] returns the system prompt, the tools and the messages to append,
//     for a provider.
//   - [Session.Call] runs a tool call of the model and returns what it should read.
//   - [Session.Search] finds tools, inline and deferred, for the host itself.
//   - [Session.PromptSections], [Session.Tools] and [Session.Export] return the sections
//     and the list of tools by themselves, for a host that builds its own requests.
//
// For a long conversation, and at the end:
//
//   - [Session.NextTurn] tells the session that the user has written again.
//   - [Session.Compact] drops active tools that are old or above the limit.
//   - [Session.Save] returns the state as JSON, and [Manager.RestoreSession] continues from it.
//   - [Manager.Close] ends the servers.
//
// To connect it with the rest of the host:
//
//   - [Middleware] approves, logs, limits or changes calls.
//   - [Registry] is a host's own table of tools, which the Manager keeps in step.
//   - [Event] tells the host what happens in a session.
//
// Tools take this path:
//
//	MCP servers ── tools/list ──▶ catalog ─┬─ inline ───────────────▶ prompt, tools
//	                                       └─ deferred ── search ──▶ active ──▶ call
//
// This is an agent's loop. The model, base, messages and toolResult are the
// host's; the messages are JSON as the model's provider takes them:
//
//	cfg, err := mcphybrid.LoadConfig("mcp.json")
//	if err != nil {
//		log.Fatal(err)
//	}
//	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: cfg.Servers})
//	defer mgr.Close()
//	if err := mgr.Start(ctx); err != nil {
//		log.Print(err) // names each server that failed; the others work
//	}
//
//	sess := mgr.NewSession(nil)
//	for {
//		turn, err := sess.Turn(provider.Anthropic, "claude-sonnet-5-5")
//		if err != nil {
//			log.Fatal(err)
//		}
//		messages = append(messages, turn.Append...)
//		reply := model.Send(turn.Body(base, messages))
//		messages = append(messages, reply.Messages...)
//		if len(reply.ToolCalls) == 0 {
//			break
//		}
//		for _, call := range reply.ToolCalls {
//			res, err := sess.Call(ctx, call.Name, call.Arguments)
//			if err != nil {
//				log.Print(err) // res is never nil and tells the model why
//			}
//			messages = append(messages, toolResult(call, res))
//		}
//	}
//
// # Activation
//
// A deferred tool becomes active in a session when the model finds it with the
// search tool ([SearchToolName]) or calls it by its name, when the model loads a
// [Skill] that needs it, or when the host asks for it with
// [Session.ActivateTools] or [Session.SelectFor]. The tools that it needs become
// active with it. The model can call them in the same turn. A refused call
// activates nothing. In a session [ByBridge], searches and calls activate nothing: one
// fixed tool calls the others.
//
// How the model gets the definition is the session's [Disclosure], which the first
// [Session.Turn] chooses by the provider's format and the model: in a message
// ([ByAddition]) or, where the provider takes no tools there, through a tool that
// calls others ([ByBridge]). With [ByProvider], the provider hides deferred tools from
// the model. With [ByActivation], the definition is appended to the list of tools.
//
// # Requests
//
// Providers cache the beginning of a request as long as no byte of it changes, and some
// models refuse a request in which something changed before their thinking. Tools and
// system prompt stand before all messages. So each request that a host makes of
// [Session.Turn] begins with all bytes of the one before, unless it is [ByActivation], and
// what is new is appended to the conversation. Only [Session.Compact] begins anew. It drops tools that were not used
// for 20 turns ([DefaultActiveTurns], counted by [Session.NextTurn]). Of more than 64
// active tools ([DefaultMaxActive]), it drops the least recently used. It keeps those that
// were used in this turn.
//
// [Session.Tools], [Session.Export] and [Session.PromptSections] return the list and the
// sections by themselves. They grow at their end: active tools follow the others, in the
// order of their activation, and a tool that is removed or has changed stays as it was
// shown. That keeps the cache of the list, and loses that of all messages behind it. A
// tool that goes into quarantine disappears from them at once: see [TrustQuarantine].
//
// Equal configurations and tool lists give equal bytes. Tools are in
// registration order: servers as they are configured, tools as their server
// lists them. Which server connects first does not matter. Access lists,
// rules ([Rule]), pins, budgets and use decide which tools a session has and which of
// these are inline. [Session.Placements] gives the reason for each tool.
//
// # Concurrency
//
// All methods of a [Manager], a [Session] and a [User] may be called
// concurrently. A catalog never changes. When a server announces a change, or
// the host adds or removes tools, the Manager publishes a whole new catalog. A
// method that only reads tools works on one catalog from start to end and does not wait
// for the next one. [Manager.Servers] and the methods named Problems may wait until a
// change is published. A call does not wait for other servers.
//
// The caller owns the slices that methods return. What they point to is shared:
// a [BridgeTool] is immutable, and schemas and exported JSON must not be changed.
//
// The package calls what the host provides from several goroutines at once.
// [Middleware], the function that gets each [Event], and a [Registry] may call
// methods of this package. But a Registry must not close the Manager or a
// session, and a [TokenCounter] must call no method of them but [Manager.Close].
//
// [Manager.Close] waits until no process is left, and no goroutine but those in which the
// host's code hangs.
//
// # What servers send
//
// Names, descriptions, schemas and results come from third parties. The Manager
// gives tools names that are safe for model providers. A description in a prompt
// section or in the answer to a search is one line of bounded length, without
// invisible characters. Messages and definitions have a size limit. A server that
// hangs, dies or panics costs only its own calls. But the definition of a tool,
// with its full description and schema, goes to the model unchanged: see
// [Manager.Marks] and [TrustPolicy].
//
// # Other packages
//
// Package [github.com/mcphybrid/mcphybrid/provider] describes tools, results and usage as
// model providers take and report them. Package
// [github.com/mcphybrid/mcphybrid/search] ranks by words, and package
// [github.com/mcphybrid/mcphybrid/vector] by meaning. Package
// [github.com/mcphybrid/mcphybrid/snapshot] has figures, as [Session.Stats] returns them,
// and package [github.com/mcphybrid/mcphybrid/debug] serves pages that show what a Manager
// does.
package mcphybrid
