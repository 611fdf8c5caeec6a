// Package mcpanthropic gives the tool runner of github.com/anthropics/anthropic-sdk-go the
// tools of a session. Use [NewToolRunner] in place of
// client.Beta.Messages.NewToolRunner, and [NewToolRunnerStreaming] for streams.
//
// The model sees in the next request of the same turn what a search has found: at the end
// of the list of tools or, with the beta [anthropic.AnthropicBetaInlineTools2026_09_15] in
// the parameters, in a tool_addition block behind the results. Then the list stays as it
// was in the first request, and so the provider's cache of all messages is valid.
package mcpanthropic
