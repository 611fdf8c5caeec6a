package billing

import (
	"math"

	"github.com/mcphybrid/mcphybrid/provider"
)

// A Rule says how a provider bills the input of requests whose beginning it may have in its
// cache. Prices are shares of the price of an input token that is neither read from the cache
// nor written to it.
type Rule struct {
	Name   string
	Format provider.Format // the form of its requests: one that [Reader.Read] knows
	Model  string          // one that is billed so, or "" if none is

	Read  float64 // the price of a token that is read from the cache
	Write float64 // the price of the others, if the request is long enough to be cached
	Least int     // tokens of the shortest beginning that is cached

	Points Points

	// Lookback is how many blocks back from a breakpoint the provider looks for an entry, the
	// one at the breakpoint included. 0 is any number.
	Lookback int

	// Step is the unit in which tokens are read; 0 is 1. What is left over is not read.
	Step int

	// PrefixCheck is whether the provider refuses a request with thinking blocks if what stood
	// before them has changed.
	PrefixCheck bool
}

// Points says behind which blocks of a request the provider keeps entries, and from which it
// looks for those of earlier requests.
type Points int

const (
	AtEnd      Points = iota // behind the last block
	AtSections               // behind the tools, behind the system prompt, and behind the last block
	Everywhere               // behind each block: the longest common beginning is read
)

// The rules, as documented in October and November 2026. No provider was asked: a document can
// be wrong, and a cache can forget.
//
// Not all was read at its source on 2026-11-23. To be checked there: that Lookback counts the
// breakpoint's own block, Least of the newest Claude models, and what OpenAI's reads cost. Reads
// of Sonnet 5.5 are 0.05 by a quotation of the price list, while a stored page of the model,
// without a date, has 0.1.
//
// Where a document gives no order, we take tools, system prompt, messages. That is the one that
// Anthropic documents.
//
// Anthropic. Order, breakpoints (up to four), 20 positions back, automatic caching by a
// cache_control at the top of the request, writes at 1.25 for five minutes:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching (2026-07-01). Reads:
// https://platform.claude.com/docs/en/about-claude/pricing (2026-10): 0.1, but 0.05 for Opus
// 5.5 and Sonnet 5.5, and 0.025 for Fable 5.1. The least is 1,024, and 512
// for these three; some older models have 2,048 or 4,096, for which there is no rule. The
// prefix check:
// https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks
// (2026-11), for Fable and Mythos from 5.1 and Opus, Sonnet and Haiku from 5.5; with accounts
// made before 2026-08-31 only if a request asks for it. What a refused request would have cost
// is billed all the same.
//
// OpenAI. https://developers.openai.com/api/docs/guides/prompt-caching (2026-11): from 1,024
// tokens. Since GPT-5.6 a write costs 1.25 and an entry is read only at a breakpoint, and the
// implicit one stands at the latest message; also openai/codex#35300. Before, writes are
// free and the longest common beginning counts, in steps of 128 tokens. Reads by the price
// list: 0.1 for GPT-5, 0.25 for GPT-4.1, 0.5 for GPT-4o.
//
// Google. https://ai.google.dev/gemini-api/docs/caching (2026-10-13): implicit, common
// beginnings, 4,096 tokens at least for Gemini 3 and 2,048 for 2.5; the discount is 90 %, by
// https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/context-cache/context-cache-overview
// (2026-11). It was 75 % when implicit caching came with Gemini 2.5, in May 2025. Google
// promises no hit.
var (
	Anthropic          = Rule{Name: "Anthropic, 3 breakpoints", Format: provider.Anthropic, Model: "claude-sonnet-5", Read: .1, Write: 1.25, Least: 1024, Points: AtSections, Lookback: 20}
	AnthropicAutomatic = Rule{Name: "Anthropic, automatic", Format: provider.Anthropic, Model: "claude-sonnet-5", Read: .1, Write: 1.25, Least: 1024, Points: AtEnd, Lookback: 20}

	Anthropic55          = Rule{Name: "Anthropic 5.5, 3 breakpoints", Format: provider.Anthropic, Model: "claude-sonnet-5-5", Read: .05, Write: 1.25, Least: 512, Points: AtSections, Lookback: 20, PrefixCheck: true}
	Anthropic55Automatic = Rule{Name: "Anthropic 5.5, automatic", Format: provider.Anthropic, Model: "claude-sonnet-5-5", Read: .05, Write: 1.25, Least: 512, Points: AtEnd, Lookback: 20, PrefixCheck: true}
	Fable51Automatic     = Rule{Name: "Anthropic Fable 5.1, automatic", Format: provider.Anthropic, Model: "claude-fable-5-1", Read: .025, Write: 1.25, Least: 512, Points: AtEnd, Lookback: 20, PrefixCheck: true}

	GPT56 = Rule{Name: "OpenAI GPT-5.6+", Format: provider.OpenAIResponses, Model: "gpt-5.6", Read: .1, Write: 1.25, Least: 1024, Points: AtEnd}
	GPT5  = Rule{Name: "OpenAI GPT-5–5.5", Format: provider.OpenAIResponses, Model: "gpt-5", Read: .1, Write: 1, Least: 1024, Points: Everywhere, Step: 128}
	GPT41 = Rule{Name: "OpenAI GPT-4.1", Format: provider.OpenAIResponses, Model: "gpt-4.1", Read: .25, Write: 1, Least: 1024, Points: Everywhere, Step: 128}
	GPT4o = Rule{Name: "OpenAI GPT-4o", Format: provider.OpenAIResponses, Model: "gpt-4o", Read: .5, Write: 1, Least: 1024, Points: Everywhere, Step: 128}

	Gemini3  = Rule{Name: "Gemini 3", Format: provider.Gemini, Model: "gemini-3-pro", Read: .1, Write: 1, Least: 4096, Points: Everywhere}
	Gemini25 = Rule{Name: "Gemini 2.5, 0.25", Format: provider.Gemini, Model: "gemini-2.5-pro", Read: .25, Write: 1, Least: 2048, Points: Everywhere}

	// NoCache bills each token of each request. Its requests have Anthropic's form.
	NoCache = Rule{Name: "no cache", Format: provider.Anthropic, Read: 1, Write: 1, Least: math.MaxInt}
)

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{
		Anthropic, AnthropicAutomatic, Anthropic55, Anthropic55Automatic, Fable51Automatic,
		GPT56, GPT5, GPT41, GPT4o, Gemini3, Gemini25, NoCache,
	}
}
