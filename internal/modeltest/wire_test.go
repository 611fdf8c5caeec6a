package modeltest

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
	} {
		_, err := readers[test.protocol]([]byte(test.body))
		assert.ErrorContains(t, err, test.want, test.body)
	}
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
	f.Add([]byte(`{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"1"},{"type":"function_call_output","call_id":"1","output":"y"}]}`))
	f.Add([]byte(`{"model":"m","max_tokens":1,"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, read := range readers {
			if got, err := read(body); err == nil && len(got.Turns) > len(body) {
				t.Fatalf("%s: %d turns of %d bytes", name, len(got.Turns), len(body))
			}
		}
	})
}
