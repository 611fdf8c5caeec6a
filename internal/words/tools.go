package words

import (
	"encoding/json"
	"fmt"
)

// A Tool has the words of a meta tool.
type Tool struct {
	Name        string
	Description string
	Schema      string // of the arguments; "" for one that depends on options
	Example     string // of arguments
}

// callSchema opens the arguments in words: some clients read an object without
// properties as one that must be empty.
const callSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","description":"The tool's name"},` +
	`"arguments":{"type":"object","additionalProperties":true,"description":"What the tool takes, as mcp_tool_describe says"}` +
	`},"required":["name"]}`

// Tools are the meta tools in the order of the root, which has their names too.
var Tools = [...]Tool{
	{"mcp_tool_search", "Finds more MCP tools by keywords and activates them, so that they can be called at once by the returned name. " +
		"Use it before saying that something can't be done, and when no tool that you see is made for the task.",
		"",
		`{"query": "a few keywords"}`},
	{"mcp_tool_describe", "Returns the full descriptions and parameters of MCP tools by their names, as mcp_tool_search returns them.",
		`{"type":"object","properties":{` +
			`"names":{"type":"array","items":{"type":"string"},"minItems":1,"description":"Names of tools"}` +
			`},"required":["names"]}`,
		`{"names": ["a tool's name"]}`},
	{"mcp_tool_call", "Calls an MCP tool that is not in the tool list, by its name.",
		callSchema,
		`{"name": "a tool's name", "arguments": {…}}`},
	{"mcp_tool_call_readonly", "Calls an MCP tool that only reads, by its name: one that mcp_tool_search or mcp_tool_describe returns with read_only.",
		callSchema,
		`{"name": "a tool's name", "arguments": {…}}`},
	{"mcp_tool_page", "Reads on in a tool's result that was too long to be shown whole.",
		`{"type":"object","properties":{` +
			`"id":{"type":"string","description":"The result's id, such as \"r1\""},` +
			`"offset":{"type":"integer","minimum":0,"default":0,"description":"Where to begin, in bytes"}` +
			`},"required":["id"]}`,
		`{"id": "a result's id", "offset": 0}`},
	{"skill_search", "Finds skills by keywords. A skill is a text of instructions for one kind of task. " +
		"Use it before you begin a task that such instructions may exist for; then load what fits with skill_load.",
		"",
		`{"query": "a few keywords"}`},
	{"skill_load", "Returns the text of a skill by its name, and makes the tools active that it uses.",
		`{"type":"object","properties":{` +
			`"name":{"type":"string","description":"The skill's name"}` +
			`},"required":["name"]}`,
		`{"name": "a skill's name"}`},
	{"mcp_resource_search", "Finds resources by keywords: files, records and other data that MCP servers offer to be read with mcp_resource_read. " +
		"Without a query it lists the first ones.",
		"",
		`{"query": "a few keywords"}`},
	{"mcp_resource_read", "Reads a resource of an MCP server by its URI: one that mcp_resource_search returned, one made from a uri_template that it returned, " +
		"or one that a tool's result linked to.",
		`{"type":"object","properties":{` +
			`"uri":{"type":"string","description":"The resource's URI"},` +
			`"server":{"type":"string","description":"The server that has it; needed if several have one of this URI"}` +
			`},"required":["uri"]}`,
		`{"uri": "a resource's URI", "server": "its server"}`},
}

// BridgeSearch is the description of the search tool where it activates
// nothing.
const BridgeSearch = "Finds more MCP tools by keywords. They are described by mcp_tool_describe and called by mcp_tool_call. " +
	"Use it before saying that something can't be done, and when no tool that you see is made for the task."

// SearchSchema returns the input schema of the search tool.
func SearchSchema(standard, limit int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
		`"query":{"type":"string","description":"A few keywords for what the tool should do or work on, such as \"create pull request\"; or \"select:\" and the names of tools, separated by commas"},`+
		`"max_results":{"type":"integer","minimum":1,"maximum":%d,"default":%d,"description":"The most tools to return"}`+
		`},"required":["query"]}`, limit, standard))
}
