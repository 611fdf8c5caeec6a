package modeltest

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script decides whether a loop is right, so it must refuse wrong requests.
func TestScriptRefuses(t *testing.T) {
	t.Parallel()
	raw := func(names ...string) (list []json.RawMessage) {
		for _, name := range names {
			list = append(list, json.RawMessage(`{"name":"`+name+`"}`))
		}
		return list
	}
	right := func() Request {
		return Request{System: "be good", Turns: []Turn{
			{User: "hello"},
			{Calls: []Call{{ID: "call_1_1", Name: "a", Arguments: `{"x":1}`}, {ID: "call_1_2", Name: "b", Arguments: `{}`}}},
			{Results: []Result{{"call_1_1", "one", false}, {"call_1_2", "not so", true}}},
		}, Tools: raw("a", "b", "c"), Messages: raw("1", "2", "3")}
	}
	for _, test := range []struct {
		name, want string
		change     func(*Request)
	}{
		{"right", "", func(*Request) {}},
		{"system", "the system prompt is not what it was", func(r *Request) { r.System += " " }},
		{"stream", "stream is true, want false", func(r *Request) { r.Stream = true }},
		{"tool lost", "of 2, a tool is gone: there are 1", func(r *Request) { r.Tools = r.Tools[:1] }},
		{"tool changed", "tool 2 is not what it was", func(r *Request) { r.Tools[1] = []byte(`{"name": "b"}`) }},
		{"tool before", "tool 1 is not what it was", func(r *Request) { r.Tools = slices.Insert(r.Tools, 0, r.Tools[2]) }},
		{"no new tool", "has grown by []", func(r *Request) { r.Tools = r.Tools[:2] }},
		{"one more tool", `has grown by ["c" "c"]`, func(r *Request) { r.Tools = append(r.Tools, r.Tools[2]) }},
		{"message changed", "message 2 is not what it was", func(r *Request) { r.Messages[1] = nil }},
		{"question changed", "turn 1 is not what it was", func(r *Request) { r.Turns[0].User = "Hello" }},
		{"arguments changed", "turn 2 is not what it was", func(r *Request) { r.Turns[1].Calls[0].Arguments = `{"x":2}` }},
		{"turn lost", "has 2 turns, want 3", func(r *Request) { r.Turns = r.Turns[1:] }},
		{"result lost", "1 results, and 2 in the script, for 2 calls", func(r *Request) { r.Turns[2].Results = r.Turns[2].Results[:1] }},
		{"results crossed", `result 1 is for "call_1_2", want "call_1_1"`, func(r *Request) { slices.Reverse(r.Turns[2].Results) }},
		{"error not marked", "result 2 is marked as an error: false, want true", func(r *Request) { r.Turns[2].Results[1].IsError = false }},
		{"result marked", "result 1 is marked as an error: true, want false", func(r *Request) { r.Turns[2].Results[0].IsError = true }},
		{"result changed", `want "one" in it`, func(r *Request) { r.Turns[2].Results[0].Text = "two" }},
		{"image", `there are the images ["x"]`, func(r *Request) { r.Turns[2].Images = []string{"x"} }},
		{"user", `the user's message is "and", want ""`, func(r *Request) { r.Turns[2].User = "and" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			was := right()
			s := &Script{next: 1, last: conversation{Request{System: was.System, Tools: was.Tools[:2], Messages: was.Messages[:2]}, was.Turns[:2]}}
			got := right()
			test.change(&got)
			err := s.check(Step{Results: []string{"one", "!not"}, Tools: []string{"c"}}, got)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

// A request more than the script has is wrong, even if the runtime swallows the error.
func TestScriptIsOver(t *testing.T) {
	t.Parallel()
	s := &Script{}
	_, err := s.Play(Request{}, nil)
	require.ErrorContains(t, err, "at its end")
	require.ErrorIs(t, s.Wrong(), err)
	require.ErrorIs(t, s.End(), err)
}

// A conversation that begins anew has the answer before it, and nothing else.
func TestScriptAnew(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]Request{
		"":                               {System: "s", Turns: []Turn{{User: "It was about x. Go on."}}},
		"the system prompt":              {Turns: []Turn{{User: "It was about x. Go on."}}},
		"2 turns, want 1":                {System: "s", Turns: []Turn{{User: "It was about x."}, {User: "Go on."}}},
		`want "about x" and "Go on."`:    {System: "s", Turns: []Turn{{User: "Go on."}}},
		"the list of tools has grown":    {System: "s", Turns: []Turn{{User: "It was about x. Go on."}}, Tools: []json.RawMessage{[]byte(`{}`)}},
		`the images ["i"], want []`:      {System: "s", Turns: []Turn{{User: "It was about x. Go on.", Images: []string{"i"}}}},
		"1 results, and 0 in the script": {System: "s", Turns: []Turn{{User: "It was about x. Go on.", Results: []Result{{}}}}},
	} {
		s := &Script{Steps: []Step{{Say: "about x"}}, next: 1, last: conversation{Request: Request{System: "s", Tools: []json.RawMessage{[]byte(`{}`)}}}}
		err := s.check(Step{User: "Go on.", Anew: true}, got)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// A model is not expected to call what was removed, and where tools are offered, nothing
// that is not.
func TestScriptCalls(t *testing.T) {
	t.Parallel()
	got := Request{Standing: map[string]Standing{"in": Offered, "n.in": Offered, "out": Removed, "later": Deferred}}
	for _, test := range []struct {
		call    Call
		offered bool
		want    string
	}{
		{Call{Name: "in"}, true, ""},
		{Call{Name: "in", Namespace: "n"}, true, ""},
		{Call{Name: "in", Namespace: "m"}, true, `the script calls "m.in", which is unknown`},
		{Call{Name: "later"}, true, `"later", which is deferred`},
		{Call{Name: "later"}, false, ""},
		{Call{Name: "none"}, false, ""},
		{Call{Name: "out"}, false, `"out", which is removed`},
	} {
		s := &Script{Offered: test.offered}
		err := s.checkCalls(Step{Calls: []Call{test.call}}, got)
		if test.want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, test.want)
		}
		assert.NoError(t, s.checkCalls(Step{Calls: []Call{test.call}, ByName: true}, got))
	}
}

// What is told and removed is compared.
func TestScriptMidConversation(t *testing.T) {
	t.Parallel()
	play := func(st Step) error {
		st.User, st.Say = "Hi", "Hi."
		s := &Script{Steps: []Step{st}}
		got, err := readMessages([]byte(claude(`{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"text","text":"a is gone"},{"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"c"}}}]}`)))
		require.NoError(t, err)
		_, err = s.Play(got, nil)
		return err
	}
	tools := []string{"a", "b", "c"}
	require.NoError(t, play(Step{Tools: tools, Gone: []string{"a"}, Told: []string{"gone", "a is"}}))
	require.NoError(t, play(Step{Tools: tools, Gone: []string{"a"}, Calls: []Call{{Name: "c"}}}))
	require.ErrorContains(t, play(Step{Tools: tools}), `remove the tools ["a"], want []`)
	require.ErrorContains(t, play(Step{Tools: tools[:2], Gone: []string{"a"}}), "has grown by")
	require.ErrorContains(t, play(Step{Tools: tools, Gone: []string{"a"}, Told: []string{"here"}}), `the host tells "a is gone", want "here" in it`)
	require.ErrorContains(t, play(Step{Tools: tools, Gone: []string{"a"}, Calls: []Call{{Name: "a"}}}), `"a", which is removed`)
}
