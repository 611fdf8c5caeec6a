package mcphybrid

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/require"
)

// Breaks docs/sessions.md:47, "And on models that check what stands before their thinking, the
// request is not refused", for the loop of README.md:54 as it stands. A request fails when something was
// appended, as when the provider is overloaded; the host tells the user, who writes again. The
// conversation then is user, system, user: Anthropic takes a message of the system only as the last one or
// before an answer (internal/modeltest/messages.go:41), so this request and all later ones are refused.
// Neither README.md nor docs/sessions.md says what to do after a failed request; only the
// comment of Turn does (turn.go, "If the request fails, send the same one again"). A second session beside it, whose requests do not fail, goes on.
func TestBreakReadmeLoopAfterAFailedRequest(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	require.NoError(t, m.AddTools("a", mcptest.Chores("a", 3)...))
	model := modeltest.Model(func(_ modeltest.Request, err error) (modeltest.Step, error) { return modeltest.Step{Say: "Yes."}, err })
	away := false
	loop := func() func(message string) (int, string) {
		s, prefix := m.NewSession(nil), &modeltest.Prefix{Next: model}
		var messages []json.RawMessage
		return func(message string) (int, string) {
			messages = append(messages, json.RawMessage(`{"role":"user","content":"`+message+`"}`))
			turn := turnOf(t, s, FormatAnthropic, "claude-sonnet-5-5")
			messages = append(messages, turn.Append...)
			if away {
				return 529, "overloaded" // the host returns
			}
			body := turn.Body("You help.", messages)
			body["model"], body["max_tokens"] = "claude-sonnet-5-5", 100
			raw, err := json.Marshal(body)
			require.NoError(t, err)
			r, w := httptest.NewRequest("POST", "/v1/messages", bytes.NewReader(raw)), httptest.NewRecorder()
			r.Header.Set("anthropic-beta", strings.Join(turn.Betas, ","))
			prefix.ServeHTTP(w, r)
			if w.Code == 200 {
				messages = append(messages, json.RawMessage(`{"role":"assistant","content":"Yes."}`))
			}
			return w.Code, w.Body.String()
		}
	}
	unlucky, lucky := loop(), loop()
	for _, say := range []func(string) (int, string){unlucky, lucky} {
		code, why := say("Hello")
		require.Equal(t, 200, code, why)
	}
	require.NoError(t, m.AddTools("late", mcptest.Chores("late", 3)...))
	away = true
	unlucky("What can you do now?")
	away = false
	code, why := lucky("What can you do now?")
	require.Equal(t, 200, code, why)
	code, why = unlucky("Again: what can you do now?")
	require.Equal(t, 200, code, why)
}
