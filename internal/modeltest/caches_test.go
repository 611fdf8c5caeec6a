package modeltest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ephemeral = `,"cache_control":{"type":"ephemeral"}`

// long is a text of so many tokens.
func long(tokens int) string { return strings.Repeat("word", tokens) }

// said is a request of Anthropic's with a list of a tool and these texts, by turns the user's
// and the model's. The marks stand behind the tool and each text.
func said(tool string, marks []string, texts ...string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q%s}]}`, []string{"user", "assistant"}[i%2], text, marks[i+1])
	}
	return fmt.Sprintf(`{"model":"m","max_tokens":1,"tools":[{"name":%q%s}],"messages":[%s]}`, tool, marks[0], strings.Join(list, ","))
}

func billed(t *testing.T, p Protocol, bodies ...string) []Bill {
	c := &Caches{Next: always}
	for _, body := range bodies {
		code, got := post(c, p, body)
		require.Equal(t, http.StatusOK, code, got)
	}
	lost := 0
	for _, b := range c.Bills() {
		if b.Lost {
			lost++
		}
	}
	assert.Equal(t, lost, c.Lost())
	return c.Bills()
}

func TestCachesByBreakpoint(t *testing.T) {
	t.Parallel()
	hello, more := long(1500), long(2000)
	none, end := make([]string, 30), func(n int) []string {
		list := make([]string, 30)
		list[n] = ephemeral
		return list
	}

	for _, b := range billed(t, Messages, said("a", none, hello), said("a", none, hello)) {
		assert.Equal(t, Bill{Rest: b.Rest}, b, "nothing is cached without a breakpoint")
	}

	b := billed(t, Messages, said("a", end(1), hello), said("a", end(3), hello, more, "x"), said("b", end(5), hello, more, "x", "y", "z"))
	assert.Zero(t, b[0].Read)
	assert.Greater(t, b[0].Written, 1500)
	assert.Equal(t, b[0].Written, b[1].Read)
	assert.Greater(t, b[1].Written, 2000)
	assert.Equal(t, 0, b[2].Read, "the tool is another")
	assert.Equal(t, []bool{false, false, true}, []bool{b[0].Lost, b[1].Lost, b[2].Lost})

	b = billed(t, Messages, said("a", end(1), "Hi"), said("a", end(1), "Hi"))
	assert.Zero(t, b[0].Written+b[1].Read, "that is too short")

	// Another conversation has the same tools, and loses nothing.
	tool := long(1100)
	both := end(0)
	both[1] = ephemeral
	b = billed(t, Messages, said(tool, both, hello), said(tool, both, more))
	assert.Greater(t, b[1].Read, 1100)
	assert.Less(t, b[1].Read, 1200)
	assert.False(t, b[1].Lost)
	assert.Greater(t, b[1].Written, 2000)

	texts := []string{hello}
	for range 28 {
		texts = append(texts, "x")
	}
	b = billed(t, Messages, said("a", end(1), texts[:1]...), said("a", end(20), texts[:21]...))
	assert.NotZero(t, b[1].Read, "the block is the twentieth back")
	b = billed(t, Messages, said("a", end(1), texts[:1]...), said("a", end(21), texts[:21]...))
	assert.Zero(t, b[1].Read)
	assert.True(t, b[1].Lost)

	// A string is short for one text, so a breakpoint there finds it.
	short := func(body string) string {
		return strings.Replace(body, fmt.Sprintf(`[{"type":"text","text":%q}]`, hello), fmt.Sprintf("%q", hello), 1)
	}
	two := end(1)
	two[25] = ephemeral
	b = billed(t, Messages, strings.Replace(short(said("a", none, hello)), `"m"`, `"m"`+ephemeral, 1), said("a", two, texts[:25]...))
	assert.Equal(t, b[0].Written, b[1].Read)

	// The breakpoint of the request itself stands at the last block.
	automatic := func(body string) string { return strings.Replace(body, `"m"`, `"m"`+ephemeral, 1) }
	b = billed(t, Messages, automatic(said("a", none, hello)), automatic(said("a", none, hello, "x", "y")))
	assert.Equal(t, b[0].Written, b[1].Read)
	assert.NotZero(t, b[1].Written)
	assert.Zero(t, b[1].Rest)
}

// A deferred tool counts where it is loaded, and loads nothing anew.
func TestCachesDeferred(t *testing.T) {
	t.Parallel()
	head := `{"model":"m","max_tokens":1` + ephemeral + `,"tools":[{"name":"a"},{"name":"b","defer_loading":true,"description":"` + long(3000) + `"}],"messages":[`
	call := calls[Messages][0] + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_reference","tool_name":"b"}]}]}`
	hello := fmt.Sprintf(`{"role":"user","content":%q}`, long(1500))
	b := billed(t, Messages, head+hello+`]}`, head+hello+`,`+call+`]}`)
	assert.Less(t, b[0].Written, 1600)
	assert.Equal(t, b[0].Written, b[1].Read)
	assert.Greater(t, b[1].Written, 3000)
}

func TestCachesByPrefix(t *testing.T) {
	t.Parallel()
	for _, p := range []Protocol{Chat, Responses} {
		first := strings.Replace(firsts[p], "Hello", long(1500), 1)
		second := behind(first, answer+","+next)
		changed := strings.Replace(behind(second, answer+","+also), `"a"`, `"A"`, 1)
		b := billed(t, p, first, second, changed, strings.Replace(firsts[p], "Hello", "Bye", 1))
		assert.Equal(t, Bill{Rest: b[0].Rest}, b[0])
		assert.Equal(t, b[0].Rest/cacheStep*cacheStep, b[1].Read, "%s: %v", p, b)
		assert.Equal(t, Bill{Rest: b[2].Rest, Lost: true}, b[2])
		assert.Equal(t, Bill{Rest: b[3].Rest}, b[3], "that is another conversation")
	}
}

// What the model refuses is not billed.
func TestCachesRefused(t *testing.T) {
	t.Parallel()
	c := &Caches{Next: func(Request, error) (Step, error) { return Step{}, errors.New("away") }}
	code, _ := post(c, Chat, firsts[Chat])
	require.Equal(t, http.StatusBadRequest, code)
	require.Empty(t, c.Bills())
}

type fixedBill Bill

func (b fixedBill) Bill(Request) Bill { return Bill(b) }

// The usage has each provider's members, streamed or not.
func TestUsage(t *testing.T) {
	t.Parallel()
	type details struct {
		Cached int `json:"cached_tokens"`
		Write  int `json:"cache_write_tokens"`
	}
	type usage struct {
		Input        int     `json:"input_tokens"`
		Read         int     `json:"cache_read_input_tokens"`
		Creation     int     `json:"cache_creation_input_tokens"`
		Prompt       int     `json:"prompt_tokens"`
		Total        int     `json:"total_tokens"`
		PromptMore   details `json:"prompt_tokens_details"`
		ResponseMore details `json:"input_tokens_details"`
	}
	for p, want := range map[Protocol]usage{
		Chat:      {Prompt: 1111, Total: 1111, PromptMore: details{1000, 100}},
		Responses: {Input: 1111, Total: 1111, ResponseMore: details{1000, 100}},
		Messages:  {Input: 11, Read: 1000, Creation: 100},
	} {
		for _, streamed := range []bool{false, true} {
			body := firsts[p]
			if streamed {
				body = strings.Replace(body, `"m"`, `"m","stream":true,"stream_options":{"include_usage":true}`, 1)
			}
			code, got := post(&Caches{Next: always, Cache: fixedBill{Read: 1000, Written: 100, Rest: 11}}, p, body)
			require.Equal(t, http.StatusOK, code, got)
			seen := 0
			for lines := bufio.NewScanner(strings.NewReader(got)); lines.Scan(); {
				var in struct {
					Usage, Message, Response json.RawMessage
				}
				if json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &in) != nil {
					continue
				}
				for _, outer := range []json.RawMessage{in.Message, in.Response} {
					if outer != nil {
						_ = json.Unmarshal(outer, &in)
					}
				}
				var is usage
				if in.Usage != nil && json.Unmarshal(in.Usage, &is) == nil && is != (usage{}) {
					assert.Equal(t, want, is, "%s, streamed: %t", p, streamed)
					seen++
				}
			}
			assert.NotZero(t, seen, "%s, streamed: %t: %s", p, streamed, got)
		}
	}
}
