package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// The names of the meta tools. A session answers them itself; no server does.
const (
	// SearchToolName finds deferred tools.
	SearchToolName = "mcp_tool_search"

	// DescribeToolName and CallToolName are offered with [ByBridge], unless [Automatic] chose it
	// where no tool is deferred, and in a session whose list has no room for a tool that it activates.
	// ReadOnlyCallToolName calls only tools that say of themselves that they only
	// read; it is offered to an MCP client: see [SessionOptions.Client].
	DescribeToolName     = "mcp_tool_describe"
	CallToolName         = "mcp_tool_call"
	ReadOnlyCallToolName = "mcp_tool_call_readonly"

	// PageToolName reads the parts that were cut from a long result. It is
	// offered as soon as a result was cut; with [ByBridge] from the beginning, unless [Automatic]
	// chose it where there is no tool at all.
	PageToolName = "mcp_tool_page"

	// SkillSearchToolName finds skills. It is offered when there are too many
	// to list. SkillLoadToolName loads the text of one.
	SkillSearchToolName = "skill_search"
	SkillLoadToolName   = "skill_load"

	// ResourceSearchToolName finds resources and ResourceReadToolName reads one. They
	// are offered if the session has a resource or a template. ResourceReadToolName is also
	// offered if a result linked to a resource, or a skill may have files.
	ResourceSearchToolName = "mcp_resource_search"
	ResourceReadToolName   = "mcp_resource_read"
)

// A metaKind is one of the meta tools. A session offers them in this order.
type metaKind uint8

const (
	metaSearch metaKind = iota
	metaDescribe
	metaCall
	metaReadOnlyCall
	metaPage
	metaSkillSearch
	metaSkillLoad
	metaResourceSearch
	metaResourceRead
	metaKinds
)

// A metaSet is a set of meta tools.
type metaSet [metaKinds]bool

// metaWords are what the model reads of each meta tool before it calls it.
var metaWords = [metaKinds]struct {
	name        string
	description string
	schema      string // of the arguments; that of a search has two verbs, for the limit and the default of results
	example     string // of arguments
}{
	metaSearch: {
		name: SearchToolName,
		description: "Finds more MCP tools by keywords and activates them, so that they can be called at once by the returned name. " +
			"Use it before saying that something can't be done, and when no tool that you see is made for the task.",
		schema: `{"type":"object","properties":{` +
			`"query":{"type":"string","description":"A few keywords for what the tool should do or work on, such as \"create pull request\"; or \"select:\" and the names of tools, separated by commas"},` +
			`"max_results":{"type":"integer","minimum":1,"maximum":%d,"default":%d,"description":"The most tools to return"}` +
			`},"required":["query"]}`,
		example: `{"query": "a few keywords"}`,
	},
	metaDescribe: {
		name:        DescribeToolName,
		description: "Returns the full descriptions and parameters of MCP tools by their names, as mcp_tool_search returns them.",
		schema: `{"type":"object","properties":{` +
			`"names":{"type":"array","items":{"type":"string"},"minItems":1,"description":"Names of tools"}` +
			`},"required":["names"]}`,
		example: `{"names": ["a tool's name"]}`,
	},
	metaCall: {
		name:        CallToolName,
		description: "Calls an MCP tool that is not in the tool list, by its name.",
		schema:      callSchema,
		example:     `{"name": "a tool's name", "arguments": {…}}`,
	},
	metaReadOnlyCall: {
		name:        ReadOnlyCallToolName,
		description: "Calls an MCP tool that only reads, by its name: one that mcp_tool_search or mcp_tool_describe returns with read_only.",
		schema:      callSchema,
		example:     `{"name": "a tool's name", "arguments": {…}}`,
	},
	metaPage: {
		name:        PageToolName,
		description: "Reads on in a tool's result that was too long to be shown whole.",
		schema: `{"type":"object","properties":{` +
			`"id":{"type":"string","description":"The result's id, such as \"r1\""},` +
			`"offset":{"type":"integer","minimum":0,"default":0,"description":"Where to begin, in bytes"}%s` +
			`},"required":["id"]}`,
		example: `{"id": "a result's id", "offset": 0}`,
	},
	metaSkillSearch: {
		name: SkillSearchToolName,
		description: "Finds skills by keywords. A skill is a text of instructions for one kind of task. " +
			"Use it before you begin a task that such instructions may exist for; then load what fits with skill_load.",
		schema: `{"type":"object","properties":{` +
			`"query":{"type":"string","description":"A few keywords for the task, such as \"review code\"; or \"select:\" and the names of skills, separated by commas"},` +
			`"max_results":{"type":"integer","minimum":1,"maximum":%d,"default":%d,"description":"The most skills to return"}` +
			`},"required":["query"]}`,
		example: `{"query": "a few keywords"}`,
	},
	metaSkillLoad: {
		name:        SkillLoadToolName,
		description: "Returns the text of a skill by its name, and makes the tools active that it uses.",
		schema: `{"type":"object","properties":{` +
			`"name":{"type":"string","description":"The skill's name, or the URI of its SKILL.md"},` +
			`"server":{"type":"string","description":"With a URI, the server that has it"}` +
			`},"required":["name"]}`,
		example: `{"name": "a skill's name"}`,
	},
	metaResourceSearch: {
		name: ResourceSearchToolName,
		description: "Finds resources by keywords: files, records and other data that MCP servers offer to be read with mcp_resource_read. " +
			"Without a query it lists the first ones.",
		schema: `{"type":"object","properties":{` +
			`"query":{"type":"string","description":"A few keywords for what the resource is about; without them, the first ones are listed"},` +
			`"max_results":{"type":"integer","minimum":1,"maximum":%d,"default":%d,"description":"The most resources to return"}` +
			`}}`,
		example: `{"query": "a few keywords"}`,
	},
	metaResourceRead: {
		name: ResourceReadToolName,
		description: "Reads a resource of an MCP server by its URI: one that mcp_resource_search returned, one made from a uri_template that it returned, " +
			"or one that a tool's result linked to.",
		schema: `{"type":"object","properties":{` +
			`"uri":{"type":"string","description":"The resource's URI"},` +
			`"server":{"type":"string","description":"The server that has it; needed if several have one of this URI"}` +
			`},"required":["uri"]}`,
		example: `{"uri": "a resource's URI", "server": "its server"}`,
	},
}

// textBridgeSearch is the description of the search tool where it activates
// nothing.
const textBridgeSearch = "Finds more MCP tools by keywords. They are described by mcp_tool_describe and called by mcp_tool_call. " +
	"Use it before saying that something can't be done, and when no tool that you see is made for the task."

// pageSelect is what the page tool takes with [Options.Select].
const pageSelect = `,"select":{"type":"string","description":"A jq expression. The answer is what it selects in the result's JSON, and offset does not count"}`

// callSchema opens the arguments in words: some clients read an object without
// properties as one that must be empty.
const callSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","description":"The tool's name"},` +
	`"arguments":{"type":"object","additionalProperties":true,"description":"What the tool takes, as mcp_tool_describe says"}` +
	`},"required":["name"]}`

func (k metaKind) name() string { return metaWords[k].name }

// metaKindOf returns the meta tool with that name, and whether there is one.
func metaKindOf(name string) (kind metaKind, ok bool) {
	for kind := range metaKinds {
		if kind.name() == name {
			return kind, true
		}
	}
	return 0, false
}

// A metaTool is a meta tool of one session. Two of one kind and session are equal.
type metaTool struct {
	s    *Session
	kind metaKind
}

func (t metaTool) Name() string { return t.kind.name() }

func (t metaTool) Description() string {
	line := t.shared().Description()
	if t.isOwn() {
		line = strings.TrimSpace(line + " " + t.s.findable())
	}
	return line
}

// shared returns t as other sessions have it too, unless it is the session's own.
func (t metaTool) shared() tenantMeta {
	return tenantMeta{t.s.tenant, t.kind, t.s.Disclosure() == ByBridge}
}

// isOwn reports whether the description of t says what the session finds.
func (t metaTool) isOwn() bool { return t.kind == metaSearch && t.s.asked.client }

// A tenantMeta is a meta tool as the sessions of a tenant have it that call in the same way.
type tenantMeta struct {
	of     *tenant
	kind   metaKind
	bridge bool // the sessions are ByBridge
}

func (t tenantMeta) Name() string { return t.kind.name() }

func (t tenantMeta) Description() string {
	if t.kind == metaSearch && t.bridge {
		return textBridgeSearch
	}
	return metaWords[t.kind].description
}

// InputSchema returns the schema. That of a search tells how many results it may return, and
// that of pages whether the model may select.
func (t tenantMeta) InputSchema() json.RawMessage {
	w := metaWords[t.kind]
	switch t.kind {
	case metaSearch, metaSkillSearch, metaResourceSearch:
		o := t.of.opts.Search
		return json.RawMessage(fmt.Sprintf(w.schema, o.Limit, o.Results))
	case metaPage:
		more := ""
		if t.of.opts.Select != nil {
			more = pageSelect
		}
		return json.RawMessage(fmt.Sprintf(w.schema, more))
	}
	return json.RawMessage(w.schema)
}

// Annotations returns hints like those of a server's tool. Only calls may change
// anything.
func (t metaTool) Annotations() mcp.ToolAnnotation {
	return mcp.ToolAnnotation{ReadOnlyHint: mcp.ToBoolPtr(t.kind != metaCall)}
}

// findable says what the search tool finds, as the model was told first.
func (s *Session) findable() string {
	s.mu.Lock()
	offer := s.viewLocked().searchableServers()
	if i := slices.IndexFunc(s.shown, func(e listItem) bool { return e.slot == asMeta && e.meta == metaSearch }); i >= 0 {
		offer = s.shown[i].mentions
	}
	s.mu.Unlock()
	return offer.summarize(s.tenant.opts.Prompt.MaxSummaryTokens, s.tenant.tokens)
}

func (t metaTool) InputSchema() json.RawMessage { return t.shared().InputSchema() }

// Call answers in words even if args are malformed. So the error is always nil,
// except for the tool that [CallToolName] or [ReadOnlyCallToolName] calls.
func (t metaTool) Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	switch t.kind {
	case metaDescribe:
		return t.s.answerDescribe(args), nil
	case metaCall, metaReadOnlyCall:
		return t.s.answerCall(ctx, t.kind, args)
	case metaPage:
		return t.s.answerPage(ctx, args), nil
	case metaSkillSearch:
		return t.s.answerSkillSearch(args), nil
	case metaSkillLoad:
		return t.s.answerSkillLoad(ctx, args), nil
	case metaResourceSearch:
		return t.s.answerResourceSearch(args), nil
	case metaResourceRead:
		return t.s.answerResourceRead(ctx, args), nil
	}
	return t.s.answerSearch(ctx, args), nil
}

// offers reports whether the session has the meta tool of that kind. A meta tool
// that the model was shown stays.
func (v *view) offers(kind metaKind) bool {
	switch {
	case v.metas[kind]:
		return true
	case !mayUse(v.rights, kind.name()):
		return false
	}
	switch kind {
	case metaSearch:
		return v.disclosure == ByBridge && !v.noBridge || v.loads || v.searchMode()
	case metaReadOnlyCall:
		return v.disclosure == ByBridge && v.client && !v.noBridge
	case metaPage:
		return v.disclosure == ByBridge && (!v.noBridge || len(v.inline) > 0) || v.paged
	case metaSkillSearch:
		return v.searchesSkills()
	case metaSkillLoad:
		return v.loadsSkills()
	case metaResourceSearch:
		return v.reads
	case metaResourceRead:
		return v.reads || v.linked || v.files && v.loadsSkills()
	}
	return v.viaCallTool
}

// metaNamed returns the meta tool with that name if v offers it, or nil.
func (s *Session) metaNamed(v *view, name string) Tool {
	for kind := range metaKinds {
		if kind.name() == name && v.offers(kind) {
			return metaTool{s, kind}
		}
	}
	return nil
}

// metaTools returns the meta tools that v offers, in a fixed order.
func (s *Session) metaTools(v *view) (list []Tool) {
	for kind := range metaKinds {
		if v.offers(kind) {
			list = append(list, metaTool{s, kind})
		}
	}
	return list
}

// answerCall calls the tool that the model named.
func (s *Session) answerCall(ctx context.Context, kind metaKind, args json.RawMessage) (*mcp.CallToolResult, error) {
	passed, err := schema.ParsePassed(args)
	if err == nil && (passed.Name == CallToolName || passed.Name == ReadOnlyCallToolName) {
		err = errors.New("it can't call itself")
	}
	v := s.view()
	if err == nil {
		var check *schema.Validator // of an unknown tool, nothing is known
		if t, _ := v.lookup(passed.Name); t != nil {
			check = s.tenant.validators.Of(t.def.InputSchema)
		}
		args, err = passed.Arguments(check)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(kind, err)), nil
	}
	if t := s.metaNamed(v, passed.Name); t != nil {
		return t.Call(ctx, args)
	}
	by := callByBridge
	if kind == metaReadOnlyCall {
		by = callToRead
	}
	return s.callTool(ctx, passed.Name, args, by)
}
