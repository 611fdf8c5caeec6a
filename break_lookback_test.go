package mcphybrid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/stretchr/testify/require"
)

// A billed conversation is sent to a model of Anthropic's whose provider bills its cache.
type billed struct {
	t        *testing.T
	s        *Session
	caches   *modeltest.Caches
	prefix   *modeltest.Prefix
	messages []json.RawMessage
}

func newBilled(t *testing.T, s *Session) *billed {
	b := &billed{t: t, s: s, caches: &modeltest.Caches{Next: func(_ modeltest.Request, err error) (modeltest.Step, error) { return modeltest.Step{Say: "Yes."}, err }}}
	b.prefix = &modeltest.Prefix{Next: b.caches}
	return b
}

func (b *billed) say(message string, args ...any) {
	b.messages = append(b.messages, json.RawMessage(fmt.Sprintf(message, args...)))
}

// send makes a request and returns what it was billed.
func (b *billed) send() modeltest.Bill {
	turn := turnOf(b.t, b.s, FormatAnthropic, "claude-opus-5-5")
	b.messages = append(b.messages, turn.Append...)
	body := turn.Body("You help.", b.messages)
	body["model"], body["max_tokens"] = "claude-opus-5-5", 100
	raw, err := json.Marshal(body)
	require.NoError(b.t, err)
	r := httptest.NewRequest("POST", "/v1/messages", bytes.NewReader(raw))
	r.Header.Set("anthropic-beta", strings.Join(turn.Betas, ","))
	w := httptest.NewRecorder()
	b.prefix.ServeHTTP(w, r)
	require.Equal(b.t, 200, w.Code, w.Body.String())
	bills := b.caches.Bills()
	return bills[len(bills)-1]
}

// Breaks README.md:89 "No request loses the provider's cache." and docs/sessions.md:47 "So the
// provider's cache stays valid": what one Turn appends may have any number of tool_addition
// blocks. Anthropic looks back 20 blocks from a breakpoint for what it has cached, as
// internal/billing/rules.go:19 says. Behind more than that, the only entry left is that of the
// system prompt: the provider reads the whole conversation anew. Default options. Cause:
// internal/provider/conversation.go, systemBlocks and messagesBody, which sets no mark where the
// request before ended (three of four marks are used).
func TestBreakManyAdditionsLoseTheCache(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 2_000)
	t.Run("a late server", func(t *testing.T) {
		m, _ := newTestManager(t, nil)
		require.NoError(t, m.AddTools("a", mcptest.Chores("a", 10)...))
		b := newBilled(t, m.NewSession(nil))
		for range 5 {
			b.say(`{"role":"user","content":%q}`, long)
			b.send()
			b.say(`{"role":"assistant","content":"Yes."}`)
		}
		require.NoError(t, m.AddTools("late", mcptest.Chores("late", 25)...)) // 35 tools: all inline
		b.say(`{"role":"user","content":"And now?"}`)
		bill := b.send()
		require.False(t, bill.Lost, "%+v", bill)
	})
	t.Run("searches at once", func(t *testing.T) {
		m, _ := newTestManager(t, nil)
		require.NoError(t, m.AddTools("a", mcptest.Chores("a", 60)...))
		for _, thing := range []string{"invoice", "train", "garden"} {
			require.NoError(t, m.AddTools(thing, mcptest.Chores(thing, 10)...))
		}
		b := newBilled(t, m.NewSession(nil))
		for range 5 {
			b.say(`{"role":"user","content":%q}`, long)
			b.send()
			b.say(`{"role":"assistant","content":"Yes."}`)
		}
		b.say(`{"role":"user","content":"Do it all."}`)
		b.send()
		var calls, results []string
		for i, thing := range []string{"invoice", "train", "garden"} {
			res, err := b.s.Call(t.Context(), SearchToolName, fmt.Sprintf(`{"query":%q}`, thing))
			require.NoError(t, err)
			calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":%q,"input":{}}`, i, SearchToolName))
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d","content":%q}`, i, mcp.GetTextFromContent(res.Content[0])))
		}
		b.say(`{"role":"assistant","content":[%s]}`, strings.Join(calls, ","))
		b.say(`{"role":"user","content":[%s]}`, strings.Join(results, ","))
		bill := b.send()
		require.False(t, bill.Lost, "%+v", bill)
	})
	t.Run("eleven calls at once", func(t *testing.T) { // the model's doing, and Body has a mark left
		m, _ := newTestManager(t, nil)
		require.NoError(t, m.AddTools("a", mcptest.Chores("a", 5)...))
		require.NoError(t, m.AddTools("b", mcptest.Chores("b", 5)...))
		b := newBilled(t, m.NewSession(nil))
		for range 5 {
			b.say(`{"role":"user","content":%q}`, long)
			b.send()
			b.say(`{"role":"assistant","content":"Yes."}`)
		}
		b.say(`{"role":"user","content":"Do it all."}`)
		b.send()
		var calls, results []string
		for i := range 11 {
			calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":"mcp_a__tool_000","input":{}}`, i))
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d","content":"done"}`, i))
		}
		b.say(`{"role":"assistant","content":[%s]}`, strings.Join(calls, ","))
		b.say(`{"role":"user","content":[%s]}`, strings.Join(results, ","))
		bill := b.send()
		require.False(t, bill.Lost, "%+v", bill)
	})
}
