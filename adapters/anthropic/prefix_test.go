package mcpanthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/require"
)

// sent is what a request has, as bytes.
type sent struct {
	Tools, System json.RawMessage
	Messages      []json.RawMessage
	Mark          json.RawMessage `json:"cache_control"`
}

type message struct {
	Role    string
	Content content
}

type content []struct {
	Type, ID, Text string
	ToolUseID      string `json:"tool_use_id"`
	Tool           struct {
		Name       string
		Definition struct{ Name string }
	}
}

// UnmarshalJSON reads a string as one text.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = make(content, 1)
		(*c)[0].Type, (*c)[0].Text = "text", text
		return nil
	}
	type blocks content
	return json.Unmarshal(data, (*blocks)(c))
}

// A judge is a model that refuses what the API refuses, and requests that do not begin with
// all bytes of the one before.
type judge struct {
	back     bool // the next request may have lost messages since the last answer without calls
	answers  []string
	seen     []sent
	settled  sent
	wrong    error
	headers  []string
	messages []message
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	if err := j.judge(data); err != nil {
		if j.wrong == nil {
			j.wrong = fmt.Errorf("request %d: %w", len(j.seen), err)
		}
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, http.StatusBadRequest)
		return
	}
	j.headers = append(j.headers, strings.Join(r.Header.Values("Anthropic-Beta"), ","))
	content := j.answers[0]
	j.answers = j.answers[1:]
	stop := "end_turn"
	switch {
	case content == "":
		http.Error(w, `{"type":"error","error":{"type":"api_error","message":"away"}}`, http.StatusInternalServerError)
		return
	case strings.Contains(content, "server_tool_use"):
		stop = "pause_turn"
	case strings.Contains(content, "tool_use"):
		stop = "tool_use"
	default:
		j.settled = j.seen[len(j.seen)-1]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"`+stop+`","content":[`+content+`]}`)
}

func (j *judge) judge(data []byte) error {
	var is sent
	if err := json.Unmarshal(data, &is); err != nil {
		return err
	}
	j.seen = append(j.seen, is)
	if n := strings.Count(string(data), `"cache_control":{"type":"ephemeral"}`); n != 3 || is.Mark == nil {
		return fmt.Errorf("there are %d marks", n)
	}
	if len(j.seen) > 1 {
		was := j.seen[len(j.seen)-2]
		if string(is.Tools) != string(was.Tools) || string(is.System) != string(was.System) {
			return fmt.Errorf("the beginning is %s %s, was %s %s", is.Tools, is.System, was.Tools, was.System)
		}
		if j.back {
			was, j.back = j.settled, false
		}
		for i, raw := range was.Messages {
			if i == len(is.Messages) || string(raw) != string(is.Messages[i]) {
				return fmt.Errorf("message %d was %s, is %s", i, raw, slices.Concat(is.Messages[i:]))
			}
		}
	}
	return j.order(is)
}

// order returns an error if messages stand where the API refuses them.
func (j *judge) order(is sent) error {
	offered := make(map[string]bool)
	var tools []struct{ Name string }
	if err := json.Unmarshal(is.Tools, &tools); err != nil {
		return err
	}
	for _, tool := range tools {
		offered[tool.Name] = true
	}
	j.messages = make([]message, len(is.Messages))
	for i, raw := range is.Messages {
		m := &j.messages[i]
		if err := json.Unmarshal(raw, m); err != nil {
			return err
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if i > 0 && j.messages[i-1].Role == "system" && m.Role != "assistant" || m.Role == "system" && (i == 0 || j.messages[i-1].Role != "user") {
			return fmt.Errorf("message %d is the %s's: %s", i, m.Role, raw)
		}
		for _, b := range m.Content {
			name := b.Tool.Name + b.Tool.Definition.Name
			if strings.HasPrefix(b.Type, "tool_") && name != "" && offered[name] == (b.Type == "tool_addition") {
				return fmt.Errorf("%s of %s", b.Type, name)
			}
			if name != "" {
				offered[name] = b.Type == "tool_addition"
			}
		}
	}
	return nil
}

// count returns how often the last request has such a block for a tool.
func (j *judge) count(kind, name string) (n int) {
	for _, m := range j.messages {
		for _, b := range m.Content {
			if b.Type == kind && b.Tool.Name+b.Tool.Definition.Name == name {
				n++
			}
		}
	}
	return n
}

// odd is a schema of which the SDK writes neither the order of the members nor the numbers as they were.
const odd = `{"type":"object","properties":{"z":{"type":"number","maximum":1.50,"minimum":-12345678901234567890},"a":{"$ref":"#/$defs/b"}},"title":"T","additionalProperties":false,"$defs":{"b":{"type":"string"}},"minProperties":0,"maxProperties":9}`

func oddTool(name, description string) server.ServerTool {
	return server.ServerTool{Tool: mcp.NewToolWithRawSchema(name, description, []byte(odd)), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	}}
}

var subjects = strings.Fields("weather train hotel invoice recipe music garden bicycle doctor museum bakery library passport camera piano")

// No request is refused, and each begins with all bytes of the one before: with searches,
// tools that come and go, runs that break off or are taken back, and stored conversations.
func TestNoCacheIsLost(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]anthropic.Model{"additions": newModel, "bridge": "claude-3-5-haiku-latest"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNoCacheIsLost(t, model, name == "additions")
		})
	}
}

func testNoCacheIsLost(t *testing.T, model anthropic.Model, adds bool) {
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
	t.Cleanup(func() { mgr.Close() })
	var tools []server.ServerTool
	for _, s := range subjects {
		tools = append(tools, oddTool("find_"+s, "Finds a "+s+"."))
	}
	require.NoError(t, mgr.AddTools("things", tools...))
	j := &judge{}
	srv := httptest.NewServer(j)
	t.Cleanup(srv.Close)
	host := &conversation{
		client:  anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"), option.WithMaxRetries(0)),
		session: mgr.NewSession(nil), model: model,
	}
	call := func(id, name, args string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, args)
	}
	n := 0
	// use has the model find a tool and use it in the same turn.
	use := func(server, subject string) []string {
		n++
		return []string{
			call(fmt.Sprint("s", n), mcphybrid.SearchToolName, fmt.Sprintf(`{"query":%q,"max_results":1}`, "find "+subject)),
			call(fmt.Sprint("c", n), "mcp_"+server+"__find_"+subject, `{"z":1}`),
			`{"type":"text","text":"Done."}`,
		}
	}
	run := func(message string, answers ...string) error {
		j.answers = answers
		_, err := host.Run(t.Context(), message)
		require.NoError(t, j.wrong)
		return err
	}
	addition := func(name string) int {
		if !adds {
			return 1
		}
		return j.count("tool_addition", name)
	}

	for i, subject := range subjects[1:] {
		before := len(host.messages)
		switch i {
		case 3: // a server comes in mid-conversation
			require.NoError(t, mgr.AddTools("late", oddTool("find_ferry", "Finds a ferry."), oddTool("find_tram", "Finds a tram.")))
			require.NoError(t, run("A ferry?", use("late", "ferry")...))
			require.Equal(t, 1, addition("mcp_late__find_ferry"))
		case 5: // the conversation is stored, without the session
			host.messages = stored(t, host.messages)
		case 6: // with it
			host.messages = stored(t, host.messages)
			restored, changed, err := mgr.RestoreSession(host.session.Save(), nil)
			require.NoError(t, err)
			require.Empty(t, changed)
			host.session = restored
		case 8: // a server goes
			require.True(t, mgr.RemoveServer("late"))
		case 9: // the run is taken back
			require.Error(t, run("Away?", use("things", subject)[0], ""))
			require.Equal(t, 1, addition("mcp_things__find_"+subject))
			host.messages, j.back = host.messages[:before], true
		case 10: // the host goes on with the run that broke off, and then does not
			require.Error(t, run("Away?", use("things", subject)[0], ""))
			require.Error(t, run("", ""))
			require.Equal(t, 1, addition("mcp_things__find_"+subject))
			j.back = true
			require.NoError(t, run("Anyway.", `{"type":"text","text":"Yes."}`))
			require.Equal(t, 1, addition("mcp_things__find_"+subject))
		case 11: // what comes while the model goes on with its answer waits
			answers := use("things", subject)
			pause := `{"type":"server_tool_use","id":"p","name":"web_search","input":{}}`
			require.Error(t, run("Pause?", pause, ""))
			require.NoError(t, mgr.AddTools("later", oddTool("find_boat", "Finds a boat.")))
			host.session.ActivateTools([]string{"mcp_later__find_boat"})
			require.NoError(t, run("", answers...))
			require.Equal(t, 1, addition("mcp_later__find_boat"))
			continue
		case 12: // a stored tool that is gone has other bytes, once
			host.messages = stored(t, host.messages)
			j.settled, j.back = sent{}, true
		case 13:
			host.messages = stored(t, host.messages)
		}
		require.NoError(t, run("And a "+subject+"?", use("things", subject)...), subject)
		require.Equal(t, 1, addition("mcp_things__find_"+subject))
	}
	if adds {
		require.Equal(t, mcphybrid.ByAddition, host.session.Disclosure())
		require.Equal(t, 1, j.count("tool_removal", "mcp_late__find_ferry"))
		require.Contains(t, fmt.Sprintf("%s", j.seen[len(j.seen)-1].Messages), `"maximum":1.50,"minimum":-12345678901234567890`)
		for _, header := range j.headers {
			require.Equal(t, string(anthropic.AnthropicBetaInlineTools2026_09_15), header)
		}
	} else {
		require.Equal(t, mcphybrid.ByBridge, host.session.Disclosure())
		require.Equal(t, "", strings.Join(j.headers, ""))
	}
	require.Greater(t, len(j.seen), 40)

	// Another conversation, with the same beginning.
	j.settled, j.back, host.messages = sent{}, true, nil
	require.NoError(t, run("A train?", use("things", "train")...))
	require.Equal(t, 1, addition("mcp_things__find_train"))
}

func stored(t *testing.T, messages []anthropic.BetaMessageParam) (loaded []anthropic.BetaMessageParam) {
	data, err := json.Marshal(messages)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &loaded))
	return loaded
}

// Messages of the host may end with one of the system. The session puts none behind it, since
// the API refuses two in a row: what is new is told behind the next results.
func TestHostsSystemMessage(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("a", oddTool("find", "Finds it."), oddTool("lose", "Loses it.")))
	step := modeltest.Step{Say: "Hi."}
	var sent []json.RawMessage
	model := modeltest.Model(func(got modeltest.Request, err error) (modeltest.Step, error) {
		sent = got.Messages
		next := step
		step = modeltest.Step{Say: "Hi."}
		return next, err
	})
	srv := httptest.NewServer(&modeltest.Prefix{Next: model})
	defer srv.Close()
	client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	s := mgr.NewSession(nil)
	var messages []anthropic.BetaMessageParam
	run := func(more ...anthropic.BetaMessageParam) error {
		r := mcpanthropic.NewToolRunner(&client, s, anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model: newModel, MaxTokens: 1000, Messages: append(messages, more...),
		}})
		_, err := r.RunToCompletion(t.Context())
		messages = r.Messages()
		return err
	}
	var now anthropic.BetaMessageParam
	require.NoError(t, json.Unmarshal([]byte(`{"role":"system","content":[{"type":"text","text":"It is noon."}]}`), &now))
	hello := anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Hello."))
	require.NoError(t, run(hello, now), "the API takes it")
	require.NoError(t, mgr.AddTools("late", oddTool("brew", "Brews tea.")))
	require.NoError(t, run(hello, now))
	require.NotContains(t, fmt.Sprintf("%s", sent), "late")
	step = modeltest.Step{Calls: []modeltest.Call{{ID: "1", Name: mcphybrid.SearchToolName, Arguments: `{"query":"brew tea"}`}}}
	require.NoError(t, run(hello, now))
	require.Contains(t, string(sent[len(sent)-1]), "tool_addition")
}
