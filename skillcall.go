package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/nearest"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// SkillsSection returns the prompt section that lists the skills by name and
// description, as XML; or, of more than [Options.MaxInlineSkills] or
// [Options.MaxSkillTokens], tells the model how many there are and to search for them.
// It is "" without skills. Like all that the model is shown, it only grows at
// its end, until [Session.Compact].
func (s *Session) SkillsSection() string {
	var parts []string
	for _, e := range s.show() {
		if e.kind == shownSkills {
			parts = append(parts, e.offer.skills.section())
		}
	}
	return strings.Join(parts, "\n")
}

// answerSkillSearch answers with the skills that are found.
func (s *Session) answerSkillSearch(args json.RawMessage) *mcp.CallToolResult {
	query, n, err := parseSearchArguments(args, s.m.opts.SearchResults)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSkillSearch, err))
	}
	v := s.view()
	answer := skillAnswer{Skills: []foundSkill{}}
	for _, sk := range v.findSkills(query, min(max(n, 1), s.m.opts.SearchLimit)) {
		answer.Skills = append(answer.Skills, foundSkill{sk.Name, text.Line(sk.Description, s.m.opts.MaxDescription)})
	}
	answer.Count = len(answer.Skills)
	answer.Message = textFoundSkills(answer.Count, v.skills.index().HasTerms(query))
	text := text.JSON(answer)
	s.countAnswer(text)
	return mcp.NewToolResultText(text)
}

// A skillAnswer is what the model gets from a search for skills.
type skillAnswer struct {
	Skills  []foundSkill `json:"skills"`
	Count   int          `json:"count"`
	Message string       `json:"message"`
}

type foundSkill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// findSkills returns the skills that best match query, at most n: first those
// that it names, in its order, then best first; those of equal score as they
// were given.
func (v view) findSkills(query string, n int) []*skill {
	var found []*skill
	names, only := namesIn(query)
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

// answerSkillLoad answers with the text of a skill, and makes the tools active
// that it names.
func (s *Session) answerSkillLoad(ctx context.Context, args json.RawMessage) *mcp.CallToolResult {
	var in struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(args, &in)
	switch {
	case err != nil:
		err = text.JSONError(args, err)
	case in.Name == "":
		err = errors.New(`"name" is missing or empty`)
	}
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
		return mcp.NewToolResultError(textNoSkill(in.Name, near, v.offers(metaSkillSearch)))
	}
	body, err := sk.body.Get(ctx)
	if err != nil {
		s.m.opts.Logger.Warn("mcphybrid: a skill could not be loaded", "skill", sk.Name, "error", err)
		return mcp.NewToolResultError(textSkillFailed(sk.Name, err))
	}
	tools, missing := v.toolsOf(sk)
	if v.disclosure != ByBridge {
		active := s.ActivateTools(tools)
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(active, name) })
	}
	return s.fit(mcp.NewToolResultText(textSkill(sk.Name, tools, missing, v.disclosure) + body))
}
