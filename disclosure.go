package mcphybrid

import "fmt"

// A Disclosure says how a session's model comes to the tools that are not
// inline.
type Disclosure int

const (
	// ByActivation offers the search tool. What it finds is appended to the
	// list of tools, definition and all.
	ByActivation Disclosure = iota

	// ByBridge is for hosts whose list of tools must never change: beside the
	// inline tools it has [SearchToolName], [DescribeToolName],
	// [CallToolName] and [PageToolName], by which everything else is found,
	// described and called. No search and no call activates anything.
	ByBridge

	// ByProvider is for providers that keep tools from the model themselves,
	// as Anthropic and OpenAI do with defer_loading: the list has all tools,
	// and [Session.Export] marks the deferred ones. See [ToolReferences].
	ByProvider

	disclosures
)

func (d Disclosure) validate() {
	if d < 0 || d >= disclosures {
		panic(fmt.Sprintf("mcphybrid: SessionOptions.Disclosure is %d", d))
	}
}

// The names of the meta tools, which a session answers itself.
const (
	// SearchToolName finds deferred tools.
	SearchToolName = "mcp_tool_search"

	// DescribeToolName and CallToolName are offered with [ByBridge].
	DescribeToolName = "mcp_tool_describe"
	CallToolName     = "mcp_tool_call"

	// PageToolName reads what was left out of a long result. It is offered
	// once a result was cut; with [ByBridge], always.
	PageToolName = "mcp_tool_page"

	// SkillSearchToolName finds skills; it is offered when there are too many
	// to be listed. SkillLoadToolName reads one.
	SkillSearchToolName = "skill_search"
	SkillLoadToolName   = "skill_load"
)

// A metaKind is one of the meta tools.
type metaKind uint8

const (
	metaSearch metaKind = iota
	metaDescribe
	metaCall
	metaPage
	metaSkillSearch
	metaSkillLoad
	metaKinds
)

// A metaSet is a set of meta tools.
type metaSet [metaKinds]bool

var metaNames = [metaKinds]string{SearchToolName, DescribeToolName, CallToolName, PageToolName, SkillSearchToolName, SkillLoadToolName}

// A lineForm is how much of a tool stands in the sections.
type lineForm uint8

const (
	lineFull lineForm = iota // its name and description
	lineName                 // its name
	lineNone                 // nothing: it is counted in a shownCounts
	lineForms
)
