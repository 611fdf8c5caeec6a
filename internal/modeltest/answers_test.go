package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// speaking answers with a text and two calls.
var speaking = Model(func(_ Request, err error) (Step, error) {
	return Step{Say: "Well.", Calls: []Call{{ID: "1", Name: "a", Arguments: `{"x":1}`}, {ID: "2", Name: "b", Arguments: `{}`}}}, err
})

// data returns the events of a stream, each with its name if it has one.
func data(stream string) (events []string) {
	for event := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		events = append(events, event)
	}
	return events
}

// An answer in parts is the answer in one: it begins, has all texts and arguments, and ends.
func TestAnswersInParts(t *testing.T) {
	t.Parallel()
	stream := func(p Protocol) []string {
		code, got := post(speaking, p, strings.Replace(firsts[p], `"m"`, `"m","stream":true`, 1))
		require.Equal(t, http.StatusOK, code)
		return data(got)
	}
	events := stream(Messages)
	var kinds []string
	var text, arguments string
	for _, event := range events {
		name, raw, ok := strings.Cut(event, "\ndata: ")
		require.True(t, ok, event)
		var in struct {
			Type  string
			Index int
			Delta struct {
				Text    string
				Partial string `json:"partial_json"`
				Stop    string `json:"stop_reason"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(raw), &in))
		assert.Equal(t, "event: "+in.Type, name)
		if len(kinds) == 0 || kinds[len(kinds)-1] != in.Type {
			kinds = append(kinds, in.Type)
		}
		text += in.Delta.Text
		arguments += in.Delta.Partial
		if in.Type == "message_delta" {
			assert.Equal(t, "tool_use", in.Delta.Stop)
		}
	}
	block := []string{"content_block_start", "content_block_delta", "content_block_stop"}
	want := append([]string{"message_start", "ping"}, block...)
	want = append(append(want, block...), block...)
	assert.Equal(t, append(want, "message_delta", "message_stop"), kinds)
	assert.Equal(t, "Well.", text)
	assert.Equal(t, `{"x":1}{}`, arguments)
	for i, name := range []string{"", "a", "b"} {
		if name != "" {
			assert.Contains(t, strings.Join(events, "\n"), `"content_block":{"id":"`+string(rune('0'+i))+`","input":{},"name":"`+name+`","type":"tool_use"},"index":`+string(rune('0'+i)))
		}
	}

	text, arguments = "", ""
	var names, ends []string
	events = stream(Chat)
	assert.Equal(t, "data: [DONE]", events[len(events)-1])
	for _, event := range events[:len(events)-1] {
		var in struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &in))
		for _, c := range in.Choices {
			text += c.Delta.Content
			for _, call := range c.Delta.Calls {
				arguments += call.Function.Arguments
				if call.ID != "" {
					names = append(names, call.ID+call.Function.Name)
					assert.Equal(t, len(names)-1, call.Index)
				}
			}
			if c.Finish != "" {
				ends = append(ends, c.Finish)
			}
		}
	}
	assert.Equal(t, "Well.", text)
	assert.Equal(t, `{"x":1}{}`, arguments)
	assert.Equal(t, []string{"1a", "2b"}, names)
	assert.Equal(t, []string{"tool_calls"}, ends)
}

// An answer in one has its calls, and says why it ends.
func TestAnswersInOne(t *testing.T) {
	t.Parallel()
	_, got := post(speaking, Chat, firsts[Chat])
	assert.Contains(t, got, `"tool_calls":[{"function":{"arguments":"{\"x\":1}","name":"a"},"id":"1","type":"function"},{"function":{"arguments":"{}","name":"b"},"id":"2","type":"function"}]`)
	assert.Contains(t, got, `"finish_reason":"tool_calls"`)
	_, got = post(speaking, Messages, firsts[Messages])
	assert.Contains(t, got, `"content":[{"text":"Well.","type":"text"},{"id":"1","input":{"x":1},"name":"a","type":"tool_use"},{"id":"2","input":{},"name":"b","type":"tool_use"}]`)
	assert.Contains(t, got, `"stop_reason":"tool_use"`)
	for p, want := range map[Protocol]string{Chat: `"finish_reason":"stop"`, Messages: `"stop_reason":"end_turn"`} {
		_, got = post(Model(always), p, firsts[p])
		assert.Contains(t, got, want)
		assert.NotContains(t, got, "tool")
	}
}

// A request that needs a beta is refused without it, over HTTP too.
func TestBetasOverHTTP(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		`{"role":"system","content":"x"}`:                                "",
		`{"role":"system","content":"x","clear_at":"never"}`:             clearAt[0],
		`{"role":"system","content":"x","clear_at":"next_user_message"}`: clearAt[0],
		`{"role":"system","content":"x","clear_at":"later"}`:             `clear_at is \"later\"`,
		`{"role":"system","output_config":{}}`:                           outputConfig[0],
		`{"role":"system","content":""}`:                                 "a text of the system is empty",
		`{"role":"system"}`:                                              "a message of the system is empty",
		`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}}]}`: "",
		`{"role":"system","content":[{"type":"text","text":""}]}`:                                           "a text of the system is empty",
	} {
		code, got := post(Model(always), Messages, behind(firsts[Messages], more))
		assert.Equal(t, want == "", code == http.StatusOK, "%s: %s", more, got)
		assert.Contains(t, got, want, more)
	}
}

// Images are read in each protocol's form.
func TestImagesOfParts(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"source":{"data":"AA=="}}`: "AA==", `{"image_url":"data:image/png;base64,AA=="}`: "AA==", `{"image_url":{"url":"data:image/png;base64,BB=="}}`: "BB==",
		`{}`: "", `{"image_url":5}`: "", `{"image_url":"https://h/x.png"}`: "",
	} {
		var p part
		require.NoError(t, json.Unmarshal([]byte(raw), &p))
		assert.Equal(t, want, p.image(), raw)
	}
	text, images, err := contents(json.RawMessage(`[{"type":"text","text":"a"},{"source":{"data":"AA=="}},{"type":"text","text":"b"},{"image_url":"data:image/png;base64,BB=="}]`))
	assert.NoError(t, err)
	assert.Equal(t, "ab", text)
	assert.Equal(t, []string{"AA==", "BB=="}, images)
	for _, none := range []string{"", "null", `""`} {
		text, images, err = contents(json.RawMessage(none))
		assert.NoError(t, err)
		assert.Empty(t, text+strings.Join(images, ""))
	}
	_, _, err = contents(json.RawMessage(`[{"type":"input_text","text":""}]`))
	assert.EqualError(t, err, "a text is empty")
	_, _, err = contents(json.RawMessage(`{`))
	assert.Error(t, err)
}

// Whose a message is, its role says, or its type.
func TestAnswered(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"role":"assistant"}`: true, `{"role":"user"}`: false, `{"role":"user","type":"message"}`: false, `{"role":"assistant","type":"message"}`: true,
		`{"type":"function_call"}`: true, `{"type":"function_call_output"}`: false, `{}`: false, `5`: false,
	} {
		assert.Equal(t, want, answered(piece{raw: json.RawMessage(raw)}), raw)
	}
}

// What a host quotes is read again, with its mark for errors.
func TestUnquoteResults(t *testing.T) {
	t.Parallel()
	turns := []Turn{{Results: []Result{{ID: "1", Text: `"fine"`}, {ID: "2", Text: `"Error: not so"`}}}}
	require.NoError(t, unquote(turns))
	assert.Equal(t, []Result{{ID: "1", Text: "fine"}, {ID: "2", Text: "not so", IsError: true}}, turns[0].Results)
	assert.ErrorContains(t, unquote([]Turn{{Results: []Result{{ID: "3", Text: "fine"}}}}), `the result of "3": `)
}

// An item that is wrong is named by its place, from 1.
func TestItemsByTheirPlaces(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		`{"role":"developer","content":""}`:                         "item 2 of the developer wants a text and nothing else",
		`{"type":"message","role":"system","content":""}`:           "item 2 of the system wants a text and nothing else",
		`{"type":"additional_tools","role":"developer","tools":[]}`: "item 2 adds no tools",
	} {
		code, got := post(Model(always), Responses, behind(firsts[Responses], item))
		assert.NotEqual(t, http.StatusOK, code, item)
		assert.Contains(t, got, want)
	}
}
