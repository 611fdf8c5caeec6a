package mcphybrid

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A describeAnswer is the answer of the describe tool.
type describeAnswer struct {
	Tools    []describedTool `json:"tools"`
	Problems []string        `json:"problems,omitempty"`
}

// A describedTool is the definition of a tool.
type describedTool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Needs       []string        `json:"needs,omitempty"`
	ReadOnly    bool            `json:"read_only,omitempty"` // for a client: it says that it only reads
}

func described(t *BridgeTool) describedTool {
	return describedTool{Name: t.name, Server: text.Line(t.def.Server, text.MaxName), Description: t.def.Description, InputSchema: t.InputSchema()}
}

// maxDescribed is the largest number of definitions in one answer.
const maxDescribed = 20

// answerDescribe answers with the definitions of the named tools.
func (s *Session) answerDescribe(args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		Names []string `json:"names"`
	}
	err := schema.Members(args, &in, "names", func() bool { return len(in.Names) == 0 })
	if err == nil && len(in.Names) > maxDescribed {
		err = fmt.Errorf(`"names" has %d names, more than the limit of %d`, len(in.Names), maxDescribed)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaDescribe, err))
	}
	v := s.view()
	answer := describeAnswer{Tools: []describedTool{}}
	var known []*BridgeTool
	for _, name := range in.Names {
		t, err := s.toolToCall(v, name)
		if err != nil {
			answer.Problems = append(answer.Problems, s.refusalFor(v, name, err))
			continue
		}
		needed := v.needed(t)
		known = append(append(known, t), needed...)
		d := described(t)
		d.Needs, d.ReadOnly = namesOf(needed), v.offers(metaReadOnlyCall) && t.def.ReadOnly()
		answer.Tools = append(answer.Tools, d)
	}
	s.nameKnown(known)
	result := s.truncate(mcp.NewToolResultText(text.JSON(answer)))
	s.countAnswer(mcp.GetTextFromContent(result.Content[0]))
	return result
}
