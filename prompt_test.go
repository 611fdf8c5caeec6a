package mcphybrid

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/hints"
	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/text"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testdata/prompt.golden has every word that the model reads: the sections, the
// search tool and each answer. So a review sees each change.
func TestPromptGolden(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 2}, Prompt: PromptOptions{ListInline: true}, Servers: []ServerConfig{
		serving("github", echoTool("create_issue", "Creates an issue."), echoTool("list_issues", "Lists the issues\n\n## of a repository")),
		inProcess("grafana", 3), inProcess("slack", 2),
	}})
	var b strings.Builder
	section := func(title, text string) { b.WriteString("=== " + title + "\n" + text + "\n") }
	section("guide", textGuide)
	section("sections", m.PromptSections(PromptFull))
	section("search tool", m.SearchTool().Description())
	section("its schema", string(m.SearchTool().InputSchema()))
	for _, search := range [][2]string{
		{"found", `{"query":"chore 1 slack","max_results":2}`},
		{"nothing found", `{"query":"zebra"}`},
		{"no query", `{}`},
	} {
		r, err := m.Call(t.Context(), SearchToolName, search[1])
		require.NoError(t, err)
		section(search[0], resultText(t, r))
	}
	section("unknown tool", textRefused("mcp_x__y", "called", ErrUnknownTool, true, time.Time{}))
	section("unknown tool, no search", textRefused("mcp_x__y", "called", ErrUnknownTool, false, time.Time{}))
	section("server down", textRefused("mcp_x__y", "called", ErrServerDown, true, time.Time{}))
	section("another error", textRefused("mcp_x__y", "called", errors.New("line one\nline two"), true, time.Time{}))

	section("override block", overrideBlock([]noted{{"mcp_x__y", hints.Hints{
		Preconditions: []string{"Log in"}, AntiPatterns: []string{"Drafts"}, ChainsWith: []string{"mcp_x__z"}, OutputShape: "A list of ids",
	}}}))

	golden.Compare(t, "prompt.golden", b.String())
	assert.True(t, json.Valid(m.SearchTool().InputSchema()))
}

// The search section names the first thirty servers, however many there are.
func TestSearchSummaryIsBounded(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: -1}})
	for i := range 100 {
		require.NoError(t, m.AddTools(strings.Repeat("s", 40)+string(rune('A'+i%26))+strings.Repeat("x", i), echoTool("t", "T")))
	}
	section := m.SearchSection()
	assert.Less(t, len(section), 4000)
	assert.Contains(t, section, "100 more tools")
	assert.Contains(t, section, "75 more servers")
}

// However a server names and describes its tools, the section has one line for
// each and only our headings.
func FuzzInlineSection(f *testing.F) {
	f.Add("tool", "Describes\n## Heading\r- mcp_x: y", "server\n## x")
	f.Add("\u202egnp", strings.Repeat("e\u0301", 300), "a\u2028b")
	f.Add("x", "\xff\xfe\x00\x1b[2J\u200b\U000e0041", "\xff")
	f.Fuzz(func(t *testing.T, tool, description, server string) {
		m := NewManager(&Options{Inline: InlineOptions{Max: 1}, Prompt: PromptOptions{ListInline: true}})
		defer m.Close()
		for _, name := range []string{tool, tool + "2"} {
			if name == "" || server == "" || m.AddTools(server, echoTool(name, description)) != nil {
				t.Skip("no such tool can be added")
			}
		}
		plain := NewManager(&Options{Inline: InlineOptions{Max: 1}, Prompt: PromptOptions{ListInline: true}})
		defer plain.Close()
		for _, name := range []string{"a", "b"} {
			require.NoError(t, plain.AddTools("s", echoTool(name, "d")))
		}
		got, want := m.PromptSections(PromptFull), plain.PromptSections(PromptFull)
		assert.True(t, utf8.ValidString(got))
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
		require.Len(t, gotLines, len(wantLines))
		for i, line := range gotLines {
			switch {
			case strings.HasPrefix(wantLines[i], "- mcp_s__a: d"):
				assert.Regexp(t, `^- mcp_[A-Za-z0-9_-]+(: .*)?$`, line)
				assert.LessOrEqual(t, utf8.RuneCountInString(line), len("- ")+text.MaxName+len(": ")+DefaultMaxDescription)
			case strings.Contains(wantLines[i], "s (1)"):
			default:
				assert.Equal(t, wantLines[i], line)
			}
			assert.False(t, strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }), "%q", line)
		}
		r, err := m.Call(t.Context(), SearchToolName, `{"query":"describes tool"}`)
		require.NoError(t, err)
		assert.True(t, json.Valid([]byte(mcp.GetTextFromContent(r.Content[0]))))
	})
}
