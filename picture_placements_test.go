package mcphybrid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// wanted returns a tool that its server wants always loaded.
func wanted(name, description string) mcpserver.ServerTool {
	t := echoTool(name, description)
	t.Tool.Meta = &mcp.Meta{AdditionalFields: map[string]any{"anthropic/alwaysLoad": true}}
	return t
}

// shelve adds the tools of three servers to m: one with tools of growing size, one that wants
// more always loaded than it can have, and one with two tools.
func shelve(t *testing.T, m *Manager) {
	var sizes, wants []mcpserver.ServerTool
	for i := range 6 {
		sizes = append(sizes, echoTool(fmt.Sprintf("read_%d", i), strings.Repeat("Reads. ", 4*i)))
	}
	for i := range 7 {
		wants = append(wants, wanted(fmt.Sprintf("want_%d", i), "Wants."))
	}
	require.NoError(t, m.AddTools("sizes", sizes...))
	require.NoError(t, m.AddTools("wants", append(wants, echoTool("plain", "Wants nothing."))...))
	require.NoError(t, m.AddTools("git", echoTool("create_issue", "Creates an issue."), echoTool("delete_issue", "Deletes an issue.")))
}

// shelveMore adds a server that was not there when the session began.
func shelveMore(t *testing.T, m *Manager) {
	require.NoError(t, m.AddTools("more", wanted("want", "Wants."), echoTool("create_more", "Creates more.")))
}

func TestPictureOfPlacements(t *testing.T) {
	inPicture(t, "Where tools are in a session, and why, by the options. Each case has the same 16 tools, and says its differences from the defaults.", func(p *picture) {
		// A definition of git has 35 or 36 tokens, of sizes 32 to 67, of wants 32.
		issues := Rule{Name: "issues", Patterns: []string{"git/*"}, Action: RuleInclude}
		for _, of := range []struct {
			title   string
			opts    Options
			session SessionOptions
		}{
			{"the defaults", Options{}, SessionOptions{}},
			{"one inline", Options{Inline: InlineOptions{Max: 1}}, SessionOptions{}},
			{"as many inline as servers may want", Options{Inline: InlineOptions{Max: 5}}, SessionOptions{}},
			{"one more than that", Options{Inline: InlineOptions{Max: 6}}, SessionOptions{}},
			{"room for all but one", Options{Inline: InlineOptions{Max: 15}}, SessionOptions{}},
			{"room for all", Options{Inline: InlineOptions{Max: 16}}, SessionOptions{}},
			{"no limit", Options{Inline: InlineOptions{Max: NoLimit, MaxTokens: NoLimit}}, SessionOptions{}},
			{"none inline", Options{Inline: InlineOptions{Max: -1}}, SessionOptions{}},
			{"a limit of tokens", Options{Inline: InlineOptions{MaxTokens: 300}}, SessionOptions{}},
			{"a limit of tokens, and fewer inline than there are", Options{Inline: InlineOptions{Max: 10, MaxTokens: 300}}, SessionOptions{}},
			{"no tokens", Options{Inline: InlineOptions{MaxTokens: -1}}, SessionOptions{}},
			{"a share of a context window", Options{Inline: InlineOptions{ContextWindow: 2000, Share: 0.1}}, SessionOptions{}},
			{"a list of four", Options{List: ListOptions{Max: 4}}, SessionOptions{}},
			{"a list of tokens", Options{List: ListOptions{MaxTokens: 200}}, SessionOptions{}},
			{"a list of three of each server", Options{List: ListOptions{ServerMax: 3}}, SessionOptions{}},
			{"a list of tokens of each server", Options{List: ListOptions{ServerTokens: 100}}, SessionOptions{}},
			{"pins", Options{Inline: InlineOptions{Max: 3}, Pins: []string{"git/*", "mcp_sizes__read_5", "none/*"}}, SessionOptions{}},
			{"more pins than are inline", Options{Inline: InlineOptions{Max: 1}, Pins: []string{"git/*", "mcp_sizes__read_5"}}, SessionOptions{}},
			{"more pins than the list takes", Options{Inline: InlineOptions{Max: 1}, List: ListOptions{Max: 2}, Pins: []string{"git/*", "mcp_sizes__read_5"}}, SessionOptions{}},
			{"pins of more tokens than are inline", Options{Inline: InlineOptions{Max: 10, MaxTokens: 100}, Pins: []string{"sizes/*"}}, SessionOptions{}},
			{"used tools", Options{Inline: InlineOptions{Max: 7}, Usage: &UsageOptions{Counts: map[string]float64{"mcp_git__delete_issue": 3, "mcp_sizes__read_4": 9, "mcp_wants__want_6": 1, "mcp_gone__x": 99}}}, SessionOptions{}},
			{"rules that include", Options{Rules: []Rule{issues}, Pins: []string{"mcp_sizes__read_1"}}, SessionOptions{}},
			{"rules that exclude, even a pin", Options{Rules: []Rule{{Name: "no issues", Patterns: []string{"git/*"}, Action: RuleExclude}}, Pins: []string{"mcp_git__delete_issue", "mcp_git__create_issue"}}, SessionOptions{}},
			{"rules that summarize", Options{Inline: InlineOptions{Max: 2}, Rules: []Rule{{Name: "listed", Patterns: []string{"git/*", "sizes/read_0"}, Action: RuleSummarize}}}, SessionOptions{}},
			{"rules by priority", Options{Rules: []Rule{
				{Name: "first", Patterns: []string{"git/*"}, Action: RuleInclude},
				{Name: "second, as high", Patterns: []string{"git/*"}, Action: RuleSummarize},
				{Name: "higher", Priority: 1, Patterns: []string{"git/create*"}, Action: RuleSummarize},
				{Name: "highest", Priority: 2, Patterns: []string{"sizes/read_1"}, Action: RuleSummarize},
				{Name: "lowest, excludes", Priority: -1, Patterns: []string{"sizes/read_1"}, Action: RuleExclude},
			}}, SessionOptions{}},
			{"rules for another intent", Options{Rules: []Rule{{Name: "mail", Intent: "mail", Patterns: []string{"git/*"}, Action: RuleInclude}}}, SessionOptions{Intent: "code"}},
			{"rules for this intent", Options{Rules: []Rule{{Name: "code", Intent: "co?e", Patterns: []string{"git/*"}, Action: RuleInclude}, {Name: "any", Intent: "*", Patterns: []string{"sizes/read_0"}, Action: RuleInclude}}}, SessionOptions{Intent: "code"}},
			{"rules that are malformed", Options{Rules: []Rule{issues, {Name: "bad", Patterns: []string{"["}, Action: RuleInclude}}, Pins: []string{"git/*"}}, SessionOptions{}},
			{"just in time, as many as are all inline", Options{JustInTime: &JustInTimeOptions{Threshold: 16}}, SessionOptions{}},
			{"just in time, one more", Options{JustInTime: new(JustInTimeOptions), Pins: []string{"git/*"}}, SessionOptions{}},
			{"just in time, none", Options{JustInTime: &JustInTimeOptions{Threshold: -1}}, SessionOptions{}},
			{"access of the Manager", Options{Access: Access{Allow: []string{"git/*", "sizes/*"}, Deny: []string{"mcp_git__delete_issue"}}}, SessionOptions{}},
			{"access of the session", Options{Inline: InlineOptions{Max: 2}}, SessionOptions{Access: Access{Allow: []string{"git/*", "wants/*", "gone/*"}, Deny: []string{"want_1", "want_9"}}}},
			{"a session that may not search", Options{Inline: InlineOptions{Max: 2}, List: ListOptions{Max: 3}, Pins: []string{"git/*"}}, SessionOptions{Access: Access{Deny: []string{SearchToolName, "mcp_wants__want_1"}}}},
		} {
			func() {
				m := NewManager(&of.opts)
				defer m.Close()
				p.m, p.seen = m, make(map[string]string)
				p.heading(of.title)
				if err := m.Start(p.Context()); err != nil {
					p.line("error of the start: %v", err)
				}
				shelve(p.T, m)
				s := m.NewSession(&of.session)
				defer s.Close()
				require.NoError(p, check(m, s))
				p.happened()
				p.session("", s)
				p.line("inline tokens at most: %d; the list has %d tools", s.view().maxInlineTokens, len(s.Tools()))
				before := len(s.Tools())
				shelveMore(p.T, m)
				p.line("A server more adds to it %v", toolNames(s.Tools()[before:]))
				p.session("", s)
			}()
		}
	})
}

func TestPictureOfAUsersPlacements(t *testing.T) {
	inPicture(t, "Where tools are in the sessions of a user who has servers of the system's names. A session that began before keeps what its names mean.", func(p *picture) {
		m := p.start("The system has tools of a and b. A rule summarizes, another excludes.", Options{Inline: InlineOptions{Max: 4}, Rules: []Rule{
			{Name: "listed", Patterns: []string{"b/tool_001"}, Action: RuleSummarize}, {Name: "out", Patterns: []string{"b/tool_003"}, Action: RuleExclude},
		}, Servers: []ServerConfig{inProcess("a", 4), inProcess("b", 5)}})
		u := newUser(p.T, m, "ada", nil)
		before := u.NewSession(nil)
		p.step("A user's session, with no tools of the user's.")
		p.session("before", before)
		p.shown(before)
		require.NoError(p, u.AddTools("b", echoTool("tool_001", "The user's."), echoTool("tool_002", "The user's."), echoTool("tool_009", "The user's.")))
		require.NoError(p, u.AddTools("c", echoTool("tool_000", "The user's.")))
		p.step("The user has a server b as well, and c.")
		p.session("before", before)
		after := u.NewSession(nil)
		p.session("after", after)
		p.session("system", m.Default())
		p.seen["sections"], p.seen["tools"] = "", ""
		p.shown(after)
		require.True(p, u.RemoveServer("b"))
		p.step("The user's b is gone.")
		p.session("before", before)
		p.session("after", after)
	})
}
