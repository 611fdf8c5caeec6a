package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
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
		want, err := runDemo(t, name, host(t, newScript(demoOf(name)...)))
		require.NoError(t, err)
		for _, n := range []int{1, 3, 61} {
			s := newScript(demoOf(name)...)
			got, err := runDemo(t, name, host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.ServeHTTP(cutter{w, n, ": the model thinks\n\n"}, r)
			})))
			require.NoError(t, err)
			require.NoError(t, s.End())
			assert.Equal(t, sorted(want), sorted(got))
		}
	})
}

// A passer passes on the events of an answer as change has them.
type passer struct {
	http.ResponseWriter
	change func(event string) string
}

func (p passer) WriteString(event string) (int, error) {
	if _, err := p.Write([]byte(p.change(event))); err != nil {
		return 0, err
	}
	p.ResponseWriter.(http.Flusher).Flush()
	return len(event), nil
}

// changed is a model of which the events are changed.
func changed(model http.Handler, change func(event string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { model.ServeHTTP(passer{w, change}, r) })
}

// written is where the agent writes to.
type written func(text string)

func (w written) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}

// The agent shows text as it comes, not at the end.
func TestTextIsStreamed(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		seen := make(chan struct{})
		const text = "Grüße an alle, die das hier lesen."
		a, _ := newAgent(t, name, host(t, changed(answers(modeltest.Step{Say: text}), func(event string) string {
			if strings.Contains(event, "n alle,") { // the second piece
				select {
				case <-seen:
				case <-t.Context().Done():
				}
			}
			return event
		})))
		var pieces []string
		a.out = written(func(piece string) {
			if strings.HasPrefix(piece, "Grüße") {
				close(seen)
			}
			if piece != "" {
				pieces = append(pieces, piece)
			}
		})
		require.NoError(t, a.converse(t.Context(), []string{"hello"}))
		assert.Equal(t, "\n> hello\n"+text+"\n", strings.Join(pieces, ""))
		assert.Len(t, pieces, 1+5+1)
	})
}

// The SDKs repeat requests that are refused temporarily.
func TestTooManyRequests(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		for _, refusals := range []int32{2, 100} {
			s := newScript(modeltest.Step{User: "hello", Say: "hi"})
			var requests atomic.Int32
			a, _ := newAgent(t, name, host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) <= refusals {
					w.Header().Set("Retry-After-Ms", "1")
					http.Error(w, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, http.StatusTooManyRequests)
					return
				}
				s.ServeHTTP(w, r)
			})))
			err := a.converse(t.Context(), []string{"hello"})
			assert.EqualValues(t, 3, requests.Load())
			if refusals == 2 {
				require.NoError(t, err)
				require.NoError(t, s.End())
			} else {
				require.ErrorContains(t, err, "429")
				require.ErrorContains(t, err, "slow down")
			}
		}
	})
}

// stream returns the events with which a model answers a request of a provider's protocol.
func stream(name string, answer modeltest.Step) string {
	path, body := "/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"}]}`
	if name == "anthropic" {
		path, body = "/v1/messages", `{"model":"m","stream":true,"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	}
	w := httptest.NewRecorder()
	answers(answer).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w.Body.String()
}

// Wherever a stream breaks off, the agent reports an error and does nothing
// that was only half said.
func TestBreaksOff(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		whole := stream(name, modeltest.Step{Say: "I'll see.", Calls: []modeltest.Call{{ID: "1", Name: "a", Arguments: `{"text":"é"}`}, {ID: "2", Name: "b", Arguments: `{"n":1}`}}})
		// Here the answer is complete. Everything after this may be missing.
		end := len(whole)
		if name == "openai" {
			end = strings.Index(whole, `"finish_reason":"tool_calls"`)
			end += strings.Index(whole[end:], "\n\n")
		}
		var length, requests atomic.Int64
		var abort atomic.Bool
		rest := answers(modeltest.Step{Say: "Well."})
		url := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) > 1 {
				rest.ServeHTTP(w, r)
				return
			}
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
				requests.Store(0)
				a, out := newAgent(t, name, url)
				err := a.converse(t.Context(), []string{"hello"})
				switch {
				case n < end:
					require.Error(t, err, "%d", n)
					require.NotContains(t, out.String(), "→")
					if !aborted && n > 1 && whole[n-2:n] == "\n\n" {
						require.ErrorContains(t, err, "broke off")
					}
				case n > end+2 && !aborted:
					require.NoError(t, err, "%q", whole[:n])
					require.Equal(t, 2, strings.Count(out.String(), "→"))
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
			words := strings.NewReplacer(`"stop"`, `"`+reason+`"`, `"end_turn"`, `"`+reason+`"`)
			a, _ := newAgent(t, name, host(t, changed(answers(modeltest.Step{Say: "So"}), words.Replace)))
			assert.ErrorContains(t, a.converse(t.Context(), []string{"hello"}), fmt.Sprintf("it ended with %q", reason))
		}
	})
}

// An error event in the stream, as overloaded providers send it, is an error.
func TestErrorInStream(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		a, _ := newAgent(t, name, host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: error\ndata: "+`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n")
		})))
		err := a.converse(t.Context(), []string{"hello"})
		require.ErrorContains(t, err, "Overloaded")
		assert.NotContains(t, err.Error(), "broke off")
	})
}

// Arguments that are not JSON reach the session unchanged, and the session
// tells the model. What is sent back is valid.
func TestBrokenArguments(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		model := answers(modeltest.Step{Calls: []modeltest.Call{{ID: "1", Name: "mcp_t__a", Arguments: `{"text": `}}}, modeltest.Step{Say: "Well."})
		a, out := newAgent(t, name, host(t, model), server.ServerTool{Tool: mcp.NewTool("a"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			t.Error("it was called")
			return mcp.NewToolResultText(""), nil
		}})
		require.NoError(t, a.converse(t.Context(), []string{"hello"}))
		assert.Contains(t, out.String(), "→ mcp_t__a {\"text\": \n← mcp_t__a Error: ")
		assert.Contains(t, out.String(), "\n! mcphybrid: bad arguments")
	})
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
		var got modeltest.Request
		next := answers(modeltest.Step{Calls: []modeltest.Call{{ID: "1", Name: "mcp_t__a", Arguments: "{}"}}}, modeltest.Step{Say: "Well."})
		model := modeltest.Model(func(req modeltest.Request, err error) (modeltest.Step, error) {
			got = req
			return next(req, err)
		})
		a, _ := newAgent(t, name, host(t, model), server.ServerTool{Tool: mcp.NewTool("a"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a"), mcp.NewImageContent(gif, "image/png")}}, nil
		}})
		require.NoError(t, a.converse(t.Context(), []string{"hello"}))
		last, err := json.Marshal(got.Messages[len(got.Messages)-strings.Count(want[name], `"role"`):])
		require.NoError(t, err)
		assert.JSONEq(t, want[name], string(last))
	})
}

// The model's thinking is sent back unchanged, with its signature. Without it,
// the API refuses the results of the calls that follow it.
func TestThinkingIsKept(t *testing.T) {
	var bodies []string
	model := changed(answers(modeltest.Step{Calls: []modeltest.Call{{ID: "1", Name: "none", Arguments: `{}`}}}), func(event string) string {
		if strings.HasPrefix(event, "event: ping") {
			return `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm…"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

`
		}
		return strings.ReplaceAll(event, `"index":0`, `"index":1`)
	})
	a, out := newAgent(t, "anthropic", host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if bodies = append(bodies, string(data)); len(bodies) > 1 {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		model.ServeHTTP(w, r)
	})))
	require.Error(t, a.converse(t.Context(), []string{"hello"}))
	require.Contains(t, out.String(), "→ none {}")
	require.Len(t, bodies, 2)
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
		a, out := newAgent(t, name, host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream(name, modeltest.Step{}))
		})))
		require.NoError(t, a.converse(t.Context(), []string{"hello", "are you there?"}))
		assert.Equal(t, "\n> hello\n\n> are you there?\n", out.String())
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
		replacer := strings.NewReplacer(words...)
		s := newScript(modeltest.Step{User: "hello", Say: "So", Calls: []modeltest.Call{{Name: "a", Arguments: "{}"}}}, modeltest.Step{Results: []string{"!"}, Say: "Well."})
		a, out := newAgent(t, "openai", host(t, changed(s, replacer.Replace)))
		require.NoError(t, a.converse(t.Context(), []string{"hello"}), words)
		assert.Contains(t, out.String(), "So\n→ a {}\n", words)
		assert.NoError(t, s.End(), words)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range names {
		for _, st := range demo[:6] {
			f.Add(stream(name, st))
		}
	}
	f.Add("event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":-1}` + "\n\n")
	f.Add("event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x"}}` + "\n\n")
	var body atomic.Value
	var requests atomic.Int32
	url := host(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	f.Fuzz(func(t *testing.T, stream string) {
		body.Store(stream)
		for _, name := range names {
			requests.Store(0)
			a, out := newAgent(t, name, url)
			err := a.converse(t.Context(), []string{"hello"})
			if err == nil && requests.Load() > 1 {
				t.Fatalf("no error, and the endpoint refused a request: %s", out)
			}
		}
	})
}
