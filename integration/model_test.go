package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requestsVariable names the environment variable with a directory for what
// clients send to the model, for who wants to see it.
const requestsVariable = "MCPHYBRID_CLIENT_REQUESTS"

// A model is a service on loopback with a scripted model. It speaks OpenAI's
// chat completions and responses, and Gemini's generateContent. It is also the
// proxy of the clients, which refuses every host.
type model struct {
	*httptest.Server
	script func(turn) deed

	mu      sync.Mutex
	turns   []turn   // those with tools
	foreign []string // hosts that clients asked for
}

// A turn is one request to the model.
type turn struct {
	texts   []string // of the system and the user
	tools   []offered
	results []string // of the calls until now
}

// An offered tool is one that the model may call.
type offered struct{ space, name string } // space is its namespace, if any

// A deed is what the model does: a call, or the end.
type deed struct {
	tool offered
	args map[string]any
	say  string // if not ""
}

func startModel(t *testing.T, script func(turn) deed) *model {
	t.Helper()
	m := &model{script: script}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// asked returns the turns with tools until now.
func (m *model) asked() []turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turns
}

// refused returns the hosts that clients asked for until now.
func (m *model) refused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.foreign
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.Host != "" {
		m.mu.Lock()
		m.foreign = append(m.foreign, r.Host)
		m.mu.Unlock()
		http.Error(w, "there is no network", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.note(r.URL.Path, body)
	answer := map[string]func(*turn, []byte) (speaker, error){
		"chat/completions":      readChat,
		"responses":             readResponses,
		"generateContent":       readGemini,
		"streamGenerateContent": readGemini,
	}
	for end, read := range answer {
		if !strings.HasSuffix(r.URL.Path, "/"+end) && !strings.HasSuffix(r.URL.Path, ":"+end) {
			continue
		}
		var now turn
		speak, err := read(&now, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		do := deed{say: "done"} // a title, a summary and the like
		if len(now.tools) > 0 {
			do = m.script(now)
			m.mu.Lock()
			m.turns = append(m.turns, now)
			m.mu.Unlock()
		}
		id := fmt.Sprintf("call_%d", len(now.results)+1)
		if end == "streamGenerateContent" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		speak(w, id, do)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/models") {
		reply(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "scripted", "object": "model"}}})
		return
	}
	http.NotFound(w, r)
}

// note writes a request to a file if the user wants it.
func (m *model) note(path string, body []byte) {
	dir := os.Getenv(requestsVariable)
	if dir == "" {
		return
	}
	if f, err := os.CreateTemp(dir, strings.ReplaceAll(path, "/", "_")+"-*.json"); err == nil {
		_, _ = f.Write(body)
		_ = f.Close()
	}
}

// A speaker answers a request.
type speaker func(w http.ResponseWriter, id string, do deed)

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// event writes an event of a stream. Its name may be "".
func event(w http.ResponseWriter, name string, v any) {
	w.Header().Set("Content-Type", "text/event-stream")
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
}

// texts returns the strings in a JSON value, in order, but for types.
func texts(raw json.RawMessage) []string {
	var list []string
	var elements []json.RawMessage
	var members map[string]json.RawMessage
	var s string
	switch {
	case json.Unmarshal(raw, &s) == nil:
		return []string{s}
	case json.Unmarshal(raw, &elements) == nil:
		for _, e := range elements {
			list = append(list, texts(e)...)
		}
	case json.Unmarshal(raw, &members) == nil:
		delete(members, "type")
		for _, key := range slices.Sorted(maps.Keys(members)) {
			list = append(list, texts(members[key])...)
		}
	}
	return list
}

// readChat reads a request of OpenAI's chat completions.
func readChat(now *turn, body []byte) (speaker, error) {
	var r struct {
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct {
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	for _, message := range r.Messages {
		switch message.Role {
		case "tool":
			now.results = append(now.results, strings.Join(texts(message.Content), "\n"))
		case "system", "developer", "user":
			now.texts = append(now.texts, texts(message.Content)...)
		}
	}
	for _, t := range r.Tools {
		now.tools = append(now.tools, offered{name: t.Function.Name})
	}
	return func(w http.ResponseWriter, id string, do deed) {
		message := map[string]any{"role": "assistant", "content": do.say}
		reason := "stop"
		if do.say == "" {
			reason = "tool_calls"
			message["content"] = nil
			message["tool_calls"] = []any{map[string]any{
				"index": 0, "id": id, "type": "function",
				"function": map[string]any{"name": do.tool.name, "arguments": jsonText(do.args)},
			}}
		}
		usage := map[string]any{"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
		whole := map[string]any{"id": "chat_" + id, "created": 1, "model": "scripted"}
		if !r.Stream {
			whole["object"], whole["usage"] = "chat.completion", usage
			whole["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}}
			reply(w, whole)
			return
		}
		whole["object"] = "chat.completion.chunk"
		whole["choices"] = []any{map[string]any{"index": 0, "delta": message, "finish_reason": nil}}
		event(w, "", whole)
		whole["choices"] = []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}}
		whole["usage"] = usage
		event(w, "", whole)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}, nil
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// readResponses reads a request of OpenAI's responses.
func readResponses(now *turn, body []byte) (speaker, error) {
	type tool struct {
		Type, Name, Description string
		Tools                   []tool
	}
	var r struct {
		Instructions string
		Input        []struct {
			Type, Role      string
			Content, Output json.RawMessage
		}
		Tools []tool
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	now.texts = append(now.texts, r.Instructions)
	for _, item := range r.Input {
		switch {
		case strings.HasSuffix(item.Type, "_output"):
			now.results = append(now.results, strings.Join(texts(item.Output), "\n"))
		case item.Role != "assistant":
			now.texts = append(now.texts, texts(item.Content)...)
		}
	}
	for _, t := range r.Tools {
		if t.Type != "namespace" {
			now.tools = append(now.tools, offered{name: t.Name})
		}
		for _, inner := range t.Tools {
			now.tools = append(now.tools, offered{space: t.Name, name: inner.Name})
		}
		if len(t.Tools) > 0 {
			now.texts = append(now.texts, t.Description)
		}
	}
	return func(w http.ResponseWriter, id string, do deed) {
		item := map[string]any{
			"type": "message", "role": "assistant", "id": "msg_" + id,
			"content": []any{map[string]any{"type": "output_text", "text": do.say}},
		}
		if do.say == "" {
			item = map[string]any{"type": "function_call", "call_id": id, "name": do.tool.name, "arguments": jsonText(do.args)}
			if do.tool.space != "" {
				item["namespace"] = do.tool.space
			}
		}
		response := map[string]any{"id": "resp_" + id}
		event(w, "response.created", map[string]any{"type": "response.created", "response": response})
		event(w, "response.output_item.done", map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item})
		response["usage"] = map[string]any{
			"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
		}
		event(w, "response.completed", map[string]any{"type": "response.completed", "response": response})
	}, nil
}

// readGemini reads a request of Gemini's generateContent.
func readGemini(now *turn, body []byte) (speaker, error) {
	type content struct {
		Role  string
		Parts []struct {
			Text             string
			FunctionResponse struct{ Response json.RawMessage }
		}
	}
	var r struct {
		SystemInstruction content
		Contents          []content
		Tools             []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	for _, c := range append([]content{r.SystemInstruction}, r.Contents...) {
		for _, p := range c.Parts {
			if len(p.FunctionResponse.Response) > 0 {
				now.results = append(now.results, strings.Join(texts(p.FunctionResponse.Response), "\n"))
			} else if c.Role != "model" {
				now.texts = append(now.texts, p.Text)
			}
		}
	}
	for _, group := range r.Tools {
		for _, t := range group.FunctionDeclarations {
			now.tools = append(now.tools, offered{name: t.Name})
		}
	}
	return func(w http.ResponseWriter, id string, do deed) {
		part := map[string]any{"text": do.say}
		if do.say == "" {
			part = map[string]any{"functionCall": map[string]any{"id": id, "name": do.tool.name, "args": do.args}}
		}
		answer := map[string]any{
			"candidates": []any{map[string]any{
				"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0,
			}},
			"usageMetadata": map[string]any{"promptTokenCount": 1000, "candidatesTokenCount": 10, "totalTokenCount": 1010},
			"modelVersion":  "scripted",
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			event(w, "", answer)
		} else {
			reply(w, answer)
		}
	}, nil
}
