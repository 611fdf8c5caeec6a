package inspect

import (
	"bytes"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each part of a report for people has a heading and an empty line above it, and one that has
// nothing is left out.
func TestReportText(t *testing.T) {
	t.Parallel()
	print := func(r report) string {
		var b bytes.Buffer
		s := terminal.Paper(&b, 0)
		r.print(s)
		require.NoError(t, s.Err())
		return b.String()
	}
	full := report{
		Servers:  []serverReport{{"kitchen", mcphybrid.StateReady, 3, ""}, {"gone", mcphybrid.StateDown, 0, "no such program"}},
		Problems: []string{"a problem"},
		Inline:   []string{"mcp_kitchen__boil", "mcp_kitchen__stir"},
		Deferred: []string{"mcp_kitchen__bake"},
		Tokens:   tokenReport{All: 300, Inline: 250, Sections: 40},
		Hits:     []hitReport{{"mcp_kitchen__bake", "kitchen", 1.25, "deferred"}},
		Result:   mcp.NewToolResultText("cooked\nsoup"),
		costs:    []cost{{"kitchen", 200, 100}},
	}
	assert.Equal(t, `kitchen              ready           3 tools
gone                 down            0 tools  no such program
a problem

2 inline, 1 deferred
about 300 tokens for all definitions
about 250 tokens for the inline ones and those that search
about 40 tokens for the prompt sections

tokens                   all  inline deferred  █ inline ░ deferred
kitchen                  300     200      100  ██████████████████████░░░░░░░░░░░

inline:
  mcp_kitchen__boil
  mcp_kitchen__stir

deferred:
  mcp_kitchen__bake

found:
   1.250  mcp_kitchen__bake (kitchen, deferred)

result:
cooked
soup
`, print(full))
	assert.Equal(t, `
0 inline, 0 deferred
about 0 tokens for all definitions
about 0 tokens for the inline ones and those that search
about 0 tokens for the prompt sections

tokens                   all  inline deferred  █ inline ░ deferred

found nothing:
  no server has a tool
`, print(report{Why: []string{"no server has a tool"}}))
}
