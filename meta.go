package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A metaTool is a meta tool of one session. A session has one of each kind for its
// whole life.
type metaTool struct {
	s    *Session
	kind metaKind
}

func (t *metaTool) Name() string { return metaNames[t.kind] }

func (t *metaTool) Description() string {
	if t.kind == metaSearch && t.s.disclosure == ByBridge {
		return bridgeSearch
	}
	return metaDescriptions[t.kind]
}

func (t *metaTool) InputSchema() json.RawMessage {
	switch t.kind {
	case metaSearch:
		return searchToolSchema(t.s.scope.opts.Search.Results, t.s.scope.opts.Search.Limit)
	case metaSkillSearch:
		return skillSearchSchema(t.s.scope.opts.Search.Results, t.s.scope.opts.Search.Limit)
	}
	return json.RawMessage(metaSchemas[t.kind])
}

// Call answers in words even if args are malformed. So the error is always nil,
// except for the tool that [CallToolName] calls.
func (t *metaTool) Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	switch t.kind {
	case metaDescribe:
		return t.s.answerDescribe(args), nil
	case metaCall:
		return t.s.answerCall(ctx, args)
	case metaPage:
		return t.s.answerPage(args), nil
	case metaSkillSearch:
		return t.s.answerSkillSearch(args), nil
	case metaSkillLoad:
		return t.s.answerSkillLoad(ctx, args), nil
	}
	return t.s.answerSearch(ctx, args), nil
}

// offers reports whether the session has the meta tool of that kind. A meta tool
// that the model was shown stays.
func (v view) offers(kind metaKind) bool {
	switch {
	case v.metas[kind]:
		return true
	case !v.rights.mayUse(metaNames[kind]):
		return false
	}
	switch kind {
	case metaSearch:
		return v.disclosure == ByBridge || v.searchMode()
	case metaPage:
		return v.disclosure == ByBridge || v.paged
	case metaSkillSearch:
		return v.searchesSkills()
	case metaSkillLoad:
		return v.hasSkills()
	}
	return v.bridges
}

// metaNamed returns the meta tool with that name if v offers it, or nil.
func (s *Session) metaNamed(v view, name string) Tool {
	for kind := range metaKinds {
		if metaNames[kind] == name && v.offers(kind) {
			return &s.meta[kind]
		}
	}
	return nil
}

// metaTools returns the meta tools that v offers, in a fixed order.
func (s *Session) metaTools(v view) (list []Tool) {
	for kind := range metaKinds {
		if v.offers(kind) {
			list = append(list, &s.meta[kind])
		}
	}
	return list
}

// maxDescribed is the largest number of definitions in one answer.
const maxDescribed = 20

// answerDescribe answers with the definitions of the named tools.
func (s *Session) answerDescribe(args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		Names []string `json:"names"`
	}
	err := json.Unmarshal(args, &in)
	switch {
	case err != nil:
		err = text.JSONError(args, err)
	case len(in.Names) == 0:
		err = errors.New(`"names" is missing or empty`)
	case len(in.Names) > maxDescribed:
		err = fmt.Errorf(`"names" has %d names, more than the limit of %d`, len(in.Names), maxDescribed)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaDescribe, err))
	}
	v := s.view()
	answer := describeAnswer{Tools: []describedTool{}}
	for _, name := range in.Names {
		t, err := s.find(v, name)
		if err != nil {
			answer.Problems = append(answer.Problems, s.textRefused(v, name, err))
			continue
		}
		answer.Tools = append(answer.Tools, describedTool{t.name, t.def.server, t.def.description, t.def.input, namesOf(v.needed(t))})
	}
	result := s.fit(mcp.NewToolResultText(text.JSON(answer)))
	s.countAnswer(mcp.GetTextFromContent(result.Content[0]))
	return result
}

// A describeAnswer is the answer of the describe tool.
type describeAnswer struct {
	Tools    []describedTool `json:"tools"`
	Problems []string        `json:"problems,omitempty"`
}

type describedTool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Needs       []string        `json:"needs,omitempty"`
}

// answerCall calls the tool that the model named.
func (s *Session) answerCall(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	err := json.Unmarshal(args, &in)
	switch {
	case err != nil:
		err = text.JSONError(args, err)
	case in.Name == "":
		err = errors.New(`"name" is missing or empty`)
	case slices.Contains(metaNames[:], in.Name):
		err = fmt.Errorf("call %s directly, not by this tool", in.Name)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaCall, err)), nil
	}
	// Models often write the arguments as a string.
	var text string
	if json.Unmarshal(in.Arguments, &text) == nil {
		in.Arguments = json.RawMessage(text)
	}
	return s.callTool(ctx, in.Name, in.Arguments)
}
