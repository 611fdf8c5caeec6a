package mcphybrid

import "fmt"

// A Disclosure says how a session's model gets the tools that are not inline.
type Disclosure int

const (
	// Automatic leaves the choice to the first [Session.Turn], which knows the format
	// and the model: [ByAddition] where the provider takes tools inside the
	// conversation, otherwise [ByBridge], or nothing but the tools while none is
	// deferred. If the session may not use the call tool, it is [ByActivation]. A session that is used without Turn is then [ByActivation].
	Automatic Disclosure = iota

	// ByActivation offers the search tool. The tools that it finds become
	// active: their full definitions are appended to the tool list. The list stands
	// before the messages, so a provider's cache of the whole conversation is lost each
	// time, and models that check what stands before their thinking refuse the request.
	ByActivation

	// ByAddition is ByActivation with a tool list that stays as it was at the
	// beginning: [Session.Turn] appends the definitions to the conversation. Anthropic's
	// messages take them so, and OpenAI's responses.
	ByAddition

	// ByBridge is for hosts whose tool list must never change. The list has the
	// inline tools, [SearchToolName], [DescribeToolName], [CallToolName] and
	// [PageToolName]. With these the model finds, describes and calls all other
	// tools. Searches and calls activate nothing. What the host activates comes with its
	// definition as text, at the end of the sections or, with a Turn, of the conversation.
	ByBridge

	// ByProvider is for providers that hide tools from the model themselves, as
	// Anthropic and OpenAI do with defer_loading. [Session.Export] returns all tools
	// and marks the deferred ones, which [Session.Tools] leaves out. For
	// Anthropic, [provider.ExportResult] has the search tool load what it finds. For OpenAI's
	// responses, a [Turn] has no deferred tools but tool_search, whose searches
	// [Session.AnswerToolSearch] answers; that takes GPT-5.4 or later. With Export, the
	// host adds a tool_search that OpenAI runs. OpenAI's chat completions defer nothing,
	// but some endpoints that speak them do, and load what provider.ExportResult refers to.
	ByProvider

	disclosures
)

var disclosureNames = [disclosures]string{"automatic", "activation", "addition", "bridge", "provider"}

// String returns the name without "By", in lower case.
func (d Disclosure) String() string {
	if d < 0 || d >= disclosures {
		return fmt.Sprintf("Disclosure(%d)", int(d))
	}
	return disclosureNames[d]
}

func (d Disclosure) validate() {
	if d < 0 || d >= disclosures {
		panic(fmt.Sprintf("mcphybrid: SessionOptions.Disclosure is %d", int(d)))
	}
}
