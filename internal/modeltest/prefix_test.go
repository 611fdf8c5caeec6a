package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var paths = map[Protocol]string{Chat: "/v1/chat/completions", Responses: "/v1/responses", Messages: "/v1/messages"}

// post sends a request and returns the status and the answer.
func post(server http.Handler, p Protocol, body string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, paths[p], strings.NewReader(body))
	r.Header.Set("anthropic-beta", "inline-tools-2026-09-15")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// always answers every request that a provider would take.
func always(_ Request, err error) (Step, error) { return Step{Say: "Hi."}, err }

// The first request of each conversation here.
var firsts = map[Protocol]string{
	Messages:  `{"model":"m","max_tokens":1,"system":[{"type":"text","text":"s"}],"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`,
	Responses: `{"model":"m","instructions":"s","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}],"input":[{"role":"user","content":"Hello"}]}`,
	Chat:      `{"model":"m","tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"Hello"}]}`,
}

// behind returns a request with more messages.
func behind(body, more string) string { return strings.TrimSuffix(body, "]}") + "," + more + "]}" }

const (
	answer = `{"role":"assistant","content":"Hi."}`
	next   = `{"role":"user","content":"And now?"}`
	also   = `{"role":"user","content":"And then?"}`
)

// Calls of a, in each protocol, and their results.
var calls = map[Protocol][2]string{
	Messages:  {`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}`},
	Responses: {`{"type":"function_call","call_id":"1","name":"a","arguments":"{}"}`, `{"type":"function_call_output","call_id":"1","output":"x"}`},
	Chat:      {`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"x"}`},
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	second := func(p Protocol) string { return behind(firsts[p], answer+","+next) }
	swap := func(p Protocol, old, new string) string { return strings.Replace(second(p), old, new, 1) }
	type step struct {
		body string
		want string // of the refusal
		say  func(*Prefix)
	}
	for _, p := range []Protocol{Chat, Responses, Messages} {
		system := map[Protocol]string{Chat: "messages.0", Responses: "instructions", Messages: "system"}[p]
		at := map[Protocol]string{Chat: "messages.1", Responses: "input.0", Messages: "messages.0"}[p]
		list := firsts[p][strings.Index(firsts[p], `"tools":[`)+len(`"tools":[`):]
		list = list[:strings.Index(list, "],")]
		one, two, _ := strings.Cut(list, "},{")
		one, two = one+"}", "{"+two
		for name, steps := range map[string][]step{
			"appended":       {{body: second(p)}, {body: behind(second(p), answer+","+also)}},
			"again":          {{body: second(p)}, {body: second(p)}},
			"system changed": {{body: strings.Replace(second(p), `"s"`, `"S"`, 1), want: system + " is not what it was: «"}},
			"tool changed":   {{body: swap(p, `"b"`, `"B"`), want: "tools.1 is not what it was: «"}},
			"tool new":       {{body: swap(p, list, list+","+two), want: "tools.2 is new: «{"}},
			"tool gone":      {{body: swap(p, list, one), want: "tools.1 is gone: «{"}},
			"tools swapped":  {{body: swap(p, list, two+","+one), want: "tools.0 is not what it was"}},
			"message changed": {
				{body: swap(p, "Hello", "hello"), want: at + " is not what it was: «"},
				{body: second(p)},
			},
			"white space": {{body: swap(p, `"Hello"`, ` "Hello"`), want: at + " is not what it was"}},
			"reordered":   {{body: second(p)}, {body: strings.Replace(second(p), answer+","+next, next+","+answer, 1), want: `then «`}},
			"gone":        {{body: second(p)}, {body: firsts[p], want: "is gone: «" + answer[:20]}},
			"anew": {
				{body: second(p)},
				{body: strings.NewReplacer("Hello", "Bye", `"s"`, `"S"`, `"b"`, `"B"`).Replace(firsts[p]), say: (*Prefix).Anew},
				{body: firsts[p], want: "is not what it was"},
			},
			"back to a settled run": {
				{body: behind(second(p), calls[p][0]+","+calls[p][1])},
				{body: behind(firsts[p], answer+","+also), want: "is not what it was"},
				{body: behind(firsts[p], answer+","+also), say: (*Prefix).Back},
				{body: behind(behind(firsts[p], answer+","+also), answer+","+next)},
				{body: second(p), want: "is not what it was"},
			},
			"back behind a call": {
				{body: behind(firsts[p], calls[p][0]+","+calls[p][1])},
				{body: behind(behind(firsts[p], calls[p][0]+","+calls[p][1]), answer+","+next)},
				{body: behind(firsts[p], calls[p][0]+","+also), say: (*Prefix).Back, want: "no earlier run ends there"},
			},
			"back to the beginning": {
				{body: behind(firsts[p], calls[p][0]+","+calls[p][1])},
				{body: strings.Replace(firsts[p], "Hello", "Bye", 1), say: (*Prefix).Back},
			},
			"back with another system prompt": {
				{body: strings.NewReplacer("Hello", "Bye", `"s"`, `"S"`).Replace(firsts[p]), say: (*Prefix).Back, want: system + " is not what it was"},
			},
		} {
			t.Run(string(p)+" "+name, func(t *testing.T) {
				t.Parallel()
				s := &Prefix{Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })}
				refused := 0
				for _, st := range append([]step{{body: firsts[p]}}, steps...) {
					if st.say != nil {
						st.say(s)
					}
					code, got := post(s, p, st.body)
					if st.want == "" {
						require.Equal(t, http.StatusOK, code, got)
						require.Equal(t, st.body, got, "it is passed on whole")
						continue
					}
					refused++
					require.Equal(t, http.StatusBadRequest, code, st.body)
					var e struct {
						Type  string
						Error struct{ Type, Message string }
					}
					require.NoError(t, json.Unmarshal([]byte(got), &e))
					assert.Equal(t, "invalid_request_error", e.Error.Type)
					assert.Equal(t, p == Messages, e.Type == "error")
					assert.Contains(t, e.Error.Message, st.want)
				}
				assert.Equal(t, len(steps)+1, s.Requests())
				assert.Len(t, s.Refused(), refused)
				assert.Equal(t, refused > 0, s.Wrong() != nil)
			})
		}
	}
}

// Breakpoints move to the end of each request, and nothing else may change then.
func TestPrefixBreakpoints(t *testing.T) {
	t.Parallel()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	head := `{"model":"m","max_tokens":1,"system":[{"type":"text","text":"s"` + mark + `}],"tools":[{"name":"a","input_schema":{"properties":{"cache_control":{"x":1}}}}],"messages":[`
	first := func(mark string) string {
		return `{"role":"user","content":[{"type":"text","text":"Hello"` + mark + `}]}`
	}
	second := func(text, mark string) string {
		return calls[Messages][0] + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"` + text + `"` + mark + `}]}]}`
	}
	s := &Prefix{Next: Model(always)}
	for _, body := range []string{
		head + first(mark) + `]}`,
		head + first("") + "," + second("x", mark) + `]}`,
		strings.Replace(head, mark, "", 1) + first("") + "," + second("x", "") + "," + answer + "," + next + `]}`,
	} {
		code, got := post(s, Messages, body)
		require.Equal(t, http.StatusOK, code, got)
	}
	code, got := post(s, Messages, head+first("")+","+second("y", mark)+","+answer+","+next+`]}`)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, got, `messages.2 is not what it was: «…`)
	code, got = post(s, Messages, strings.Replace(head, `"x":1`, `"x":2`, 1)+first("")+","+second("x", "")+","+answer+","+next+`]}`)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, got, `tools.0 is not what it was`, "a property of that name is no breakpoint")
}

// A string that is written as a list of one text, to have a breakpoint, is the same message.
func TestPrefixBreakpointInAString(t *testing.T) {
	t.Parallel()
	head := `{"model":"m","max_tokens":1,"messages":[`
	list := func(text, mark string) string {
		return `{"role":"user","content":[{"type":"text","text":"` + text + `"` + mark + `}]}`
	}
	behind := "," + answer + "," + next
	s := &Prefix{Next: Model(always)}
	for _, body := range []string{
		head + `{"role":"user","content":"Hello"}]}`,
		head + list("Hello", ephemeral) + behind + `]}`,
		head + `{"role":"user","content":"Hello"}` + behind + `]}`,
	} {
		code, got := post(s, Messages, body)
		require.Equal(t, http.StatusOK, code, got)
	}
	for _, body := range []string{head + list("hello", ephemeral) + behind + `]}`, head + list("Hello", "") + behind + `]}`} {
		code, got := post(s, Messages, body)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, got, `messages.0 is not what it was`)
	}
}

// A script says by its steps where a conversation goes back or begins anew.
func TestPrefixScript(t *testing.T) {
	t.Parallel()
	script := &Script{Offered: true, Steps: []Step{
		{User: "Hello", Tools: []string{"a", "b"}, Say: "Hi."},
		{User: "And now?", Broken: true, Say: "Well."},
		{User: "And then?", Back: true, Say: "So."},
		{User: "Go on.", Anew: true, Tools: []string{"a", "b"}, Say: "On."},
	}}
	s := &Prefix{Next: script, Script: script}
	first := firsts[Chat]
	for _, body := range []string{
		first, behind(first, answer+","+next), behind(first, answer+","+also),
		strings.Replace(first, "Hello", "So. Go on.", 1),
	} {
		code, got := post(s, Chat, body)
		require.Equal(t, http.StatusOK, code, got)
	}
	require.NoError(t, script.End())
	require.Empty(t, s.Refused())
}

func TestPrefixPassesOnWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	s := &Prefix{Next: Model(always)}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Zero(t, s.Requests())
	code, got := post(s, Chat, "{")
	require.Equal(t, http.StatusBadRequest, code, got)
}
