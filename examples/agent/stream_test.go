package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cutter writes to a client in pieces of n bytes.
type cutter struct {
	http.ResponseWriter
	n       int
	comment string // before each event
}

func (c cutter) Write(data []byte) (int, error) {
	rest := append([]byte(c.comment), data...)
	for len(rest) > 0 {
		n := min(c.n, len(rest))
		if _, err := c.ResponseWriter.Write(rest[:n]); err != nil {
			return 0, err
		}
		c.ResponseWriter.(http.Flusher).Flush()
		rest = rest[n:]
	}
	return len(data), nil
}

func (c cutter) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// However the stream is cut, even within characters, escapes and names, the
// conversation is the same.
func TestCutStreams(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		want, err := runDemo(t, name, host(t, newScript(demo)))
		require.NoError(t, err)
		for _, n := range []int{1, 3, 61} {
			s := newScript(demo)
			got, err := runDemo(t, name, host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.ServeHTTP(cutter{w, n, ": the model thinks\n\n"}, r)
			})))
			require.NoError(t, err)
			require.NoError(t, s.end())
			assert.Equal(t, want, got)
		}
	})
}

// The agent shows text as it comes, not at the end.
func TestTextIsStreamed(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		seen := make(chan struct{})
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, e := range wires[r.Method+" "+r.URL.Path].write(step{say: "Grüße an alle, die das hier lesen."}) {
				_, _ = io.WriteString(w, e)
				w.(http.Flusher).Flush()
				if strings.Contains(e, "Grüße") {
					select {
					case <-seen:
					case <-r.Context().Done():
						return
					}
				}
			}
		}))
		m := providers[name].begin(endpoint{baseURL: url})
		var pieces []string
		got, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(text string) {
			if strings.HasPrefix(text, "Grüße") {
				close(seen)
			}
			if text != "" {
				pieces = append(pieces, text)
			}
		})
		require.NoError(t, err)
		assert.Equal(t, "Grüße an alle, die das hier lesen.", got.text)
		assert.Equal(t, got.text, strings.Join(pieces, ""))
		assert.Len(t, pieces, 5)
	})
}

// The SDKs repeat requests that are refused temporarily.
func TestTooManyRequests(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		for _, refusals := range []int32{2, 100} {
			s := newScript([]step{{user: "hello", say: "hi"}})
			var requests atomic.Int32
			url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) <= refusals {
					w.Header().Set("Retry-After-Ms", "1")
					http.Error(w, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, http.StatusTooManyRequests)
					return
				}
				s.ServeHTTP(w, r)
			}))
			m := providers[name].begin(endpoint{baseURL: url})
			_, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
			assert.EqualValues(t, 3, requests.Load())
			if refusals == 2 {
				require.NoError(t, err)
				require.NoError(t, s.end())
			} else {
				require.ErrorContains(t, err, "429")
				require.ErrorContains(t, err, "slow down")
			}
		}
	})
}

// Wherever a stream breaks off, the agent reports an error and does nothing
// that was only half said.
func TestBreaksOff(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		path := map[string]string{"openai": "POST /chat/completions", "anthropic": "POST /v1/messages"}[name]
		whole := strings.Join(wires[path].write(step{say: "I'll see.", calls: []call{{"1", "a", `{"text":"é"}`}, {"2", "b", `{"n":1}`}}}), "")
		// Here the answer is complete. Everything after this may be missing.
		end := len(whole)
		if name == "openai" {
			end = strings.Index(whole, `"finish_reason":"tool_calls"`)
			end += strings.Index(whole[end:], "\n\n")
		}
		var length atomic.Int64
		var abort atomic.Bool
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, whole[:length.Load()])
			if abort.Load() {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}))
		for n := 0; n <= len(whole); n += 11 {
			length.Store(int64(n))
			for _, aborted := range []bool{false, true} {
				abort.Store(aborted)
				m := providers[name].begin(endpoint{baseURL: url})
				got, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
				switch {
				case n < end:
					require.Error(t, err, "%d", n)
					require.Empty(t, got.calls)
					if !aborted && whole[n-min(n, 2):n] == "\n\n" {
						require.ErrorIs(t, err, errBrokeOff)
					}
				case n > end+2 && !aborted:
					require.NoError(t, err, "%q", whole[:n])
					require.Len(t, got.calls, 2)
				}
			}
		}
	})
}

// An answer that ends before it is complete is an error that says why.
func TestStopped(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		reasons := map[string][]string{"openai": {"length", "content_filter"}, "anthropic": {"max_tokens", "refusal"}}[name]
		for _, reason := range reasons {
			url := host(t, rewriter{step{say: "So"}, strings.NewReplacer(`"stop"`, `"`+reason+`"`, `"end_turn"`, `"`+reason+`"`)})
			m := providers[name].begin(endpoint{baseURL: url})
			_, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
			assert.ErrorContains(t, err, fmt.Sprintf("it ended with %q", reason))
		}
	})
}

// A rewriter answers as a step says, in a modified form, whatever is asked.
type rewriter struct {
	step  step
	words *strings.Replacer
}

func (w rewriter) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if _, err := wires[r.Method+" "+r.URL.Path].read(body); err != nil {
		http.Error(to, err.Error(), http.StatusBadRequest)
		return
	}
	to.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.words.WriteString(to, strings.Join(wires[r.Method+" "+r.URL.Path].write(w.step), ""))
}

// An error event in the stream, as overloaded providers send it, is an error.
func TestErrorInStream(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event("error", object{"type": "error", "error": object{"type": "overloaded_error", "message": "Overloaded"}}))
		}))
		m := providers[name].begin(endpoint{baseURL: url})
		_, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
		require.ErrorContains(t, err, "Overloaded")
		assert.False(t, errors.Is(err, errBrokeOff))
	})
}

// Arguments that are not JSON reach the session unchanged, and the session
// tells the model. What is sent back is valid.
func TestBrokenArguments(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		s := rewriter{step{calls: []call{{"1", "mcp_a", `{"text": `}}}, strings.NewReplacer()}
		m := providers[name].begin(endpoint{baseURL: host(t, s)})
		got, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
		require.NoError(t, err)
		assert.Equal(t, []call{{"1", "mcp_a", `{"text": `}}, got.calls)
		_, err = m.answer(t.Context(), request{system: "s", results: []result{resultOf(t, name, mcp.NewToolResultError("bad"))}}, func(string) {})
		require.NoError(t, err)
	})
}

// resultOf returns the result of the call "1".
func resultOf(t *testing.T, name string, r *mcp.CallToolResult) result {
	e, err := mcphybrid.ExportResult(r, providers[name].format)
	require.NoError(t, err)
	return result{"1", e}
}

// The model gets the images of a result as the SDK sends them, in the place that the
// provider has for them.
func TestImagesReachTheModel(t *testing.T) {
	const gif = "R0lGODlh"
	want := map[string]string{
		"openai": `[{"role":"tool","tool_call_id":"1","content":"a\n[image 1: image/gif]"},
			{"role":"user","content":[{"type":"text","text":"[image 1: image/gif]"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + gif + `"}}]}]`,
		"anthropic": `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":false,"content":[
			{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + gif + `"}}]}]}]`,
	}
	each(t, func(t *testing.T, name string) {
		var body []byte
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			serveStep(w, r, step{calls: []call{{"1", "mcp_a", "{}"}}})
		}))
		m := providers[name].begin(endpoint{baseURL: url})
		_, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
		require.NoError(t, err)
		image := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a"), mcp.NewImageContent(gif, "image/png")}}
		_, err = m.answer(t.Context(), request{system: "s", results: []result{resultOf(t, name, image)}}, func(string) {})
		require.NoError(t, err)
		var sent struct{ Messages []json.RawMessage }
		require.NoError(t, json.Unmarshal(body, &sent))
		last, err := json.Marshal(sent.Messages[len(sent.Messages)-strings.Count(want[name], `"role"`):])
		require.NoError(t, err)
		assert.JSONEq(t, want[name], string(last))
	})
}

// The model's thinking is sent back unchanged, with its signature. Without it,
// the API refuses the results of the calls that follow it.
func TestThinkingIsKept(t *testing.T) {
	var bodies []string
	url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(data))
		events := writeAnthropic(step{calls: []call{{"1", "mcp_a", `{}`}}})
		thought := event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}}) +
			event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "thinking_delta", "thinking": "Hm…"}}) +
			event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "signature_delta", "signature": "c2ln"}}) +
			event("content_block_stop", object{"type": "content_block_stop", "index": 0})
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events[0]+thought+strings.ReplaceAll(strings.Join(events[1:], ""), `"index":0`, `"index":1`))
	}))
	m := newAnthropic(endpoint{baseURL: url})
	got, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
	require.NoError(t, err)
	assert.Equal(t, reply{calls: []call{{"1", "mcp_a", "{}"}}}, got)
	_, err = m.answer(t.Context(), request{system: "s", results: []result{resultOf(t, "anthropic", mcp.NewToolResultText("x"))}}, func(string) {})
	require.NoError(t, err)
	var sent struct {
		Messages []struct{ Content []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(bodies[1]), &sent))
	assert.JSONEq(t, `{"type":"thinking","thinking":"Hm…","signature":"c2ln"}`, string(sent.Messages[1].Content[0]))
}

// A model may say nothing at all. The agent does not send that back, because
// the APIs refuse it.
func TestEmptyAnswer(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		var body []byte
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			serveStep(w, r, step{})
		}))
		m := providers[name].begin(endpoint{baseURL: url})
		for range 2 {
			got, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
			require.NoError(t, err)
			require.Equal(t, reply{}, got)
		}
		assert.Equal(t, 2, strings.Count(string(body), `"user"`), "%s", body)
		assert.NotContains(t, string(body), `"assistant"`)
	})
}

// Other endpoints that speak chat completions leave things out.
func TestOtherEndpoints(t *testing.T) {
	for _, words := range [][]string{
		{`"type":"function"`, `"x":0`},
		{`"object":"chat.completion.chunk"`, `"x":0`},
		{`"tool_calls"}`, `"stop"}`}, // the reason
		{`"id":"chatcmpl-1"`, `"id":""`},
		{`"tool_calls","index":0}],"created":1,"id":"chatcmpl-1"`, `"stop","index":0}],"created":1,"id":"another"`},
		{"data: [DONE]\n\n", ""},
		{`"arguments":""`, `"x":0`},
	} {
		s := rewriter{step{say: "So", calls: []call{{"1", "a", `{}`}}}, strings.NewReplacer(words...)}
		m := newOpenAI(endpoint{baseURL: host(t, s)})
		for _, req := range []request{{system: "s", message: "hello"}, {system: "s", results: []result{resultOf(t, "openai", mcp.NewToolResultText("x"))}}} {
			got, err := m.answer(t.Context(), req, func(string) {})
			require.NoError(t, err, words)
			assert.Equal(t, reply{text: "So", calls: []call{{"1", "a", "{}"}}}, got, words)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, w := range wires {
		for _, st := range demo[:6] {
			f.Add(strings.Join(w.write(st), ""))
		}
	}
	f.Add(event("content_block_stop", object{"type": "content_block_stop", "index": -1}))
	var body atomic.Value
	url := host(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	f.Fuzz(func(t *testing.T, stream string) {
		body.Store(stream)
		for _, name := range names {
			m := providers[name].begin(endpoint{baseURL: url})
			got, err := m.answer(t.Context(), request{system: "s", message: "hello"}, func(string) {})
			if err != nil && len(got.calls) > 0 {
				t.Fatalf("%d calls of an answer that is none: %v", len(got.calls), err)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]},{"role":"tool","tool_call_id":"1"}]}`))
	f.Add([]byte(`{"model":"m","stream":true,"max_tokens":1,"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, w := range wires {
			got, err := w.read(body)
			if err == nil && got.system == "" && len(got.turns) == 0 && len(body) == 0 {
				t.Fatal("nothing was read, and nothing said")
			}
		}
	})
}
