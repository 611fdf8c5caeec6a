package provider

// What a provider takes. internal/request writes it.

import "encoding/json"

// A Tool is one element of a provider's list of tools. It is shared and must not be
// changed.
type Tool struct {
	// Name, Description and InputSchema are what JSON says, for runtimes with types
	// of their own. Deferred reports whether JSON has the provider's mark for tools that
	// the model finds by a search. A runtime that can't pass the mark on must not send
	// the tool.
	Name        string
	Description string
	InputSchema json.RawMessage
	Deferred    bool

	// JSON is compact and has what models read. Where the provider accepts what the
	// tool's server wrote, it is unchanged: members keep their order, numbers their
	// digits. BridgeTool of package mcphybrid has the rest, such as annotations.
	//
	// It also has, where the provider takes it:
	//   - [OpenAIResponses]: strict, true if the schema is strict as it stands, and
	//     output_schema. No schema is made strict.
	//   - [Anthropic]: input_examples, up to three of the examples at the root of the
	//     input schema, if that allows them. They move, so the schema has no examples then.
	//     In a session by provider, they stay in the schema.
	//   - Both: allowed_callers, if the host asks for it by SessionOptions.AllowedCallers.
	JSON json.RawMessage

	// Losses says which parts of the description and the input schema were changed or
	// left out because the provider does not accept them. Each entry gives the place, a
	// JSON pointer into the input schema. For a part taken out of a union or a reference
	// it is the place where the part now stands. Losses is nil if nothing was lost.
	//
	// It does not mention what is not about arguments, such as annotations and
	// output schemas, nor what says nothing about them: $schema and definitions that
	// nothing refers to.
	Losses []string
}
