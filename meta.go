package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/result"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/words"
)

// A metaTool is a meta tool of one session. Two of one kind and session are equal.
type metaTool struct {
	s    *Session
	kind metaKind
}

func (t metaTool) Name() string { return metaNames[t.kind] }

func (t metaTool) Description() string {
	line := words.Tools[t.kind].Description
	if t.kind == metaSearch && t.s.Disclosure() == ByBridge {
		line = words.BridgeSearch
	}
	if t.kind == metaSearch && t.s.asked.client {
		line = strings.TrimSpace(line + " " + t.s.findable())
	}
	return line
}

// Annotations returns hints like those of a server's tool. Only calls may change
// anything.
func (t metaTool) Annotations() mcp.ToolAnnotation {
	return mcp.ToolAnnotation{ReadOnlyHint: mcp.ToBoolPtr(t.kind != metaCall)}
}

// findable says what the search tool finds, as the model was told first.
func (s *Session) findable() string {
	s.mu.Lock()
	offer := s.viewLocked().searchOffer(nil)
	if i := slices.IndexFunc(s.shown, func(e listItem) bool { return e.slot == asMeta && e.meta == metaSearch }); i >= 0 {
		offer = s.shown[i].offer
	}
	s.mu.Unlock()
	return offer.servers.Summary(s.scope.opts.Prompt.MaxSummaryTokens, s.scope.tokens)
}

func (t metaTool) InputSchema() json.RawMessage {
	switch t.kind {
	case metaSearch:
		return words.SearchSchema(t.s.scope.opts.Search.Results, t.s.scope.opts.Search.Limit)
	case metaResourceSearch:
		return words.ResourceSearchSchema(t.s.scope.opts.Search.Results, t.s.scope.opts.Search.Limit)
	case metaSkillSearch:
		return words.SkillSearchSchema(t.s.scope.opts.Search.Results, t.s.scope.opts.Search.Limit)
	}
	return json.RawMessage(words.Tools[t.kind].Schema)
}

// Call answers in words even if args are malformed. So the error is always nil,
// except for the tool that [CallToolName] calls.
func (t metaTool) Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	switch t.kind {
	case metaDescribe:
		return t.s.answerDescribe(args), nil
	case metaCall, metaReadOnlyCall:
		return t.s.answerCall(ctx, t.kind, args)
	case metaPage:
		return t.s.answerPage(args), nil
	case metaSkillSearch:
		return t.s.answerSkillSearch(args), nil
	case metaSkillLoad:
		return t.s.answerSkillLoad(ctx, args), nil
	case metaResourceSearch:
		return t.s.answerResourceSearch(args), nil
	case metaResourceRead:
		return t.s.answerResourceRead(ctx, args), nil
	}
	return t.s.answerSearch(ctx, args), nil
}

// offers reports whether the session has the meta tool of that kind. A meta tool
// that the model was shown stays.
func (v *view) offers(kind metaKind) bool {
	switch {
	case v.metas[kind]:
		return true
	case !mayUse(v.rights, metaNames[kind]):
		return false
	}
	switch kind {
	case metaSearch:
		return v.disclosure == ByBridge && !v.bare || v.loads || v.searchMode()
	case metaReadOnlyCall:
		return v.disclosure == ByBridge && v.client && !v.bare
	case metaPage:
		return v.disclosure == ByBridge && (!v.bare || len(v.inline) > 0) || v.paged
	case metaSkillSearch:
		return v.searchesSkills()
	case metaSkillLoad:
		return v.hasSkills()
	case metaResourceSearch:
		return v.reads
	case metaResourceRead:
		return v.reads || v.linked
	}
	return v.bridges
}

// metaNamed returns the meta tool with that name if v offers it, or nil.
func (s *Session) metaNamed(v *view, name string) Tool {
	for kind := range metaKinds {
		if metaNames[kind] == name && v.offers(kind) {
			return metaTool{s, metaKind(kind)}
		}
	}
	return nil
}

// metaTools returns the meta tools that v offers, in a fixed order.
func (s *Session) metaTools(v *view) (list []Tool) {
	for kind := range metaKinds {
		if v.offers(kind) {
			list = append(list, metaTool{s, metaKind(kind)})
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
	err := schema.Members(args, &in, "names", func() bool { return len(in.Names) == 0 })
	if err == nil && len(in.Names) > maxDescribed {
		err = fmt.Errorf(`"names" has %d names, more than the limit of %d`, len(in.Names), maxDescribed)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaDescribe, err))
	}
	v := s.view()
	answer := words.DescribeAnswer{Tools: []words.DescribedTool{}}
	var described []*BridgeTool
	for _, name := range in.Names {
		t, err := s.find(v, name)
		if err != nil {
			answer.Problems = append(answer.Problems, s.textRefused(v, name, err))
			continue
		}
		needed := v.needed(t)
		described = append(append(described, t), needed...)
		answer.Tools = append(answer.Tools, words.DescribedTool{
			Name: t.name, Server: text.Line(t.def.Server, text.MaxName), Description: t.def.Description, InputSchema: t.InputSchema(), Needs: namesOf(needed),
			ReadOnly: v.offers(metaReadOnlyCall) && t.def.ReadOnly(),
		})
	}
	s.nameKnown(described)
	result := s.fit(mcp.NewToolResultText(text.JSON(answer)))
	s.countAnswer(mcp.GetTextFromContent(result.Content[0]))
	return result
}

// answerCall calls the tool that the model named.
func (s *Session) answerCall(ctx context.Context, kind metaKind, args json.RawMessage) (*mcp.CallToolResult, error) {
	passed, err := schema.ParsePassed(args)
	if err == nil && (passed.Name == CallToolName || passed.Name == ReadOnlyCallToolName) {
		err = errors.New("it can't call itself")
	}
	v := s.view()
	if err == nil {
		var check *schema.Validator // of an unknown tool, nothing is known
		if t, _ := v.lookup(passed.Name); t != nil {
			check = s.scope.validators.Of(t.def.InputSchema)
		}
		args, err = passed.Arguments(check)
	}
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(kind, err)), nil
	}
	if t := s.metaNamed(v, passed.Name); t != nil {
		return t.Call(ctx, args)
	}
	return s.callTool(ctx, passed.Name, args, kind == metaReadOnlyCall)
}

// pages holds the cut results of a session.
type pages struct {
	last    int // number of the newest result
	kept    result.Kept
	offered bool // a result was cut since the last Compact
}

// fit returns r, cut to [Options.MaxResult] and [Options.MaxMedia] if it is longer.
// It then keeps the whole text, so that the model can read it page by page.
func (s *Session) fit(r *mcp.CallToolResult) *mcp.CallToolResult {
	number := 0
	notes := result.Notes{Cut: words.LeftOut, LeftOut: words.ContentLeftOut, More: words.MoreLeftOut}
	pages := mayUse(s.rights, PageToolName) && s.canRead()
	if pages {
		notes.Cut = func(from, to, total int) string {
			s.mu.Lock()
			s.pages.last++
			number = s.pages.last
			s.mu.Unlock()
			return words.Cut(pageID(number), from, to, total)
		}
	}
	cut, whole := result.Fit(r, result.Bounds{Text: s.scope.opts.MaxResult, Media: s.scope.opts.MaxMedia}, notes)
	if whole == "" || !pages {
		return cut
	}
	s.mu.Lock()
	first := !s.pages.offered
	if !s.closed {
		s.pages.kept = s.pages.kept.With(s.scope.texts, pageID(number), whole)
		s.pages.offered = true
	}
	s.mu.Unlock()
	if first && s.registrar != nil {
		s.registrar.Sync() // registers the page tool
	}
	return cut
}

// canRead reports whether the model has, or can get, the tool that reads on in a result.
func (s *Session) canRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.told().fixed(s.Disclosure()) || s.metas[metaPage] || s.metas[metaCall]
}

func pageID(number int) string { return fmt.Sprintf("r%d", number) }

// answerPage answers with a part of a cut result.
func (s *Session) answerPage(args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		ID     string  `json:"id"`
		Offset float64 `json:"offset"`
	}
	err := schema.Members(args, &in, "id", func() bool { return in.ID == "" })
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaPage, err))
	}
	s.mu.Lock()
	kept := s.pages.kept
	s.mu.Unlock()
	text, ok := kept.Text(in.ID, saved.PartsOf(s.scope.opts.StateParts).Text)
	if !ok {
		return mcp.NewToolResultError(words.NoPage(in.ID))
	}
	from := int(max(0, min(in.Offset, float64(len(text)))))
	part, next := result.Page(text, from, s.scope.opts.MaxResult)
	return mcp.NewToolResultText(part + words.Page(in.ID, next, len(text)))
}
