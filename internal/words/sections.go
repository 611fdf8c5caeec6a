package words

import "github.com/mcphybrid/mcphybrid/internal/schema"

// Example shows the rule about optional parameters by a tool, or by [PlainExample] if tool
// is "".
func Example(tool string, e schema.Example) string {
	if tool != "" {
		tool = " For " + tool + ", when only the required ones are known:"
	}
	return tool + "\n- WRONG: " + e.Wrong + "\n- RIGHT: " + e.Right + "\n\nThe tools:\n"
}

// PlainExample is used if none of the tools makes an example.
var PlainExample = schema.Example{
	Wrong: `{"query": "open bugs", "assignee": "", "label": "none", "limit": 0, "since": null}`,
	Right: `{"query": "open bugs"}`,
}

// The steps of a search: what it finds is active, or is called by the call tool.
const (
	StepsActive = searchFirst +
		"2. The tools it returns are active at once: call them by the returned name, in this same turn.\n" +
		"3. If it finds nothing, go on with the tools you have.\n"
	StepsBridge = searchFirst +
		"2. Read what a tool that it returns takes with `mcp_tool_describe`, unless you know it.\n" +
		"3. Call it with `mcp_tool_call`, by the returned name.\n" +
		"4. If nothing is found, go on with the tools you have.\n"

	searchFirst = "Their definitions are not shown here. `mcp_tool_search` finds them:\n" +
		"1. Before you do something outside this conversation for which no listed tool is made, call `mcp_tool_search` with a few descriptive keywords, in English unless the tools are described in another language.\n"
)
