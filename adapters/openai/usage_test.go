package mcpopenai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	mcpopenai "github.com/mcphybrid/mcphybrid/adapters/openai"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
)

// answered returns what a session counts of one answer, and the error of the Run.
func answered(t *testing.T, contentType, body string, run func(*openai.Client, *mcphybrid.Session) error) (snapshot.Measured, error) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	mgr := mcphybrid.NewManager(nil)
	t.Cleanup(func() { mgr.Close() })
	s := mgr.NewSession(nil)
	err := run(client(srv.URL), s)
	return s.Stats().Measured, err
}

// What an answer does not say is not counted. What it says counts even if the answer is not
// complete, and if each chunk of a stream has it, only once.
func TestUsage(t *testing.T) {
	t.Parallel()
	chat := func(c *openai.Client, s *mcphybrid.Session) error {
		_, err := mcpopenai.NewChat(c, s, openai.ChatCompletionNewParams{}).Run(t.Context(), openai.UserMessage("Hi."))
		return err
	}
	streamed := func(c *openai.Client, s *mcphybrid.Session) error {
		chat := mcpopenai.NewChat(c, s, openai.ChatCompletionNewParams{})
		chat.OnChunk = func(openai.ChatCompletionChunk) {}
		answer, err := chat.Run(t.Context(), openai.UserMessage("Hi."))
		if err == nil {
			require.Equal(t, int64(50), answer.Usage.PromptTokens)
		}
		return err
	}
	response := func(c *openai.Client, s *mcphybrid.Session) error {
		_, err := mcpopenai.NewResponses(c, s, responses.ResponseNewParams{}).Run(t.Context(), responses.ResponseInputItemParamOfMessage("Hi.", "user"))
		return err
	}
	const whole, cut = `{"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}],`, `{"choices":[{"delta":{"content":"H"}}],`
	for name, test := range map[string]struct {
		contentType, body string
		run               func(*openai.Client, *mcphybrid.Session) error
		want              snapshot.Measured
		err               string
	}{
		"none":       {"application/json", `{"choices":[{"finish_reason":"stop","message":{"content":"Hi."}}]}`, chat, snapshot.Measured{}, ""},
		"malformed":  {"application/json", `{"choices":[{"finish_reason":"stop","message":{"content":"Hi."}}],"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":6}}}`, chat, snapshot.Measured{}, ""},
		"each chunk": {"text/event-stream", "data: " + cut + `"usage":{"prompt_tokens":50,"completion_tokens":1}}` + "\n\ndata: " + whole + `"usage":{"prompt_tokens":50,"completion_tokens":2}}` + "\n\n", streamed, snapshot.Measured{Requests: 1, Input: 50, Output: 2}, ""},
		"broken":     {"text/event-stream", "data: " + cut + `"usage":{"prompt_tokens":50,"completion_tokens":1}}` + "\n\n", streamed, snapshot.Measured{}, "broke off"},
		"incomplete": {"application/json", `{"status":"incomplete","output":[],"usage":{"input_tokens":50,"output_tokens":9,"input_tokens_details":{"cached_tokens":40}}}`, response, snapshot.Measured{Requests: 1, Input: 50, Cached: 40, Output: 9}, "incomplete"},
		"null":       {"application/json", `{"status":"completed","output":[],"usage":null}`, response, snapshot.Measured{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := answered(t, test.contentType, test.body, test.run)
			require.Equal(t, test.want, got)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
