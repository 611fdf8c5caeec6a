package request

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wide returns an answer with so many calls, and their results. Each result has contents.
func wide(calls int, contents string) []json.RawMessage {
	asked, results := make([]string, calls), make([]string, calls)
	for i := range calls {
		asked[i] = fmt.Sprintf(`{"type":"tool_use","id":"%d","name":"a","input":{}}`, i)
		results[i] = fmt.Sprintf(`{"type":"tool_result","tool_use_id":"%d","content":%s}`, i, contents)
	}
	return []json.RawMessage{
		json.RawMessage(`{"role":"assistant","content":[` + strings.Join(asked, ",") + `]}`),
		json.RawMessage(`{"role":"user","content":[` + strings.Join(results, ",") + `]}`),
	}
}

// There is one more mark, where the request before ended, if that is 20 blocks back or more.
func TestMarkBefore(t *testing.T) {
	t.Parallel()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	hello := `{"role":"user","content":[{"type":"text","text":"Hello."}]}`
	marked := `{"role":"user","content":[{"type":"text","text":"Hello."` + mark + `}]}`
	for name, c := range map[string]struct {
		end  []string // of the request before
		then []json.RawMessage
		want string // of the last message of end
	}{
		"near":                 {[]string{hello}, wide(9, `"x"`), hello},
		"twenty blocks":        {[]string{hello}, wide(10, `"x"`), marked},
		"contents count":       {[]string{hello}, wide(6, `[{"type":"text","text":"x"},{"type":"text","text":"y"}]`), marked},
		"a string":             {[]string{`{"role":"user","content":"Hello."}`}, wide(10, `"x"`), marked},
		"not the first":        {[]string{hello, `{"role":"assistant","content":"Hi."}`, hello}, wide(10, `"x"`), marked},
		"all that stays":       {[]string{`{"role":"system","content":[{"text":"1.50","type":"text"}],"n":1.50}`}, wide(10, `"x"`), `{"role":"system","content":[{"text":"1.50","type":"text"` + mark + `}],"n":1.50}`},
		"no mark yet":          {[]string{`{"role":"user","content":[{"type":"text","text":"Hello.","cache_control":null}]}`}, wide(10, `"x"`), marked},
		"behind no thinking":   {[]string{hello, `{"role":"assistant","content":[{"type":"text","text":"Hm."},{"type":"thinking","thinking":"Hm."}]}`}, wide(10, `"x"`), `{"role":"assistant","content":[{"type":"text","text":"Hm."` + mark + `},{"type":"thinking","thinking":"Hm."}]}`},
		"behind null":          {[]string{`{"role":"user","content":[{"type":"text","text":"Hello."},null]}`}, wide(10, `"x"`), `{"role":"user","content":[{"type":"text","text":"Hello."` + mark + `},null]}`},
		"behind no block":      {[]string{`{"role":"user","content":[{"type":"text","text":"Hello."},{"type":5}]}`}, wide(10, `"x"`), `{"role":"user","content":[{"type":"text","text":"Hello."` + mark + `},{"type":5}]}`},
		"no content":           {[]string{`{"role":"user"}`}, wide(10, `"x"`), `{"role":"user"}`},
		"nothing to mark":      {[]string{`{"role":"user","content":""}`}, wide(10, `"x"`), `{"role":"user","content":""}`},
		"the host marks":       {[]string{marked, `{"role":"assistant","content":"Hi."}`, hello}, wide(10, `"x"`), hello},
		"it marks a content":   {[]string{hello}, wide(10, `[{"type":"text","text":"x"`+mark+`}]`), hello},
		"an argument's name":   {[]string{`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{"cache_control":"x"}}]}`, hello}, wide(10, `"x"`), marked},
		"malformed":            {[]string{`{"role":"user","content":[1]}`}, wide(10, `"x"`), `{"role":"user","content":[1]}`},
		"no message":           {[]string{`"Hello."`}, wide(10, `"x"`), `"Hello."`},
		"not JSON":             {[]string{`{"role`}, wide(10, `"x"`), `{"role`},
		"the answer is first":  {nil, wide(10, `"x"`), ""},
		"nothing was answered": {[]string{hello}, wide(20, `"x"`)[1:], hello},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var messages []json.RawMessage
			for _, m := range c.end {
				messages = append(messages, json.RawMessage(m))
			}
			messages = append(messages, c.then...)
			given := fmt.Sprintf("%s", messages)
			got, _ := Anthropic.Body("", nil, 0, messages)["messages"].([]json.RawMessage)
			assert.Equal(t, given, fmt.Sprintf("%s", messages), "the host's messages stay")
			assert.Len(t, got, len(messages))
			for i := range messages {
				want := string(messages[i])
				if i == len(c.end)-1 {
					want = c.want
				}
				assert.Equal(t, want, string(got[i]))
			}
		})
	}
	long := append([]json.RawMessage{json.RawMessage(hello)}, wide(10, `"x"`)...)
	for _, f := range []*Form{OpenAIChat, MCP} {
		assert.Equal(t, long, f.Body("", nil, 0, long)["messages"])
	}
}

func TestMarkBeforeWithoutMessages(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Anthropic.Body("", nil, 0, nil)["messages"])
}

// Marks of the host's take the places of ours: there are no more than four.
func TestMarksOfTheHost(t *testing.T) {
	t.Parallel()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	tools := []provider.Tool{{Name: "a", JSON: json.RawMessage(`{"name":"a"}`)}}
	for host, want := range []int{4, 4, 4, 4, 4, 5} {
		messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x"`+mark+`},`, host) + `{"type":"text","text":"x"}]}`)}
		messages = append(messages, wide(10, `"x"`)...)
		body := Anthropic.Body("Be brief.", tools, 1, messages)
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		assert.Equal(t, want, strings.Count(string(raw), "cache_control"), "%d of the host's", host)
		assert.Equal(t, host < 4, body["cache_control"] != nil)
		assert.Equal(t, host < 3, strings.Contains(fmt.Sprint(body["system"]), "cache_control"))
		assert.Equal(t, host < 2, strings.Contains(string(body["tools"].([]json.RawMessage)[0]), "cache_control"))
	}
}

// The contents of a document may have marks too.
func TestMarksInADocument(t *testing.T) {
	t.Parallel()
	const block = `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[` + block + `,` + block + `]}}]}`)}
	tools := []provider.Tool{{Name: "a", JSON: json.RawMessage(`{"name":"a"}`)}}
	raw, err := json.Marshal(Anthropic.Body("Be brief.", tools, 1, append(messages, wide(10, `"x"`)...)))
	require.NoError(t, err)
	assert.Equal(t, 4, strings.Count(string(raw), "cache_control"))
}

// The mark of the tools stands at the last of the first ones that is not deferred.
func TestMarkOfTools(t *testing.T) {
	t.Parallel()
	tool := func(deferred bool) provider.Tool {
		return provider.Tool{JSON: json.RawMessage(`{"name":"a"}`), Deferred: deferred}
	}
	for _, test := range []struct {
		tools []provider.Tool
		first int
		want  int
	}{
		{[]provider.Tool{tool(false), tool(false), tool(true)}, 3, 1}, {[]provider.Tool{tool(false), tool(false)}, 1, 0},
		{[]provider.Tool{tool(true)}, 1, -1}, {[]provider.Tool{tool(false)}, 0, -1},
	} {
		list, _ := Anthropic.Body("", test.tools, test.first, nil)["tools"].([]json.RawMessage)
		for i, raw := range list {
			assert.Equal(t, i == test.want, strings.Contains(string(raw), "cache_control"), "%d of %v", i, test)
		}
	}
}
