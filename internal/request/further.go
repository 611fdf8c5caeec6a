package request

import (
	"encoding/json"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/dialect"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	// Anthropic advises one to five examples of a tool, and counts some 20 to 200 tokens
	// for each. They cost tokens in each request, so we send three, and 2 KiB of all.
	maxExamples     = 3
	maxExampleBytes = 2 << 10

	// maxOutput bounds the schema of what a tool answers with. Those of published tools
	// have some 350 bytes, and 1 KB at most.
	maxOutput = 4 << 10
)

// takeExamples takes the examples of arguments out of a converted schema that has some at its
// root: the first ones that the schema allows. Anthropic refuses a request with an example
// that is not valid. examples is nil if there is none that fits; then the schema keeps what it
// has.
func takeExamples(input json.RawMessage) (rest, examples json.RawMessage, loss string) {
	members, _ := text.Members(input)
	var given, taken []json.RawMessage
	var others []text.Member
	for _, m := range members {
		if m.Name == "examples" {
			given = text.Elements(m.Value)
		} else {
			others = append(others, m)
		}
	}
	if given == nil {
		return input, nil, ""
	}
	rest = text.JoinMembers(others)
	left := maxExampleBytes
	allows := schema.Allows(rest)
	for _, e := range given {
		if e[0] == '{' && len(taken) < maxExamples && len(e) <= left && allows(e) {
			taken = append(taken, e)
			left -= len(e)
		}
	}
	if taken == nil {
		return input, nil, ""
	}
	if len(taken) < len(given) {
		loss = fmt.Sprintf("/examples: %d of %d left out, not valid or too many", len(given)-len(taken), len(given))
	}
	return rest, text.JoinElements(taken), loss
}

// outputOf returns the schema of a tool's structured content as the provider takes it, or
// nil if there is none, if it is large, or if the provider would read another one.
func (f *Form) outputOf(given json.RawMessage) json.RawMessage {
	output := text.Compact(given)
	if len(output) > maxOutput || !json.Valid(output) || output[0] != '{' {
		return nil
	}
	output, losses := dialect.Convert(schema.Prune(output), *f.dialect)
	if losses != nil {
		return nil
	}
	return schema.Prune(output)
}
