package mcphybrid

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStats(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Inline: InlineOptions{Max: 3}, Servers: []ServerConfig{inProcess("a", 10), inProcess("b", 2)}})
	m.ActivateTools([]string{"mcp_b__tool_001"})
	st := m.Stats()
	assert.Equal(t, []int{2, 12, 3, 8, 1}, []int{st.Servers, st.Tools, st.Inline, st.Deferred, st.Active})
	one := m.toolTokens(m.InlineTools()[0])
	assert.Equal(t, 12*one, st.Tokens.All)
	assert.Equal(t, 3*one, st.Tokens.Inline)
	assert.Equal(t, m.tokens(definitionText(m.SearchTool())), st.Tokens.Meta)
	assert.Equal(t, one, st.Tokens.Active)
	assert.Equal(t, (len(m.PromptSections(PromptFull))+3)/4, st.Tokens.Sections)
}
