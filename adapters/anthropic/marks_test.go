package mcpanthropic_test

import (
	"encoding/json"
	"fmt"
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

// The host's own mark stays, also where the session has no sections.
func TestHostsMarkStays(t *testing.T) {
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

// An argument of that name in an earlier call is no mark of the host's.
func TestArgumentCalledCacheControl(t *testing.T) {
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

// The cache is kept behind more calls in one answer than Anthropic looks back, and the mark for
// that is in no later request nor in the messages of the host.
func TestManyCallsKeepTheCache(t *testing.T) {
	t.Parallel()
	for _, streams := range []bool{false, true} {
		mgr := mcphybrid.NewManager(nil)
		defer mgr.Close()
		require.NoError(t, mgr.AddTools("a", oddTool("find", "Finds it.")))
		require.NoError(t, mgr.AddTools("b", oddTool("find", "Finds it too.")))
		asked := false
		caches := &modeltest.Caches{Next: func(got modeltest.Request, err error) (modeltest.Step, error) {
			if asked = !asked; !asked {
				return modeltest.Step{Say: "Done."}, err
			}
			var st modeltest.Step
			for i := range 11 {
				st.Calls = append(st.Calls, modeltest.Call{ID: fmt.Sprint(len(got.Messages), "_", i), Name: "mcp_a__find", Arguments: `{"z":1}`})
			}
			return st, err
		}}
		prefix := &modeltest.Prefix{Next: caches}
		var bodies []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(raw))
			r.Body = io.NopCloser(strings.NewReader(string(raw)))
			prefix.ServeHTTP(w, r)
		}))
		defer srv.Close()
		client := anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
		s := mgr.NewSession(nil)
		var messages []anthropic.BetaMessageParam
		for range 3 {
			messages = append(messages, anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(strings.Repeat("<long> ", 2_000))))
			params := anthropic.BetaToolRunnerParams{BetaMessageNewParams: anthropic.BetaMessageNewParams{Model: newModel, MaxTokens: 1000, Messages: messages}}
			if streams {
				r := mcpanthropic.NewToolRunnerStreaming(&client, s, params)
				for _, err := range r.All(t.Context()) {
					require.NoError(t, err)
				}
				messages = r.Messages()
			} else {
				r := mcpanthropic.NewToolRunner(&client, s, params)
				_, err := r.RunToCompletion(t.Context())
				require.NoError(t, err)
				messages = r.Messages()
			}
			raw, err := json.Marshal(messages)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "cache_control")
		}
		require.NoError(t, prefix.Wrong())
		require.Zero(t, caches.Lost(), "%+v", caches.Bills())
		require.Len(t, bodies, 6)
		for i, body := range bodies {
			require.Equal(t, 2+i%2, strings.Count(body, `"cache_control":{"type":"ephemeral"}`), "there are no sections")
		}
	}
}
