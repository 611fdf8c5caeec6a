// Package provider describes tools, results and usage as OpenAI, Anthropic, Gemini,
// Amazon Bedrock and MCP take and report them.
//
// [ExportResult] writes the result of a call for a provider, and [ParseUsage] reads what a
// response took. The tools of a session come from Session.Turn and Session.Export of
// package mcphybrid.
package provider

import "fmt"

// A new format needs, besides its constant and check: a request.Form in internal/request/form.go,
// which says how requests have it, what it takes of a schema in internal/dialect, its results in
// resultForms (result.go) and its figures in figuresOf (usage.go).

// A Format is the JSON form in which a model provider takes tools and results.
type Format string

const (
	MCP             Format = "mcp"              // elements of a tools/list result, and CallToolResult
	OpenAIChat      Format = "openai-chat"      // chat completions
	OpenAIResponses Format = "openai-responses" // responses
	Anthropic       Format = "anthropic"        // messages
	Gemini          Format = "gemini"           // function declarations of generateContent, v1beta
	Bedrock         Format = "bedrock"          // Converse and ConverseStream of Amazon Bedrock
)

// check returns an error unless f is one of the constants.
func (f Format) check() error {
	switch f {
	case MCP, OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock:
		return nil
	}
	return fmt.Errorf("mcphybrid: there is no format %q", string(f))
}
