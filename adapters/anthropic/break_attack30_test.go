package mcpanthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/mcphybrid/mcphybrid"
	mcpanthropic "github.com/mcphybrid/mcphybrid/adapters/anthropic"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/require"
)

// Breaks adapters/anthropic/README.md:52-53: "The adapter sets it behind
// the tools, behind the system prompt and at the last message, unless the parameters have one
// already." The host's own mark on its system prompt is taken away where the session has no
// sections, as with up to 40 short tools: then nothing of the request is cached, where the SDK's
// own runner would cache the system prompt and the tools. Cause: turns.go, prepare, the else branch that
// copies the mark of sections, which is empty if the host marks by itself.
func TestBreakHostsMarkStays(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("a", oddTool("find", "Finds it.")))
	require.NoError(t, mgr.AddTools("b", oddTool("find", "Finds it too.")))
	for _, streams := range []bool{false, true} {
		var bodies []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Hi."}]}`)
		}))
		defer srv.Close()
		client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
		params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model: newModel, MaxTokens: 1000,
			System:   []anthropic.BetaTextBlockParam{{Text: "A long system prompt.", CacheControl: anthropic.NewBetaCacheControlEphemeralParam()}},
			Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Hello."))},
		}}
		if streams {
			for range mcpanthropic.NewToolRunnerStreaming(&client, mgr.NewSession(nil), params).All(t.Context()) {
			}
		} else {
			_, err := mcpanthropic.NewToolRunner(&client, mgr.NewSession(nil), params).RunToCompletion(t.Context())
			require.NoError(t, err)
		}
		require.Contains(t, bodies[0], `"cache_control":{"type":"ephemeral"}`, "the host's mark is gone")
	}
}

// Breaks adapters/anthropic/README.md:49-50, "models that check what stands before their thinking do not refuse a request", and turns.go:148,
// that what the session tells is "told where it may stand". A host may end its messages with one of the
// system, which the API takes behind one of the user (NewBetaSystemMessage of the SDK). What the
// session tells then stands behind it, and the API refuses two in a row. Cause: turns.go, turn looks
// for answers alone.
func TestBreakHostsSystemMessage(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Inline: mcphybrid.InlineOptions{Max: 1}})
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("a", oddTool("find", "Finds it."), oddTool("lose", "Loses it.")))
	model := modeltest.Model(func(_ modeltest.Request, err error) (modeltest.Step, error) { return modeltest.Step{Say: "Hi."}, err })
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
}

// Breaks adapters/anthropic/README.md:52-53, as above: the host has set no mark, but one of the
// model's earlier calls has an argument of that name, as tools do that upload files. The
// adapter then sets no mark in the whole run, and Anthropic caches nothing of it. Cause:
// turns.go, marked, which looks for "cache_control": in all of the JSON. internal/modeltest/breakpoints.go knows that
// arguments may have it.
func TestBreakArgumentCalledCacheControl(t *testing.T) {
	t.Parallel()
	mgr := mcphybrid.NewManager(nil)
	defer mgr.Close()
	require.NoError(t, mgr.AddTools("a", oddTool("find", "Finds it.")))
	require.NoError(t, mgr.AddTools("b", oddTool("upload", "Uploads it.")))
	for argument, marks := range map[string]int{"other": 2, "cache_control": 2} {
		var body string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			body = string(raw)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Hi."}]}`)
		}))
		defer srv.Close()
		client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"))
		var history []anthropic.BetaMessageParam
		require.NoError(t, json.Unmarshal([]byte(`[{"role":"user","content":[{"type":"text","text":"Upload it."}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"mcp_b__upload","input":{"`+argument+`":"max-age=60"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"Done."}]}]},
			{"role":"assistant","content":[{"type":"text","text":"Done."}]},
			{"role":"user","content":[{"type":"text","text":"Thanks."}]}]`), &history))
		_, err := mcpanthropic.NewToolRunner(&client, mgr.NewSession(nil), anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model: newModel, MaxTokens: 1000, Messages: history,
		}}).RunToCompletion(t.Context())
		require.NoError(t, err)
		require.Equal(t, marks, strings.Count(body, `"cache_control":{"type":"ephemeral"}`), argument)
	}
}
