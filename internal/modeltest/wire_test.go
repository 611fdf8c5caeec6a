package modeltest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var readers = map[string]func([]byte) (Request, error){"chat": readChat, "responses": readResponses, "messages": readMessages}

// What a provider refuses is refused.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ protocol, body, want string }{
		{"chat", `{"model":"m","messages":[{"role":"system","content":""},{"role":"user","content":"Hi"}]}`, "empty"},
		{"chat", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, "empty"},
		{"chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"tool","tool_call_id":"1"}]}`, `"1", which is not asked for`},
		{"chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1"}]}]}`, `call "1" is of type ""`},
		{"chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]},{"role":"user","content":"x"}]}`, "calls without a result: map[1:true]"},
		{"chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]}]}`, "calls without a result"},
		{"responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":""}]}]}`, "empty"},
		{"messages", `{"model":"m","system":[{"text":"s"}]}`, "max_tokens"},
		{"messages", `{"model":"m","max_tokens":1,"system":[{"type":"text","text":""}],"messages":[{"role":"user","content":"Hi"}]}`, "empty"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":""}]}]}`, "empty"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[]}]}`, "empty"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"text","text":"Hi"}]}]}`, "not the other side's"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","input":{}}]},{"role":"user","content":"x"}]}`, "calls without a result: map[1:true]"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`, `"1", which is not asked for`},
		{"chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"x"},{"role":"system","content":""}]}`, "wants a text"},
		{"chat", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]},{"role":"developer","content":"y"}]}`, "calls without a result"},
		{"chat", `{"model":"m","tools":[{}],"messages":[{"role":"system","content":"s"}]}`, "neither a name nor a type"},
		{"responses", `{"model":"m","input":[{"type":"additional_tools","role":"user","tools":[{"type":"function","name":"a"}]}]}`, `has the type "additional_tools" and the role "user"`},
		{"responses", `{"model":"m","input":[{"type":"additional_tools","role":"developer","tools":[]}]}`, "adds no tools"},
		{"responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"1","arguments":"{}"},{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"a"}]}]}`, "before the results"},
		{"responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"tool_search_call","call_id":"1","execution":"client","arguments":{}}]}`, "calls without a result"},
		{"responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"tool_search_output","call_id":"1","execution":"client","tools":[]}]}`, "not asked for"},
		{"responses", `{"model":"m","input":[{"role":"developer","content":[{"type":"input_text","text":""}]}]}`, "empty"},
		{"messages", claude(`{"role":"system","content":"x"},{"role":"user","content":"Hi"}`), "message 1 is the system's and does not follow one of the user"},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"assistant","content":"Hi."},{"role":"system","content":"x"}`), "message 3 is the system's and does not follow"},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":"x"},{"role":"system","content":"y"}`), "neither the last one nor before an answer"},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":"x"},{"role":"user","content":"y"}`), "neither the last one nor before an answer"},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"system","content":"x"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}`), "message 3 is the system's"},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":[]}`), "empty"},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"image"}]}`), `"image" with ""`},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":"x","clear_at":"now"}`), `clear_at is "now"`},
		{"messages", claude(`{"role":"user","content":"Hi","clear_at":"never"}`), `a message of "user" has clear_at`},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"x"}}]}`), `there is no tool "x" that could be removed`},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"x"}}]}`), `there is no tool "x" that could be offered`},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_definition","definition":{"name":"x"}}}]}`), `"tool_removal" with "tool_definition"`},
		{"messages", claude(`{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_reference","tool_name":"x"}]}]}`), `there is no tool "x"`},
		{"messages", claude(`{"role":"user","content":[` + strings.Repeat(marked+",", 4) + marked + `]}`), "there are 5 blocks with cache_control, and the API takes 4"},
		{"messages", strings.Replace(claude(`{"role":"user","content":[`+strings.Repeat(marked+",", 4)+`{"type":"text","text":"x"}]}`), `"m"`, `"m"`+ephemeral, 1), "there are 5 blocks"},
		{"messages", strings.Replace(claude(`{"role":"user","content":[`+strings.Repeat(marked+",", 3)+marked+`]}`), `"name":"a"`, `"name":"a"`+ephemeral, 1), "there are 5 blocks"},
		{"messages", claude(`{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"2h"}}]}`), "cache_control is"},
	} {
		_, err := readers[test.protocol]([]byte(test.body))
		assert.ErrorContains(t, err, test.want, test.body)
	}
}

const marked = `{"type":"text","text":"x"` + ephemeral + `}`

// claude is a request of Anthropic's with the tools a and, deferred, b.
func claude(messages string) string {
	return `{"model":"m","max_tokens":1,"tools":[{"name":"a"},{"name":"b","defer_loading":true}],"messages":[` + messages + `]}`
}

// What a provider takes inside a conversation is read.
func TestReadMidConversation(t *testing.T) {
	t.Parallel()
	const (
		hi       = `{"role":"user","content":"Hi"}`
		use      = `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}`
		result   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_reference","tool_name":"b"}]},{"type":"text","text":"note"}]}`
		removal  = `{"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}}`
		readd    = `{"type":"tool_addition","tool":{"type":"tool_reference","name":"a"}}`
		addition = `{"type":"tool_addition","cache_control":{"type":"ephemeral"},"tool":{"type":"tool_definition","definition":{"name":"c"}}}`
		search   = `{"type":"tool_search_call","call_id":"1","execution":"client","arguments":{"q":1}}`
		found    = `{"type":"tool_search_output","call_id":"1","execution":"client","tools":[{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"get","defer_loading":true}]}]}`
		hosted   = `{"type":"tool_search_call","execution":"server","arguments":{}},{"type":"tool_search_output","execution":"server","tools":[{"type":"function","name":"d","defer_loading":true}]}`
	)
	system := func(blocks ...string) string {
		return `{"role":"system","content":[` + strings.Join(blocks, ",") + `]}`
	}
	openai := func(items ...string) string {
		return `{"model":"m","tools":[{"type":"tool_search","execution":"client"},{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"put","defer_loading":true},{"type":"function","name":"list"}]}],"input":[` + strings.Join(items, ",") + `]}`
	}
	for _, test := range []struct {
		protocol, body string
		turns          []Turn
		standing       map[string]Standing
		removed        []string
	}{
		{"messages", claude(hi + "," + system(`{"type":"text","text":"one"}`, removal, `{"type":"text","text":"two"}`, addition)),
			[]Turn{{User: "Hi", Told: "one\ntwo"}}, map[string]Standing{"a": Removed, "b": Deferred, "c": Offered}, []string{"a"}},
		{"messages", claude(hi + "," + system(removal, readd) + "," + answer + "," + next),
			[]Turn{{User: "Hi"}, {Model: "Hi."}, {User: "And now?"}}, map[string]Standing{"a": Offered, "b": Deferred}, []string{"a"}},
		{"messages", claude(hi + "," + use + "," + result + `,{"role":"system","content":"more"}`),
			[]Turn{{User: "Hi"}, {Calls: []Call{{ID: "1", Name: "a", Arguments: "{}"}}}, {Results: []Result{{ID: "1"}}, Told: "note\nmore"}},
			map[string]Standing{"a": Offered, "b": Offered}, nil},
		{"messages", claude(`{"role":"user","content":[` + strings.Repeat(marked+",", 3) + marked + `]}`),
			[]Turn{{User: "xxxx"}}, map[string]Standing{"a": Offered, "b": Deferred}, nil},
		{"messages", strings.Replace(claude(`{"role":"user","content":[`+strings.Repeat(marked+",", 3)+marked+`]}`), `"m"`, `"m"`+ephemeral, 1), // at the same block
			[]Turn{{User: "xxxx"}}, map[string]Standing{"a": Offered, "b": Deferred}, nil},
		{"responses", openai(hi, search, found, `{"type":"message","role":"developer","content":"note"}`, answer),
			[]Turn{{User: "Hi"}, {Calls: []Call{{ID: "1", Name: ToolSearch, Arguments: `{"q":1}`}}},
				{Results: []Result{{ID: "1", Text: `[{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"get","defer_loading":true}]}]`}}, Told: "note"}, {Model: "Hi."}},
			map[string]Standing{"tool_search": Offered, "crm.put": Deferred, "crm.list": Offered, "crm.get": Offered}, nil},
		{"responses", openai(hi, hosted, `{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"e"},{"type":"function","name":"f","defer_loading":true}]}`,
			`{"type":"function_call","call_id":"1","namespace":"crm","name":"list","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}`),
			[]Turn{{User: "Hi"}, {Calls: []Call{{ID: "1", Namespace: "crm", Name: "list", Arguments: "{}"}}}, {Results: []Result{{ID: "1", Text: "x"}}}},
			map[string]Standing{"tool_search": Offered, "crm.put": Deferred, "crm.list": Offered, "d": Offered, "e": Offered, "f": Deferred}, nil},
		{"chat", behind(behind(firsts[Chat], calls[Chat][0]+","+calls[Chat][1]), `{"role":"user","content":"note"},{"role":"system","content":"more"},`+answer+`,{"role":"developer","content":"first"},`+next),
			[]Turn{{User: "Hello"}, {Calls: []Call{{ID: "1", Name: "a", Arguments: "{}"}}}, {Results: []Result{{ID: "1", Text: "x"}}, Told: "note\nmore"}, {Model: "Hi."}, {User: "And now?", Told: "first"}},
			map[string]Standing{"a": Offered, "b": Offered}, nil},
	} {
		got, err := readers[test.protocol]([]byte(test.body))
		require.NoError(t, err, test.body)
		assert.Equal(t, test.turns, got.Turns)
		assert.Equal(t, test.standing, got.Standing)
		assert.Equal(t, test.removed, got.Removed)
	}
}

// A part that needs a beta is refused without it.
func TestBetas(t *testing.T) {
	t.Parallel()
	for beta, block := range map[string]string{
		"inline-tools-2026-09-15":                  `{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"c"}}}`,
		"mid-conversation-tool-changes-2026-07-01": `{"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}}`,
	} {
		got, err := readMessages([]byte(claude(`{"role":"user","content":"Hi"},{"role":"system","content":[` + block + `]}`)))
		require.NoError(t, err)
		require.ErrorContains(t, got.checkBetas([]string{"x"}), beta)
		require.NoError(t, got.checkBetas([]string{"x", beta + ",y"}))
	}
	got, err := readMessages([]byte(claude(`{"role":"user","content":"Hi"},{"role":"system","content":"x"}`)))
	require.NoError(t, err)
	require.NoError(t, got.checkBetas(nil), "texts need none")
}

// The model's own search, and calls in a namespace, are written as the API does.
func TestWriteSearch(t *testing.T) {
	t.Parallel()
	model := Model(func(_ Request, err error) (Step, error) {
		return Step{Calls: []Call{{ID: "1", Name: ToolSearch, Arguments: `{"q":1}`}, {ID: "2", Namespace: "crm", Name: "get", Arguments: "{}"}}}, err
	})
	_, got := post(model, Responses, firsts[Responses])
	assert.Contains(t, got, `{"arguments":{"q":1},"call_id":"1","execution":"client","id":"tsc_1","status":"completed","type":"tool_search_call"}`)
	assert.Contains(t, got, `"name":"get","namespace":"crm"`)
	_, got = post(model, Responses, strings.Replace(firsts[Responses], `"m"`, `"m","stream":true`, 1))
	assert.Contains(t, got, `{"arguments":{},"call_id":"1","execution":"client","id":"tsc_1","status":"in_progress","type":"tool_search_call"}`)
	assert.Equal(t, 3, strings.Count(got, `"namespace":"crm"`), "begun, done, and in the completed response: %s", got)
}

// Members have no order, and digits count.
func TestCanonical(t *testing.T) {
	t.Parallel()
	assert.Equal(t, canonical(`{"b":[1,{"d":null,"c":2}],"a":"<"}`), canonical(`{ "a": "<", "b": [1, {"c": 2, "d": null}] }`))
	assert.NotEqual(t, canonical(`{"a":9007199254740993}`), canonical(`{"a":9007199254740992}`))
	assert.Equal(t, `{"a":1} x`, canonical(`{"a":1} x`), "that is no JSON")
	assert.Equal(t, "{", canonical("{"))
	assert.Equal(t, canonical(`{"a":9007199254740992}`), rounded(`{"a":9007199254740993}`))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]},{"role":"tool","tool_call_id":"1"}]}`))
	f.Add([]byte(`{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"1","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"y"}]}`))
	f.Add([]byte(`{"model":"m","max_tokens":1,"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`))
	f.Add([]byte(claude(`{"role":"user","content":[` + marked + `]},{"role":"system","content":[{"type":"text","text":"t"},{"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"c"}}}]}`)))
	f.Add([]byte(`{"model":"m","tools":[{"type":"namespace","name":"n","tools":[{"name":"f"}]}],"input":[{"role":"user","content":"x"},{"type":"additional_tools","role":"developer","tools":[{"name":"g"}]},{"type":"tool_search_call","call_id":"1","execution":"client","arguments":{}},{"type":"tool_search_output","call_id":"1","execution":"client","tools":[{"name":"h"}]}]}`))
	for _, body := range firsts {
		f.Add([]byte(behind(body, answer+","+next)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for protocol := range paths {
			s := &Prefix{}
			if s.check(protocol, body) == nil && s.check(protocol, body) != nil {
				t.Fatalf("%s: a request does not begin with itself: %v", protocol, s.Wrong())
			}
			got, err := readers[string(protocol)](body)
			if err != nil {
				continue
			}
			got.Protocol, got.Body = protocol, body
			cache := new(CommonCache)
			for range 2 {
				if b := cache.Bill(got); min(b.Read, b.Written, b.Rest) < 0 || b.Lost {
					t.Fatalf("%s: %+v", protocol, b)
				}
			}
		}
		for name, read := range readers {
			if got, err := read(body); err == nil && len(got.Turns) > len(body) {
				t.Fatalf("%s: %d turns of %d bytes", name, len(got.Turns), len(body))
			}
		}
	})
}
