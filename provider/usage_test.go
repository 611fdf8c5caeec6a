package provider

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Responses as the providers send them; what does not matter is cut.
const (
	chatResponse      = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4.1","choices":[{"index":0,"message":{"role":"assistant","content":"\"usage\":{\"prompt_tokens\":-1}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":128}}}`
	responsesResponse = `{"id":"resp_1","object":"response","output":[],"usage":{"input_tokens":9050,"input_tokens_details":{"cached_tokens":8960,"cache_write_tokens":64},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9137}}`
	messagesResponse  = `{"id":"msg_1","type":"message","role":"assistant","content":[],"diagnostics":{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":4200}},"usage":{"input_tokens":12,"cache_creation_input_tokens":1500,"cache_read_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":1500,"ephemeral_1h_input_tokens":0},"output_tokens":40,"service_tier":"standard"}}`
	geminiResponse    = `{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"}}],"usageMetadata":{"promptTokenCount":5000,"cachedContentTokenCount":4012,"candidatesTokenCount":10,"thoughtsTokenCount":32,"totalTokenCount":5042,"promptTokensDetails":[{"modality":"TEXT","tokenCount":5000}]}}`
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format   Format
		response string
		want     Usage
	}{
		{OpenAIChat, chatResponse, Usage{Input: 2006, Cached: 1920, Output: 300, Automatic: true}},
		{OpenAIResponses, responsesResponse, Usage{Input: 9050, Cached: 8960, Written: 64, Output: 87}},
		{Anthropic, messagesResponse, Usage{Input: 4512, Cached: 3000, Written: 1500, Output: 40, Miss: "tools_changed"}},
		{Gemini, geminiResponse, Usage{Input: 5000, Cached: 4012, Output: 42, Automatic: true}},
		{Bedrock, `{"output":{},"usage":{"inputTokens":12,"outputTokens":40,"totalTokens":4552,"cacheReadInputTokens":3000,"cacheWriteInputTokens":1500}}`, Usage{Input: 4512, Cached: 3000, Written: 1500, Output: 40}},
		{Bedrock, `{"inputTokens":7,"outputTokens":1,"totalTokens":8}`, Usage{Input: 7, Output: 1}},

		{OpenAIChat, `{"prompt_tokens":7,"completion_tokens":1,"prompt_tokens_details":null}`, Usage{Input: 7, Output: 1, Automatic: true}},
		{Anthropic, ` {"input_tokens":7,"cache_read_input_tokens":null,"output_tokens":1}`, Usage{Input: 7, Output: 1}},
		{Gemini, `{"promptTokenCount":7}`, Usage{Input: 7, Automatic: true}},
		{Gemini, `{"promptTokenCount":7,"cachedContentTokenCount":0,"candidatesTokenCount":0}`, Usage{Input: 7, Automatic: true}},
		{Anthropic, `{"diagnostics":{"cache_miss_reason":null},"usage":{"input_tokens":7}}`, Usage{Input: 7}},
		{Anthropic, `{"diagnostics":["?"],"usage":{"input_tokens":7}}`, Usage{Input: 7}},
		{Anthropic, `{"diagnostics":{"cache_miss_reason":{"type":"a\n# b"}},"usage":{"input_tokens":7}}`, Usage{Input: 7, Miss: "a # b"}},
		{Anthropic, `{"usage":{"input_tokens":7,"iterations":[{"type":"message","cache_read_input_tokens":3}]}}`, Usage{Input: 7}},
		{
			Anthropic, // web searches: the model was asked three times for this response
			`{"usage":{"input_tokens":20,"cache_read_input_tokens":9000,"cache_creation_input_tokens":600,"output_tokens":9,"iterations":[
				{"type":"message","cache_read_input_tokens":2800,"cache_creation_input_tokens":200},{"type":"message","cache_read_input_tokens":3000,"cache_creation_input_tokens":200},
				{"type":"message","cache_read_input_tokens":3200,"cache_creation_input_tokens":200},{"type":"compaction","cache_read_input_tokens":1}]}}`,
			Usage{Input: 9620, Cached: 9000, Written: 600, Output: 9, Left: 3400},
		},
	} {
		u, err := ParseUsage(test.format, []byte(test.response))
		require.NoError(t, err, test.response)
		assert.Equal(t, test.want, u, test.response)
	}
}

// An error names the member, and there are no figures.
func TestUsageIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format         Format
		response, want string
	}{
		{MCP, `{}`, "the format mcp has no usage"},
		{"x", `{}`, `there is no format "x"`},
		{OpenAIChat, ``, "the response is not JSON"},
		{OpenAIChat, `{"usage":{"prompt_tokens":1}`, "the response is not JSON"},
		{OpenAIChat, `[]`, `the response has no "usage"`},
		{OpenAIChat, `{"usage":null}`, `the response has no "usage"`},
		{Gemini, chatResponse, `the response has no "usageMetadata"`},
		{OpenAIChat, messagesResponse, "usage.prompt_tokens is missing"},
		{OpenAIChat, `{"usage":{"prompt_tokens":null}}`, "usage.prompt_tokens is missing"},
		{OpenAIChat, `{"usage":{"prompt_tokens":-1}}`, "usage.prompt_tokens is -1, want a whole number from 0 to 1000000000"},
		{OpenAIChat, `{"prompt_tokens":1e3}`, "prompt_tokens is 1e3, want a whole number from 0 to 1000000000"},
		{OpenAIChat, `{"prompt_tokens":"9"}`, `prompt_tokens is "9", want a whole number from 0 to 1000000000`},
		{OpenAIChat, `{"prompt_tokens":1000000001}`, "prompt_tokens is 1000000001, want a whole number from 0 to 1000000000"},
		{OpenAIChat, `{"prompt_tokens":9,"completion_tokens":[1]}`, "completion_tokens is [1], want a whole number from 0 to 1000000000"},
		{OpenAIChat, `{"usage":{"prompt_tokens":9,"prompt_tokens":8}}`, "usage.prompt_tokens is there twice"},
		{OpenAIChat, `{"usage":{"prompt_tokens":9},"usage":{"prompt_tokens":8}}`, `the response has "usage" twice`},
		{OpenAIChat, `{"usage":{"prompt_tokens":9,"prompt_tokens_details":{},"prompt_tokens_details":{}}}`, "usage.prompt_tokens_details is there twice"},
		{OpenAIChat, `{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":1.5}}}`, "usage.prompt_tokens_details.cached_tokens is 1.5, want a whole number from 0 to 1000000000"},
		{OpenAIResponses, `{"input_tokens":9,"input_tokens_details":{"cache_write_tokens":-2}}`, "input_tokens_details.cache_write_tokens is -2, want a whole number from 0 to 1000000000"},
		{OpenAIChat, `{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":10}}}`, "usage.prompt_tokens is 9, less than the 10 tokens cached and written"},
		{Anthropic, `{"usage":{"input_tokens":1000000000,"cache_read_input_tokens":1}}`, "usage.input_tokens is 1000000000, too much with the 1 tokens cached and written"},
		{Anthropic, `{"usage":{"input_tokens":1,"cache_creation_input_tokens":-3}}`, "usage.cache_creation_input_tokens is -3, want a whole number from 0 to 1000000000"},
		{Anthropic, `{"usage":{"input_tokens":1,"cache_read_input_tokens":-3}}`, "usage.cache_read_input_tokens is -3, want a whole number from 0 to 1000000000"},
		{Anthropic, `{"usage":{"input_tokens":1,"output_tokens":-3}}`, "usage.output_tokens is -3, want a whole number from 0 to 1000000000"},
		{Anthropic, `{"usage":{"input_tokens":1,"iterations":[0,{"type":"message","cache_read_input_tokens":-3}]}}`, "usage.iterations.1.cache_read_input_tokens is -3, want a whole number from 0 to 1000000000"},
		{Gemini, `{"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":-7}}`, "usageMetadata.thoughtsTokenCount is -7, want a whole number from 0 to 1000000000"},
	} {
		u, err := ParseUsage(test.format, []byte(test.response))
		require.EqualError(t, err, "mcphybrid: "+test.want, test.response)
		assert.Zero(t, u)
	}
	_, err := ParseUsage(OpenAIChat, make([]byte, 64<<20+1))
	require.ErrorContains(t, err, "more than the limit of 67108864")
	_, err = ParseUsage(OpenAIChat, []byte(`{"prompt_tokens":`+strings.Repeat("9", 1<<20)+`}`))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 300)
}

func TestUsageBounded(t *testing.T) {
	t.Parallel()
	fits := Usage{Input: 9, Cached: 4, Written: 5, Output: 1, Left: 3, Automatic: true, Miss: "tools_changed"}
	for _, test := range []struct{ give, want Usage }{
		{fits, fits},
		{Usage{Input: -1, Cached: 7, Written: -7, Output: math.MaxInt, Left: -1}, Usage{Output: 1_000_000_000}},
		{Usage{Input: 9, Cached: 10, Written: 1}, Usage{Input: 9, Cached: 9}},
		{Usage{Input: 9, Cached: 4, Written: 6}, Usage{Input: 9, Cached: 4, Written: 5}},
		{Usage{Left: math.MaxInt, Miss: "a\nb"}, Usage{Left: 1_000_000_000, Miss: "a b"}},
	} {
		assert.Equal(t, test.want, test.give.Bounded())
	}
	assert.LessOrEqual(t, len([]rune(Usage{Miss: strings.Repeat("é", 1000)}.Bounded().Miss)), 100+1)
}

// Whatever a response says, its figures add up.
func FuzzUsage(f *testing.F) {
	for _, response := range []string{chatResponse, responsesResponse, messagesResponse, geminiResponse, `{"input_tokens":7,"iterations":[{"type":"message"},{"type":"message","cache_read_input_tokens":1}]}`} {
		f.Add([]byte(response))
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		for _, format := range []Format{OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock} {
			u, err := ParseUsage(format, response)
			if err != nil {
				assert.Zero(t, u)
				assert.Less(t, len(err.Error()), 500)
				continue
			}
			for _, n := range []int{u.Input, u.Cached, u.Written, u.Output, u.Left} {
				assert.GreaterOrEqual(t, n, 0)
				assert.LessOrEqual(t, n, 1_000_000_000)
			}
			assert.LessOrEqual(t, u.Cached+u.Written, u.Input)
			assert.LessOrEqual(t, len([]rune(u.Miss)), 100+1)
			assert.NotContains(t, u.Miss, "\n")
			u.Miss = "" // a line that was cut may be cut again
			assert.Equal(t, u, u.Bounded())
		}
	})
}
