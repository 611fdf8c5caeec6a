package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	maxResponse = 64 << 20      // bytes of a response
	maxTokens   = 1_000_000_000 // the greatest figure that a provider may tell
	maxMiss     = 100           // characters of a provider's reason
)

// A Usage is what a provider says that one response took, in tokens. [ParseUsage]
// reads it. A host whose client has it as a type of its own can fill it in.
type Usage struct {
	Input   int // all input of the request, with what is Cached and Written
	Cached  int // the part of Input that was read from the provider's cache
	Written int // the part of Input that was written to the cache; 0 if the provider does not tell
	Output  int // with what the model thought

	// Left is what the last of several requests that the provider made for one response
	// read from the cache and wrote to it, which is what the next request can read. It is 0
	// if the provider made one.
	Left int

	// Automatic says that the provider writes all input to its cache by itself, and
	// does not tell what it wrote: so do Gemini, and models of OpenAI whose usage has no
	// cache_write_tokens. Clear it if the host makes a cache of fixed content instead,
	// as Gemini's cachedContents.
	Automatic bool

	// Miss is the provider's own reason why its cache could not be read, such as
	// "tools_changed", or "". Anthropic gives one to hosts that ask for diagnostics.
	// The first 100 characters count.
	Miss string
}

// Bounded returns u with figures that add up: one that is negative, greater than what it
// is a part of, or more than a billion, becomes the nearest that is possible. Miss becomes one
// line of at most 100 characters.
func (u Usage) Bounded() Usage {
	within := func(n, most int) int { return max(min(n, most), 0) }
	u.Input, u.Output, u.Left = within(u.Input, maxTokens), within(u.Output, maxTokens), within(u.Left, maxTokens)
	u.Cached = within(u.Cached, u.Input)
	u.Written = within(u.Written, u.Input-u.Cached)
	u.Miss = text.Line(u.Miss, maxMiss)
	return u
}

// figures says where a provider tells what a response took.
type figures struct {
	in      string   // the member of the response that has all others
	input   string   // required
	output  []string // they add up
	details string   // an object that has cached and written, or ""
	cached  string
	written string // "" if the provider never tells it
	apart   bool   // input leaves out what is cached and written
	rounds  string // the requests that the provider made for the response, or ""
}

// As in openai-go v3.96, anthropic-sdk-go v1.84 and genai v1.77, and TokenUsage of the
// Bedrock API reference.
var figuresOf = map[Format]figures{
	OpenAIChat: {
		in: "usage", input: "prompt_tokens", output: []string{"completion_tokens"},
		details: "prompt_tokens_details", cached: "cached_tokens", written: "cache_write_tokens",
	},
	OpenAIResponses: {
		in: "usage", input: "input_tokens", output: []string{"output_tokens"},
		details: "input_tokens_details", cached: "cached_tokens", written: "cache_write_tokens",
	},
	Anthropic: {
		in: "usage", input: "input_tokens", output: []string{"output_tokens"}, cached: "cache_read_input_tokens", written: "cache_creation_input_tokens",
		apart: true, rounds: "iterations",
	},
	Gemini: {
		in: "usageMetadata", input: "promptTokenCount", output: []string{"candidatesTokenCount", "thoughtsTokenCount"}, cached: "cachedContentTokenCount",
	},
	Bedrock: {
		in: "usage", input: "inputTokens", output: []string{"outputTokens"}, cached: "cacheReadInputTokens", written: "cacheWriteInputTokens", apart: true,
	},
}

// ParseUsage reads what a response took from its JSON: the whole response, or the usage
// object in it. Of a stream, pass the response that its events add up to, or the last
// usage object. Other members are not looked at, but for Anthropic's diagnostics.
//
// It fails if the format has no usage, as [MCP]; if the response is malformed, has
// no usage or more than 64 MiB; or if a figure is no whole number from 0 to a billion, or
// less than its parts. The error names the member.
func ParseUsage(f Format, response json.RawMessage) (Usage, error) {
	if err := f.check(); err != nil {
		return Usage{}, err
	}
	told, ok := figuresOf[f]
	if !ok {
		return Usage{}, fmt.Errorf("mcphybrid: the format %s has no usage", f)
	}
	u, err := told.of(response)
	if err != nil {
		return Usage{}, fmt.Errorf("mcphybrid: %w", err)
	}
	return u, nil
}

// of returns the figures of a response, or of the object in it that has them.
func (f *figures) of(response json.RawMessage) (u Usage, err error) {
	switch {
	case len(response) > maxResponse:
		return u, fmt.Errorf("the response has %d bytes, more than the limit of %d", len(response), maxResponse)
	case !json.Valid(response):
		return u, errors.New("the response is not JSON")
	}
	top, twice := text.Fields(response, f.in, "diagnostics")
	r := reader{figures: f, object: top[0], at: f.in + "."}
	if !isObject(r.object) {
		r.object, r.at = response, ""
		if own, _ := text.Fields(response, r.input); own[0] == nil {
			return u, fmt.Errorf("the response has no %q", r.in)
		}
	} else if twice == r.in {
		return u, fmt.Errorf("the response has %q twice", r.in)
	}
	if u, err = r.read(); err != nil {
		return Usage{}, err
	}
	u.Miss = missOf(top[1])
	return u, nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// A reader reads one object that has figures.
type reader struct {
	*figures
	object json.RawMessage
	at     string // before the names of its members, for errors
}

func (r *reader) read() (u Usage, err error) {
	cachedIn, at := r.object, r.at
	if r.details != "" {
		of, twice := text.Fields(r.object, r.details)
		if twice != "" {
			return u, fmt.Errorf("%s%s is there twice", r.at, twice)
		}
		cachedIn, at = of[0], r.at+r.details+"."
	}
	input, there, err := figure(r.object, r.at, r.input)
	if err == nil && !there {
		err = fmt.Errorf("%s%s is missing", r.at, r.input)
	}
	if err != nil {
		return u, err
	}
	if u.Cached, _, err = figure(cachedIn, at, r.cached); err != nil {
		return u, err
	}
	u.Automatic = !r.apart
	if r.written != "" {
		told := false
		if u.Written, told, err = figure(cachedIn, at, r.written); err != nil {
			return u, err
		}
		u.Automatic = u.Automatic && !told
	}
	for _, name := range r.output {
		n, _, err := figure(r.object, r.at, name)
		if err != nil {
			return u, err
		}
		u.Output = min(u.Output+n, maxTokens)
	}
	switch cached := int64(u.Cached) + int64(u.Written); {
	case r.apart && int64(input)+cached > maxTokens:
		return u, fmt.Errorf("%s%s is %d, too much with the %d tokens cached and written", r.at, r.input, input, cached)
	case r.apart:
		input += u.Cached + u.Written
	case cached > int64(input):
		return u, fmt.Errorf("%s%s is %d, less than the %d tokens cached and written", r.at, r.input, input, cached)
	}
	u.Input = input
	if r.rounds != "" {
		u.Left, err = r.left()
	}
	return u, err
}

// left returns what the last of several rounds left in the cache, or 0 if there was one.
// A round that only summarized the conversation leaves nothing that the next request reads.
func (r *reader) left() (tokens int, err error) {
	of, _ := text.Fields(r.object, r.rounds)
	s := text.Scan(of[0])
	if !s.Open('[') {
		return 0, nil
	}
	n := 0
	for i := 0; s.More(); i++ {
		round := s.Value()
		if kind, _ := text.Fields(round, "type"); string(kind[0]) != `"message"` {
			continue
		}
		n, tokens = n+1, 0
		for _, name := range []string{r.cached, r.written} {
			took, _, err := figure(round, fmt.Sprintf("%s%s.%d.", r.at, r.rounds, i), name)
			if err != nil {
				return 0, err
			}
			tokens = min(tokens+took, maxTokens)
		}
	}
	if n < 2 {
		return 0, nil
	}
	return tokens, nil
}

// figure returns a number of tokens that an object has, and whether it is there. null is
// not there.
func figure(object json.RawMessage, at, name string) (n int, there bool, err error) {
	of, twice := text.Fields(object, name)
	if twice != "" {
		return 0, false, fmt.Errorf("%s%s is there twice", at, name)
	}
	if text.IsNull(of[0]) {
		return 0, false, nil
	}
	tokens, err := strconv.ParseInt(string(of[0][:min(len(of[0]), 20)]), 10, 64)
	if err != nil || tokens < 0 || tokens > maxTokens {
		return 0, false, fmt.Errorf("%s%s is %s, want a whole number from 0 to %d", at, name, text.Line(string(of[0][:min(len(of[0]), 4*maxMiss)]), maxMiss), maxTokens)
	}
	return int(tokens), true, nil
}

// missOf returns the reason of a cache miss in Anthropic's diagnostics, or "" if there is
// none in the form that we know.
func missOf(diagnostics json.RawMessage) string {
	reason, _ := text.Fields(diagnostics, "cache_miss_reason")
	kind, _ := text.Fields(reason[0], "type")
	said, err := text.String("type", kind[0])
	if err != nil {
		return ""
	}
	return text.Line(said, maxMiss)
}
