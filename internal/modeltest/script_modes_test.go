package modeltest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a script expects of a host that passes on less, or that changes the conversation.
func TestScriptModes(t *testing.T) {
	t.Parallel()
	list := func(names ...string) (list []json.RawMessage) {
		for _, name := range names {
			list = append(list, json.RawMessage(`{"name":"`+name+`"}`))
		}
		return list
	}
	question, answer := Turn{User: "q"}, Turn{Calls: []Call{{ID: "1", Name: "a", Arguments: `{}`}}}
	failed := Turn{Results: []Result{{"1", "r", true}}}
	told := failed
	told.Told = "the rules are these"
	seen := failed
	seen.Images = []string{"i"}
	asked := Turn{User: "q2"}
	model := failed
	model.Model = "more"
	request := func(turns ...Turn) Request {
		return Request{Tools: list("a"), Turns: turns, Messages: list("1", "2", "3")[:len(turns)], Listed: 1}
	}
	removed := request(question, answer, failed)
	removed.Removed = []string{"a"}
	grownList := request(question, answer, failed)
	grownList.Listed = 2
	other := request(question, answer)
	other.Messages = list("1", "x")
	for _, test := range []struct {
		name   string
		script *Script
		step   Step
		got    Request
		want   string
	}{
		{"a marked result", &Script{}, Step{Results: []string{"!r"}}, request(question, answer, failed), ""},
		{"which may not be marked", &Script{}, Step{Results: []string{"r"}}, request(question, answer, failed), "result 1 is marked as an error: true, want false"},
		{"nothing marks", &Script{NoErrors: true}, Step{Results: []string{"r"}}, request(question, answer, failed), ""},
		{"and the text counts", &Script{NoErrors: true}, Step{Results: []string{"s"}}, request(question, answer, failed), `want "s" in it`},
		{"a model's text among the results", &Script{}, Step{Results: []string{"!r"}}, request(question, answer, model), "the user's message"},

		{"what the host tells", &Script{}, Step{Results: []string{"!r"}, Told: []string{"rules", "these"}}, request(question, answer, told), ""},
		{"and does not", &Script{}, Step{Results: []string{"!r"}, Told: []string{"rules", "none"}}, request(question, answer, told), `want "none" in it`},
		{"an image", &Script{}, Step{Results: []string{"!r"}, Images: []string{"i"}}, request(question, answer, seen), ""},
		{"that is missing", &Script{}, Step{Results: []string{"!r"}, Images: []string{"i"}}, request(question, answer, failed), `there are the images [], want ["i"]`},
		{"that is not passed on", &Script{NoImages: true}, Step{Results: []string{"!r"}, Images: []string{"i"}}, request(question, answer, failed), ""},
		{"but is", &Script{NoImages: true}, Step{Results: []string{"!r"}, Images: []string{"i"}}, request(question, answer, seen), "there are the images"},

		{"a tool that is removed", &Script{}, Step{Results: []string{"!r"}, Gone: []string{"a"}}, removed, ""},
		{"that was not to be", &Script{}, Step{Results: []string{"!r"}}, removed, `messages remove the tools ["a"], want []`},
		{"and is not", &Script{}, Step{Results: []string{"!r"}, Gone: []string{"a"}}, request(question, answer, failed), `messages remove the tools [], want ["a"]`},

		{"a list that grows", &Script{}, Step{Results: []string{"!r"}}, grownList, ""},
		{"and may not", &Script{Fixed: true}, Step{Results: []string{"!r"}}, grownList, "there are 2 tools outside of messages, want the same 1 as before"},
		{"and does not", &Script{Fixed: true}, Step{Results: []string{"!r"}}, request(question, answer, failed), ""},

		{"the same again", &Script{}, Step{Again: true, Results: []string{"none"}}, request(question, answer), ""},
		{"with more", &Script{}, Step{Again: true}, request(question, answer, failed), "there are 3 messages, want the same 2 again"},
		{"with something else", &Script{}, Step{Again: true}, other, "message 2 is not what it was"},
		{"as if nothing was said", &Script{}, Step{Back: true, User: "q2"}, request(asked), ""},
		{"though it was", &Script{}, Step{User: "q2"}, request(asked), "of 2, a message is gone"},
		{"still with what was said", &Script{}, Step{Back: true, User: "q2"}, request(question, answer, failed), "has 3 turns, want 1"},
	} {
		s := test.script
		s.next = 1
		s.last = conversation{request(question, answer), []Turn{question, answer}}
		err := s.check(test.step, test.got)
		if test.want == "" {
			assert.NoError(t, err, test.name)
		} else {
			assert.ErrorContains(t, err, test.want, test.name)
		}
	}
}

// The first system prompt begins with the first part, and has the others anywhere.
func TestScriptBegins(t *testing.T) {
	t.Parallel()
	for system, ok := range map[string]bool{"be good, then stop": true, "be good": false, "so be good, then stop": false, "then be good": false, "": false} {
		s := &Script{System: []string{"be", "good", "stop"}}
		err := s.check(Step{User: "q"}, Request{System: system, Turns: []Turn{{User: "q"}}})
		assert.Equal(t, ok, err == nil, "%q: %v", system, err)
	}
	s := &Script{System: []string{"be"}, next: 1, last: conversation{Request{System: "other"}, []Turn{{User: "q"}, {Model: "a"}}}}
	assert.NoError(t, s.check(Step{User: "p"}, Request{System: "other", Turns: []Turn{{User: "q"}, {Model: "a"}, {User: "p"}}}), "only the first")
}

// A script is played to its end: each call has an id by its step and place, what was wrong
// first is kept, and a run that did not end is not settled.
func TestScriptPlays(t *testing.T) {
	t.Parallel()
	steps := []Step{
		{User: "q", Calls: []Call{{Name: "a", Arguments: `{"x": 1.50}`}, {Name: "b", Arguments: `{}`}}},
		{Results: []string{"r", "r"}, Say: "done"},
		{User: "p", Say: "half", Broken: true},
		{User: "o", Back: true, Away: true},
	}
	s := &Script{Steps: steps, Quotes: true}
	assert.EqualError(t, s.End(), "the script is at step 0 of 4")
	assert.Equal(t, "q", s.coming().User)
	first := Turn{User: "q"}
	step, err := s.Play(Request{Turns: []Turn{first}}, nil)
	require.NoError(t, err)
	assert.Equal(t, []Call{{ID: "call_1_1", Name: "a", Arguments: `{"x": 1.50}`}, {ID: "call_1_2", Name: "b", Arguments: `{}`}}, step.Calls)
	assert.Empty(t, steps[0].Calls[0].ID, "the script's own")
	asked := Turn{Calls: []Call{{ID: "call_1_1", Name: "a", Arguments: canonical(`{"x": 1.50}`)}, {ID: "call_1_2", Name: "b", Arguments: `{}`}}}
	results := func() Turn { return Turn{Results: []Result{{"call_1_1", `"r"`, false}, {"call_1_2", `"r"`, false}}} }
	plain := Turn{Results: []Result{{"call_1_1", `r`, false}, {"call_1_2", `r`, false}}}
	_, err = s.Play(Request{Turns: []Turn{first, asked, results()}}, nil)
	require.NoError(t, err)
	settled := []Turn{first, asked, plain, {Model: "done"}}
	assert.Equal(t, settled, s.settled.said)
	_, err = s.Play(Request{Turns: []Turn{first, asked, results(), {Model: "done"}, {User: "p"}}}, nil)
	require.NoError(t, err)
	assert.Equal(t, settled, s.settled.said, "it is broken")
	require.NoError(t, s.Wrong())
	_, err = s.Play(Request{Turns: []Turn{first, asked, results(), {Model: "done"}, {User: "x"}}}, nil)
	require.ErrorContains(t, err, `step 4: the user's message is "x", want "o"`)
	_, again := s.Play(Request{Turns: []Turn{first}}, nil)
	require.Error(t, again)
	assert.Equal(t, err, s.Wrong(), "the first counts")
	assert.Equal(t, err, s.End())
	_, err = s.Play(Request{Turns: []Turn{first, asked, results(), {Model: "done"}, {User: "o"}}}, nil)
	require.EqualError(t, err, "the model is away")
	assert.Equal(t, Step{}, s.coming())
	_, err = (&Script{Steps: steps, Quotes: true}).Play(Request{Turns: []Turn{{Results: []Result{{"1", "r", false}}}}}, nil)
	assert.Error(t, err, "the text of a result is not quoted")

	floats := &Script{Steps: steps, Floats: true}
	_, err = floats.Play(Request{Turns: []Turn{first}}, nil)
	require.NoError(t, err)
	assert.Equal(t, rounded(`{"x": 1.50}`), floats.last.said[1].Calls[0].Arguments)
	assert.Equal(t, "done", s.AnswerTo("q"), "behind its calls")
	assert.Equal(t, "", s.AnswerTo("p"), "behind what is broken")
}
