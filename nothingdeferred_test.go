package mcphybrid

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever the number of tools, what the model reads of a search agrees with what is deferred:
// it speaks of definitions that are not shown only behind the servers that have such tools, and of a
// search only where there is one. Without deferred tools there is none, but where the list
// of tools can't change later and the host asked for that.
func TestSectionsAgreeWithWhatIsDeferred(t *testing.T) {
	t.Parallel()
	summary := regexp.MustCompile(`(?m)^(\d+) more tools are available from these MCP servers: .*\.\n` + regexp.QuoteMeta(strings.Split(textNotShown, " `")[0]))
	for n := range 61 {
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{inProcess("s", n)}})
		deferred := max(0, n-40)
		agrees := func(what, text string, tools []string, offers bool) {
			what = fmt.Sprintf("%d tools, %s", n, what)
			told := 0
			if found := summary.FindStringSubmatch(text); found != nil {
				_, err := fmt.Sscan(found[1], &told)
				require.NoError(t, err)
			}
			assert.Equal(t, deferred, told, "%s: %s", what, text)
			assert.Equal(t, deferred > 0, strings.Contains(text, "not shown here"), "%s: %s", what, text)
			assert.Equal(t, offers, strings.Contains(text, "tool_search"), "%s: %s", what, text)
			for _, name := range tools {
				if !strings.HasPrefix(name, "mcp_s__") && !offers {
					assert.Equal(t, PageToolName, name, "%s: it can do something", what)
				}
			}
			assert.Equal(t, offers, len(tools) > 0 && strings.Contains(strings.Join(tools, " "), "tool_search"), what)
		}
		for d := range disclosures {
			for _, client := range []bool{false, true} {
				s := m.NewSession(&SessionOptions{Disclosure: d, Client: client})
				agrees(d.String(), s.PromptSections(PromptFull), toolNames(s.Tools()), deferred > 0 || d == ByBridge)
			}
			for f, model := range map[provider.Format]string{provider.OpenAIChat: "gpt-4.1", provider.OpenAIResponses: "gpt-5.4", provider.Anthropic: "claude-sonnet-5-5", provider.Gemini: "gemini-3-pro"} {
				s := m.NewSession(&SessionOptions{Disclosure: d})
				turn, err := s.Turn(f, model)
				if err != nil {
					continue // the format can't do that
				}
				var names []string
				for _, tool := range turn.Tools {
					if !tool.Deferred {
						names = append(names, tool.Name)
					}
				}
				offers := deferred > 0 || d == ByBridge || d == ByProvider && f == provider.OpenAIResponses
				agrees(fmt.Sprintf("%s for %s, that is %s", d, f, turn.Disclosure), turn.System, names, offers)
			}
		}
	}
}
