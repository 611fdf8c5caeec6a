package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func turnOf(t *testing.T, s *Session, f provider.Format, model string) Turn {
	t.Helper()
	turn, err := s.Turn(f, model)
	require.NoError(t, err)
	return turn
}

func manyTools(n int) (list []mcpserver.ServerTool) {
	for i := range n {
		list = append(list, echoTool(fmt.Sprintf("t%03d", i), "Does thing"))
	}
	return list
}

// A Turn after the Manager or the session was closed fails, and does not panic.
func TestTurnAfterClose(t *testing.T) {
	for _, what := range []string{"manager", "session"} {
		for _, at := range []bool{false, true} {
			t.Run(fmt.Sprint(what, at), func(t *testing.T) {
				m := NewManager(&Options{})
				defer m.Close()
				require.NoError(t, m.AddTools("a", manyTools(3)...))
				s := m.NewSession(nil)
				turnOf(t, s, provider.OpenAIChat, "")
				if what == "manager" {
					require.NoError(t, m.Close())
				} else {
					s.Close()
				}
				var err error
				if at {
					_, err = s.TurnAt(provider.OpenAIChat, "", 3)
				} else {
					_, err = s.Turn(provider.OpenAIChat, "")
				}
				assert.ErrorIs(t, err, ErrClosed)
			})
		}
	}
}

// Two Turns that fail at once must not panic.
func TestTurnTwoFailingTurns(t *testing.T) {
	m := NewManager(&Options{})
	defer m.Close()
	require.NoError(t, m.AddTools("a", manyTools(200)...))
	var mu sync.Mutex
	var panics []any
	for range 200 {
		s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{SearchToolName}}})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						mu.Lock()
						panics = append(panics, p)
						mu.Unlock()
					}
				}()
				_, err := s.Turn(provider.OpenAIChat, "")
				assert.Error(t, err)
			})
		}
		wg.Wait()
		if panics != nil {
			break
		}
	}
	assert.Empty(t, panics)
}

// A late tool that is deferred by the partition, in a conversation without a search, is
// neither in the list, nor can be found, nor waits.
func TestTurnNoBridgeLateDeferredWaits(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Servers: []ServerConfig{inProcess("a", 3)}})
	s := m.NewSession(nil)
	first := turnOf(t, s, provider.OpenAIChat, "")
	require.NotContains(t, exportedNames(first.Tools), SearchToolName)
	require.NoError(t, m.AddTools("late", manyTools(10)...))
	turn := turnOf(t, s, provider.OpenAIChat, "")
	require.NotContains(t, exportedNames(turn.Tools), SearchToolName)
	for i := range 10 {
		assert.Contains(t, turn.Waiting, fmt.Sprintf("mcp_late__t%03d", i))
	}
}

// ByProvider where the conversation takes no tools: a late tool is found by search, which
// says that it is in the list; it is not, no tool calls it, and it does not wait.
func TestTurnByProviderLateTool(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 5)}})
	s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
	turnOf(t, s, provider.Anthropic, "claude-haiku-4-5")
	require.NoError(t, m.AddTools("late", echoTool("brew", "Brews tea")))
	res, err := s.Call(t.Context(), SearchToolName, `{"query":"brew tea"}`)
	require.NoError(t, err)
	found := mcp.GetTextFromContent(res.Content[0])
	turn := turnOf(t, s, provider.Anthropic, "claude-haiku-4-5")
	names := append(exportedNames(turn.Tools), exportedNames(turn.Added)...)
	for _, reach := range [][]string{names} {
		ok := false
		for _, n := range append(reach, turn.Waiting...) {
			ok = ok || n == "mcp_late__brew" || n == CallToolName
		}
		assert.True(t, ok, "list %q, waiting %q, news %q, found %s", names, turn.Waiting, turn.News, found)
	}
}

// ByProvider where the conversation takes no tools: a result is cut, and the model is told to
// read on with a tool that it does not have.
func TestTurnByProviderPage(t *testing.T) {
	m, _ := newTestManager(t, &Options{MaxResult: 200, Inline: InlineOptions{Max: 2}, Servers: []ServerConfig{inProcess("a", 5)}})
	require.NoError(t, m.AddTools("long", mcpserver.ServerTool{Tool: mcp.NewTool("long"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strings.Repeat("long text ", 500)), nil
	}}))
	s := m.NewSession(&SessionOptions{Disclosure: ByProvider})
	turnOf(t, s, provider.Anthropic, "claude-haiku-4-5")
	res, err := s.Call(t.Context(), "mcp_long__long", nil)
	require.NoError(t, err)
	assert.NotContains(t, mcp.GetTextFromContent(res.Content[0]), PageToolName)
}

// A truncated state of a session by bridge: the tools that find and call others are gone
// for the rest of the conversation.
func TestTurnTruncatedStateKeepsTheBridge(t *testing.T) {
	opts := &Options{Inline: InlineOptions{Max: 10}, MaxState: 2500, Servers: []ServerConfig{inProcess("a", 30)}}
	m, _ := newTestManager(t, opts)
	s := m.NewSession(nil)
	first := turnOf(t, s, provider.OpenAIChat, "")
	require.Contains(t, exportedNames(first.Tools), CallToolName)
	r, changed, err := m.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Contains(t, changed, "MaxState", "another beginning is reported")
	turn := turnOf(t, r, provider.OpenAIChat, "")
	assert.Subset(t, exportedNames(turn.Tools), []string{SearchToolName, CallToolName}, "list: %q, waiting: %q, news: %q", exportedNames(turn.Tools), turn.Waiting, turn.News)
}

// By bridge without the call tool or without the search: late inline tools are lost.
func TestTurnBridgeDenied(t *testing.T) {
	for _, deny := range []string{SearchToolName, CallToolName} {
		t.Run(deny, func(t *testing.T) {
			m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Servers: []ServerConfig{inProcess("a", 3)}})
			s := m.NewSession(&SessionOptions{Disclosure: ByBridge, Access: Access{Deny: []string{deny}}})
			first := turnOf(t, s, provider.OpenAIChat, "")
			require.NoError(t, m.AddTools("late", echoTool("one", "Echoes")))
			turn := turnOf(t, s, provider.OpenAIChat, "")
			assert.True(t, len(turn.Waiting) > 0 || strings.Contains(turn.News, "mcp_late__one"), "list %q, news %q, waiting %q", exportedNames(first.Tools), turn.News, turn.Waiting)
		})
	}
}

// What was told survives a Turn of a closed Manager.
func TestTurnSaveAfterClosedTurn(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	s := m.NewSession(nil)
	first := turnOf(t, s, provider.OpenAIResponses, "gpt-5.6") // nothing yet
	_ = first
	require.NoError(t, m.AddTools("a", manyTools(3)...))
	told := turnOf(t, s, provider.OpenAIResponses, "gpt-5.6")
	require.NotNil(t, told.Append)
	require.NoError(t, m.Close())
	_, _ = s.Turn(provider.OpenAIResponses, "gpt-5.6")
	m2, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}})
	require.NoError(t, m2.AddTools("a", manyTools(3)...))
	r, _, err := m2.RestoreSession(s.Save(), nil)
	require.NoError(t, err)
	assert.Nil(t, turnOf(t, r, provider.OpenAIResponses, "gpt-5.6").Append, "each is given once")
}

// A first Turn that fails tells nothing, and so drops nothing that was shown.
func TestTurnFailedFirstTurnKeepsWhatWasShown(t *testing.T) {
	m, _ := newTestManager(t, nil)
	require.NoError(t, m.AddTools("a", manyTools(150)...))
	s := m.NewSession(&SessionOptions{Disclosure: ByActivation, Access: Access{Deny: []string{SearchToolName}}})
	before := toolNames(s.Tools())
	require.NoError(t, m.AddTools("b", manyTools(1)...))
	m.RemoveServer("a")
	_, err := s.Turn(provider.OpenAIChat, "")
	require.Error(t, err)
	assert.Equal(t, before, toolNames(s.Tools())[:len(before)])
}

// A first Turn that fails forgets nothing else: a session whose list is full still offers the
// tool that calls the others.
func TestTurnFailedFirstTurnStaysFull(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 140}, List: ListOptions{Max: 140, ServerMax: 140}})
	require.NoError(t, m.AddTools("a", manyTools(150)...))
	s := m.NewSession(nil)
	require.False(t, s.ActivateToolIfDeferred("mcp_a__t149"), "there is no room")
	_, err := s.Turn(provider.OpenAIChat, "")
	require.Error(t, err)
	assert.Contains(t, toolNames(s.Tools()), CallToolName)
}

// A user's session: what tool_search loaded is not added once more.
func TestTurnUserToolSearchAddsTwice(t *testing.T) {
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 1}, Servers: []ServerConfig{inProcess("a", 5)}})
	u, err := m.NewUser("ann", nil)
	require.NoError(t, err)
	s := u.NewSession(&SessionOptions{Disclosure: ByProvider})
	turnOf(t, s, provider.OpenAIResponses, "gpt-5.6")
	answer, err := s.AnswerToolSearch(t.Context(), json.RawMessage(`{"type":"tool_search_call","execution":"client","arguments":{"query":"select:mcp_a__tool_003"}}`))
	require.NoError(t, err)
	require.Contains(t, string(answer), `"mcp_a__tool_003"`)
	assert.Empty(t, exportedNames(turnOf(t, s, provider.OpenAIResponses, "gpt-5.6").Added), "the answer has it")
}

// A conversation without the bridge gets a late tool that a rule summarizes.
func TestTurnNoBridgeIntentRevealsDeferred(t *testing.T) {
	m, _ := newTestManager(t, &Options{Rules: []Rule{
		{Name: "off", Intent: "a", Patterns: []string{"*_001"}, Action: RuleExclude},
		{Name: "brief", Patterns: []string{"*_001"}, Action: RuleSummarize},
	}, Servers: []ServerConfig{inProcess("a", 3)}})
	s := m.NewSession(&SessionOptions{Intent: "a"})
	turnOf(t, s, provider.OpenAIChat, "")
	s.SetIntent("b")
	turn := turnOf(t, s, provider.OpenAIChat, "")
	assert.Contains(t, append(turn.Waiting, exportedNames(turn.Tools)...), "mcp_a__tool_001")
}

// A state without room: what the next request has after a truncated state, by addition.
func TestTurnTruncatedByAddition(t *testing.T) {
	for _, limit := range []int{600, 1500, 2500, 3500} {
		m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 3}, MaxState: limit, Servers: []ServerConfig{inProcess("a", 30)}})
		s := m.NewSession(nil)
		turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
		s.ActivateTools([]string{"mcp_a__tool_011", "mcp_a__tool_012"})
		turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
		r, _, err := m.RestoreSession(s.Save(), nil)
		require.NoError(t, err)
		turn := turnOf(t, r, provider.Anthropic, "claude-opus-5-5")
		all := append(exportedNames(turn.Tools), exportedNames(turn.Added)...)
		assert.Contains(t, all, SearchToolName, limit)
		_, _ = r.Call(t.Context(), SearchToolName, `{"query":"select:mcp_a__tool_015"}`)
		assert.Contains(t, exportedNames(turnOf(t, r, provider.Anthropic, "claude-opus-5-5").Added), "mcp_a__tool_015")
	}
}

// The name of a tool that came and left before the model was told of it goes on to mean that
// tool: another owner's tool of this name is not called in its place.
func TestTurnForgottenToolKeepsItsName(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, nil)
	u, err := m.NewUser("ann", nil)
	require.NoError(t, err)
	s := u.NewSession(nil)
	turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
	require.NoError(t, u.AddTools("git", echoTool("log", "")))
	require.Contains(t, toolNames(s.Tools()), "mcp_git__log")
	require.True(t, u.RemoveServer("git"))
	require.NotContains(t, toolNames(s.Tools()), "mcp_git__log")
	turn := turnOf(t, s, provider.Anthropic, "claude-opus-5-5")
	require.Empty(t, turn.Added)
	require.Empty(t, turn.Removed)
	require.NoError(t, m.AddTools("git", echoTool("log", "")))
	_, err = s.Call(t.Context(), "mcp_git__log", nil)
	assert.ErrorIs(t, err, ErrUnknownTool)
}
