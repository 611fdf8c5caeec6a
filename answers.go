package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/nearest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/words"
)

// answerSearch searches, activates the tools that it finds and answers with them.
func (s *Session) answerSearch(ctx context.Context, args json.RawMessage) *mcp.CallToolResult {
	begun := time.Now()
	query, n, err := parseSearchArguments(args, s.scope.opts.Search.Results, true)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSearch, err))
	}
	v := s.view()
	hits := v.search(ctx, query, SearchOptions{Limit: max(n, 1)}, s.unlisted(v)).Hits
	var found, without []*BridgeTool
	neededBy := make(map[string]string)
	for _, h := range v.andNeeded(hits, s.scope.opts.Search.Limit) {
		found = append(found, h.Tool)
		if h.NeededBy != nil {
			neededBy[h.Tool.name] = h.NeededBy.name
		}
	}
	if v.disclosure != ByBridge {
		// Only these: the limit also bounds activations.
		found, without = s.activate(namesOf(found))
		if !mayUse(v.rights, CallToolName) {
			without = nil
		}
		found = append(found, without...)
	}
	s.nameKnown(found)
	answer := words.SearchAnswer{Tools: make([]words.FoundTool, len(found)), Count: len(found)}
	left := s.scope.opts.Search.Schemas
	for i, f := range found {
		answer.Tools[i] = words.FoundTool{
			Name:         f.name,
			OriginalName: text.Line(f.def.Own, s.scope.opts.Prompt.MaxDescription),
			Server:       text.Line(f.def.Server, text.MaxName),
			Description:  text.Line(f.def.Description, s.scope.opts.Prompt.MaxDescription),
			NeededBy:     neededBy[f.name],
			ReadOnly:     v.offers(metaReadOnlyCall) && f.def.ReadOnly(),
		}
		if v.disclosure == ByBridge && len(f.InputSchema()) <= left {
			answer.Tools[i].InputSchema = f.InputSchema()
			left -= len(answer.Tools[i].InputSchema)
		}
	}
	callable := v.callable(query)
	if len(found) == 0 && callable == nil {
		callable = v.callableFor(ctx, query)
	}
	readOnly := slices.ContainsFunc(answer.Tools, func(t words.FoundTool) bool { return t.ReadOnly })
	answer.Message = words.Search{
		Found: len(found), ReadOnly: readOnly, ByBridge: v.disclosure == ByBridge, ByProvider: v.disclosure == ByProvider && !v.loads, Client: v.client,
		Keywords: v.hasTerms(query), Callable: callable, Without: namesOf(without), Connecting: s.scope.manager.connectingServers(v.rights),
	}.Message()
	text := text.JSON(answer)
	s.countSearch(len(found))
	s.countAnswer(text)
	s.tell(Event{Kind: EventSearch, Query: query, Tools: namesOf(found), Took: time.Since(begun)})
	result := mcp.NewToolResultText(text)
	if listed := s.listedNames(found); v.disclosure == ByProvider && len(listed) > 0 && len(without) == 0 {
		result.Meta = &mcp.Meta{AdditionalFields: map[string]any{foundKey: foundDeferred(listed)}}
	}
	return result
}

// listedNames returns the names of those tools that the beginning of the conversation has,
// or would have. Those that came later are added when they become active.
func (s *Session) listedNames(found []*BridgeTool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told()
	if !told.begun {
		return namesOf(found)
	}
	listed := make(map[string]bool)
	for _, e := range s.shown[:min(int(told.base), len(s.shown))] {
		listed[e.toolName()] = e.isTool()
	}
	return namesOf(slices.DeleteFunc(slices.Clone(found), func(t *BridgeTool) bool { return !listed[t.name] }))
}

// unlisted returns a function that reports whether a tool is missing in the
// model's list. Deferred tools are. With ByBridge, so are inline tools that came
// after the list was fixed. What a search of OpenAI's has loaded can be loaded again: the
// host may have taken the answer out of the conversation.
func (s *Session) unlisted(v *view) func(*BridgeTool, standing) bool {
	may := v.deferredTools()
	if v.disclosure != ByBridge && !v.loads && !v.fixed {
		return may
	}
	s.mu.Lock()
	list := s.shown
	s.mu.Unlock()
	told := make(map[string]bool)
	for _, e := range list {
		if e.isTool() && !(v.loads && e.slot == asDeferred) {
			told[e.tool.name] = true
		}
	}
	if v.loads {
		return func(t *BridgeTool, st standing) bool { return st.Searchable() && !told[t.name] }
	}
	if v.disclosure != ByBridge { // the model has no way to others
		return func(t *BridgeTool, st standing) bool { return may(t, st) && told[t.name] }
	}
	return func(t *BridgeTool, st standing) bool { return may(t, st) || st == inline && !told[t.name] }
}

// callable returns the registered names of the inline and active tools that query
// names. They need no search.
func (v *view) callable(query string) []string {
	names, _ := queryNames(query)
	var callable []string
	for _, t := range slices.Concat(v.inline, v.active) {
		if slices.Contains(names, t.name) || slices.Contains(names, t.def.Own) {
			callable = append(callable, t.name)
		}
	}
	return callable
}

// callableFor returns the registered names of the inline and active tools that best
// match query.
func (v *view) callableFor(ctx context.Context, query string) (names []string) {
	active := v.activeInList()
	for _, h := range v.search(ctx, query, SearchOptions{Limit: maxNearest, By: ByWords}, func(t *BridgeTool, st standing) bool { return st == inline || active[t] }).Hits {
		names = append(names, h.Tool.name)
	}
	return names
}

// parseSearchArguments returns the query and the number of results, which is
// standard if args have none. The number may be any, even negative. A fraction is
// cut off.
func parseSearchArguments(args json.RawMessage, standard int, required bool) (query string, n int, err error) {
	var in struct {
		Query      string   `json:"query"`
		MaxResults *float64 `json:"max_results"`
	}
	err = schema.Members(args, &in, "query", func() bool { return required && strings.TrimSpace(in.Query) == "" })
	switch {
	case err != nil:
		return "", 0, err
	case len(in.Query) > maxQueryBytes:
		return "", 0, fmt.Errorf(`"query" has %d bytes, more than the limit of %d`, len(in.Query), maxQueryBytes)
	case in.MaxResults == nil:
		return in.Query, standard, nil
	}
	// Keep the number within an int, so that the conversion is defined.
	return in.Query, int(math.Max(math.MinInt32, math.Min(math.MaxInt32, *in.MaxResults))), nil
}

// SkillsSection returns the prompt section that lists the skills by name and
// description, as XML. If they exceed [SkillListingOptions.Max] or
// [SkillListingOptions.MaxTokens], it says how many there are and how to search for them.
// It is "" without skills. It only grows at its end, until [Session.Compact].
func (s *Session) SkillsSection() string {
	var parts []string
	for _, e := range s.show() {
		if e.section == skillText {
			parts = append(parts, e.offer.skills.section())
		}
	}
	return strings.Join(parts, "\n")
}

// answerSkillSearch searches for skills and answers with them.
func (s *Session) answerSkillSearch(args json.RawMessage) *mcp.CallToolResult {
	query, n, err := parseSearchArguments(args, s.scope.opts.Search.Results, true)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSkillSearch, err))
	}
	v := s.view()
	answer := words.SkillAnswer{Skills: []words.FoundSkill{}}
	for _, sk := range v.findSkills(query, min(max(n, 1), s.scope.opts.Search.Limit)) {
		answer.Skills = append(answer.Skills, words.FoundSkill{Name: sk.Name, Description: text.Line(sk.Description, s.scope.opts.Prompt.MaxDescription)})
	}
	answer.Count = len(answer.Skills)
	answer.Message = words.FoundSkills(answer.Count, v.skills.index().HasTerms(query))
	text := text.JSON(answer)
	s.countAnswer(text)
	return mcp.NewToolResultText(text)
}

// findSkills returns at most n skills: first those that query names, in the order
// of query, then those that match it best, best first. Skills of equal score are
// in the order given.
func (v *view) findSkills(query string, n int) []*skill {
	var found []*skill
	names, only := queryNames(query)
	for _, name := range names {
		if sk := v.skill(name); sk != nil && !slices.Contains(found, sk) {
			found = append(found, sk)
		}
	}
	if !only {
		named := len(found)
		may := func(doc int) bool {
			sk := v.skills.list[doc]
			return v.skill(sk.Name) != nil && !slices.Contains(found[:named], sk)
		}
		for _, match := range v.skills.index().Search(query, n, may) {
			found = append(found, v.skills.list[match.Doc])
		}
	}
	return found[:min(n, len(found))]
}

// answerSkillLoad answers with the text of a skill and activates the tools that
// the skill names.
func (s *Session) answerSkillLoad(ctx context.Context, args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		Name string `json:"name"`
	}
	err := schema.Members(args, &in, "name", func() bool { return in.Name == "" })
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSkillLoad, err))
	}
	in.Name = in.Name[:min(len(in.Name), maxAskedName)]
	v := s.view()
	sk := v.skill(in.Name)
	if sk == nil {
		near := nearest.Names(in.Name, func(yield func(string) bool) {
			for _, sk := range v.mySkills().list {
				if !yield(sk.Name) {
					return
				}
			}
		}, maxNearest)
		return mcp.NewToolResultError(words.NoSkill(in.Name, near, v.offers(metaSkillSearch)))
	}
	body, err := sk.body.Get(ctx)
	if err != nil {
		s.scope.opts.Logger.Warn("mcphybrid: loading a skill failed", "skill", sk.Name, "error", err)
		return mcp.NewToolResultError(words.SkillFailed(sk.Name, err))
	}
	tools, missing := v.toolsOf(sk)
	var without []string
	if v.disclosure != ByBridge {
		callable, full := s.activate(s.withNeeded(tools))
		tools = slices.DeleteFunc(tools, func(name string) bool { return !isNamed(callable, name) })
		if mayUse(v.rights, CallToolName) {
			without = namesOf(full)
		}
	}
	s.nameKnown(v.toolsNamed(slices.Concat(tools, without)))
	return s.fit(mcp.NewToolResultText(words.Skill(sk.Name, tools, without, missing, v.disclosure == ByBridge) + body))
}
