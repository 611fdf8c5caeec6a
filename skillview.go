package mcphybrid

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/nearest"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// SkillListingOptions say up to when the prompt section lists skills. With more
// of either, the model gets [SkillSearchToolName] instead, unless
// [Options.Access] denies it.
type SkillListingOptions struct {
	// Max is the largest number of skills that are listed. It defaults to
	// 60 ([DefaultMaxInlineSkills]).
	Max int

	// MaxTokens is the largest number of tokens of the section, estimated as a
	// quarter of its characters. It defaults to 5,000 ([DefaultMaxSkillTokens]).
	MaxTokens int
}

// textAboutSkills says what skills are.
const textAboutSkills = "A skill is a text of instructions for one kind of task. "

// textSkillsHeading stands above the list of skills.
const textSkillsHeading = "## Skills\n\n" + textAboutSkills +
	"When a task fits the description of one of these, load it with `skill_load` before you begin, and do the task as it says.\n"

// textMoreSkillsHeading stands above skills that were added.
const textMoreSkillsHeading = "## More Skills\n\n"

// textSkillSearchHeading and textSkillSearchSteps say how to find skills.
const textSkillSearchHeading = "## Skills (use skill_search to discover)\n\n"

const textSkillSearchSteps = "1. Before you begin a task that such instructions may exist for, call `skill_search` with a few descriptive keywords.\n" +
	"2. Load the skill that fits with `skill_load`, and do the task as it says.\n" +
	"3. If it finds nothing, go on without.\n"

// textSkillElement returns the line of one skill in the section.
func textSkillElement(name, description string) string {
	return "<skill><name>" + name + "</name><description>" + escapeXML.Replace(text.Line(description, maxSkillDescription)) + "</description></skill>\n"
}

// escapeXML leaves quotes alone: a text needs no escapes for them.
var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// textSkill stands before the text of a skill. tools are the tools of the skill
// that the model can use now; without are those for which its list has no room; missing
// are names in the skill that no tool has.
func textSkill(name string, tools, without, missing []string, bridge bool) string {
	line := "Skill " + name + "."
	switch {
	case len(tools) > 0 && bridge:
		line += " It uses these tools, which mcp_tool_describe describes and mcp_tool_call calls: " + strings.Join(tools, ", ") + "."
	case len(tools) > 0:
		line += " It uses these tools, which are active now: " + strings.Join(tools, ", ") + "."
	}
	if len(without) > 0 {
		line += " It also uses these, for which the tool list has no room; mcp_tool_describe describes them and mcp_tool_call calls them: " + strings.Join(without, ", ") + "."
	}
	if len(missing) > 0 {
		line += " It also names tools that are not there; do what you can without them: " + strings.Join(missing, ", ") + "."
	}
	return line + "\n\n"
}

// A skillView holds the skills that sessions with equal rights may use.
type skillView struct {
	list []*skill // in the order of the set
	fit  bool     // the prompt has room to list them

	// Of a set with skills of servers:
	served  map[*skill]bool // those of servers
	hostFit bool            // the prompt has room to list the host's
}

// view returns the skills that r permits.
func (set *skillSet) view(r rules.Rights) *skillView {
	key := fmt.Sprintf("%q", r)
	if kept, ok := set.views.Load(key); ok {
		return kept.(*skillView)
	}
	v := &skillView{list: set.list}
	if len(r) > 0 {
		v.list = slices.DeleteFunc(slices.Clone(set.list), func(sk *skill) bool { return !r.PermitName(sk.Name) })
	}
	v.fit = set.fits(v.list)
	if set.viewed.Add(1) <= maxPromptPrefixes {
		set.views.Store(key, v)
	}
	return v
}

// fits reports whether the prompt has room to list these.
func (set *skillSet) fits(list []*skill) bool {
	return len(list) <= set.maxInline && utf8.RuneCountInString((&skillsText{Listed: list}).section())/4 <= set.maxTokens
}

// mySkills returns the skills that the session may load.
func (v *view) mySkills() *skillView {
	if v.skills == nil || len(v.skills.list) == 0 || !mayUse(v.rights, SkillLoadToolName) {
		return &skillView{}
	}
	if v.skills.served {
		return v.withServed()
	}
	return v.skills.view(v.skillRights)
}

// hasSkills reports whether there are skills that the session may load.
func (v *view) hasSkills() bool { return len(v.mySkills().list) > 0 }

// loadsSkills reports whether there are skills that the session may load, or a server that may
// have some without listing them.
func (v *view) loadsSkills() bool {
	return v.hasSkills() || v.skilled && mayUse(v.rights, SkillLoadToolName)
}

// searchesSkills reports whether the model must search for skills, since there are
// too many to list. A session that may not search lists them all. The model of an MCP client
// may not be shown a list, and searches if there are skills of servers.
func (v *view) searchesSkills() bool {
	mine := v.mySkills()
	return len(mine.list) > 0 && (!mine.fit || v.client && len(mine.served) > 0) && mayUse(v.rights, SkillSearchToolName)
}

// skill returns the skill with that name if the session may load it, or nil.
func (v *view) skill(name string) *skill {
	return v.skillOf(v.mySkills(), name)
}

// skillOf is skill for who has mySkills. Making these takes as long as there are skills, and
// of sessions with many different rights they are not kept.
func (v *view) skillOf(mine *skillView, name string) *skill {
	if len(mine.list) == 0 {
		return nil
	}
	sk := v.skills.byName[name]
	if sk != nil && (mine.served[sk] || sk.served == nil && v.skillRights.PermitName(name)) {
		return sk
	}
	return nil
}

// toolsOf returns the registered names of the tools that sk names and the session
// may use, each once. missing are the names without such a tool.
func (v *view) toolsOf(sk *skill) (names, missing []string) {
	add := func(t *BridgeTool) {
		if !slices.Contains(names, t.name) && len(names) < maxSkillTools {
			names = append(names, t.name)
		}
	}
	for _, name := range sk.Tools {
		if sk.served != nil {
			if !v.addServed(sk, name, add) {
				missing = append(missing, cmp.Or(text.Line(name, text.MaxName), "?"))
			}
			continue
		}
		if t, _ := v.lookup(name); t != nil {
			add(t)
			continue
		}
		found := false
		for t, st := range v.each() {
			if t.def.Own == name && st != hidden {
				found = true
				add(t)
			}
		}
		if !found {
			missing = append(missing, cmp.Or(text.Line(name, text.MaxName), "?"))
		}
	}
	return names, missing
}

// A skillsText is what a skills section tells the model.
type skillsText struct {
	Listed []*skill // the skills to list
	Count  int      // number of skills to search for beside these
	More   bool     // earlier sections listed others
}

// newSkills returns what is said of new skills for a model that was shown list, or nil
// if there are none.
func (v *view) newSkills(list []listItem) *skillsText {
	told, searched := make(map[string]bool), false
	var served []*skill // that were told, then the new ones too
	for _, e := range list {
		if e.section != skillText {
			continue
		}
		if len(e.mentions.skills.Listed) == 0 {
			return nil // the model searches, which also finds new skills
		}
		searched = searched || e.mentions.skills.Count > 0 // for those of servers
		for _, sk := range e.mentions.skills.Listed {
			told[sk.Name] = true
			if sk.server() != "" {
				served = append(served, sk)
			}
		}
	}
	o, mine := &skillsText{More: len(told) > 0}, v.mySkills()
	for _, sk := range mine.list {
		if !told[sk.Name] && !(searched && sk.served != nil) {
			o.Listed = append(o.Listed, sk)
		}
	}
	hosts := slices.DeleteFunc(slices.Clone(o.Listed), func(sk *skill) bool { return sk.served != nil })
	news := len(o.Listed) - len(hosts) // of servers
	served = append(served, slices.DeleteFunc(slices.Clone(o.Listed), func(sk *skill) bool { return sk.served == nil })...)
	if news > 0 && !v.searchesSkills() && !v.skills.fits(served) {
		o.Listed, news = hosts, 0 // who lists others again and again must not fill a conversation
	}
	switch {
	case len(o.Listed) == 0:
		return nil
	case news > 0 && mine.hostFit && v.searchesSkills():
		o.Count, o.Listed = news, hosts // servers push out none of the host's
	case news == 0 && mine.hostFit: // as without servers
	case v.searchesSkills():
		o.Count, o.Listed = len(o.Listed), nil
	}
	return o
}

func (o *skillsText) save() *saved.Skills {
	kept := &saved.Skills{Count: o.Count, More: o.More}
	for _, sk := range o.Listed {
		kept.Listed = append(kept.Listed, saved.Skill{Name: sk.Name, Description: sk.Description, Server: sk.server(), URI: sk.uri()})
	}
	return kept
}

// restoreSkills returns what was saved without the skills that the session may not
// load, or nil if none is left. It reports those, and those that are missing or
// have changed.
func (v *view) restoreSkills(o *saved.Skills, report func(name string)) (*skillsText, error) {
	restored, seen := &skillsText{Count: max(o.Count, 0), More: o.More}, make(map[string]bool)
	if !mayUse(v.rights, SkillLoadToolName) {
		return nil, nil
	}
	mine := v.mySkills()
	for _, e := range o.Listed {
		name := e.Name
		if e.Server != "" && text.IsSafeName(name) && len(e.URI) <= resources.MaxURI {
			name = "a" // names of servers' skills are as those of tools
		}
		if err := (&Skill{Name: name, Description: e.Description, Body: "-"}).Validate(); err != nil {
			return nil, fmt.Errorf("the skill %q: %w", text.Line(e.Name, text.MaxName), err)
		}
		sk := v.skillOf(mine, e.Name)
		if sk == nil || sk.Description != e.Description || sk.server() != e.Server {
			report(e.Name)
			sk = awaySkill(e)
		}
		if v.permitsAway(mine, sk) && !seen[e.Name] {
			seen[e.Name] = true
			restored.Listed = append(restored.Listed, sk)
		}
	}
	if len(restored.Listed) == 0 && (restored.Count == 0 || len(o.Listed) > 0) {
		return nil, nil
	}
	return restored, nil
}

// section returns the text of the skills section.
func (o *skillsText) section() string {
	if len(o.Listed) == 0 {
		more := ""
		if o.More {
			more = "more "
		}
		return textSkillSearchHeading + textAboutSkills + fmt.Sprintf("%d %sskills are available that are not listed here. `skill_search` finds them:\n", o.Count, more) + textSkillSearchSteps
	}
	var b strings.Builder
	if o.More {
		b.WriteString(textMoreSkillsHeading)
	} else {
		b.WriteString(textSkillsHeading + "\n")
	}
	b.WriteString("<available_skills>\n")
	for _, sk := range o.Listed {
		b.WriteString(sk.element)
	}
	b.WriteString("</available_skills>\n")
	if slices.ContainsFunc(o.Listed, func(sk *skill) bool { return sk.server() != "" }) {
		b.WriteString(textServedSkills)
	}
	if o.Count > 0 {
		fmt.Fprintf(&b, textServedSearch, o.Count)
	}
	return b.String()
}

// answerSkillSearch searches for skills and answers with them.
func (s *Session) answerSkillSearch(args json.RawMessage) *mcp.CallToolResult {
	query, n, err := parseSearchArguments(args, s.tenant.opts.Search.Results, true)
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSkillSearch, err))
	}
	v := s.view()
	answer := skillAnswer{Skills: []foundSkill{}}
	for _, sk := range v.findSkills(query, min(max(n, 1), s.tenant.opts.Search.Limit)) {
		answer.Skills = append(answer.Skills, foundSkill{Name: sk.Name, Server: text.Line(sk.server(), text.MaxName), Description: text.Line(sk.Description, s.tenant.opts.Prompt.MaxDescription)})
	}
	answer.Count = len(answer.Skills)
	answer.Message = textFoundSkills(answer.Count, v.skills.index().HasTerms(query))
	if slices.ContainsFunc(answer.Skills, func(f foundSkill) bool { return f.Server != "" }) {
		answer.Message += textFoundServed
	}
	text := text.JSON(answer)
	s.countAnswer(text)
	return mcp.NewToolResultText(text)
}

// findSkills returns at most n skills: first those that query names, in the order
// of query, then those that match it best, best first. Skills of equal score are
// in the order given.
func (v *view) findSkills(query string, n int) []*skill {
	var found []*skill
	mine := v.mySkills()
	names, only := queryNames(query)
	for _, name := range names {
		if sk := v.skillOf(mine, name); sk != nil && !slices.Contains(found, sk) {
			found = append(found, sk)
		}
	}
	if !only {
		named := len(found)
		may := func(doc int) bool {
			sk := v.skills.list[doc]
			return v.skillOf(mine, sk.Name) != nil && !slices.Contains(found[:named], sk)
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
		Name   string `json:"name"`
		Server string `json:"server"`
	}
	err := schema.Members(args, &in, "name", func() bool { return in.Name == "" })
	if err != nil {
		return mcp.NewToolResultError(textBadMeta(metaSkillLoad, err))
	}
	var sk *skill
	if strings.Contains(in.Name, "://") {
		if sk, err = s.skillAt(ctx, in.Server, in.Name); err != nil {
			return mcp.NewToolResultError(textSkillFailed(in.Name, err))
		}
	}
	in.Name = in.Name[:min(len(in.Name), maxAskedName)]
	v := s.view()
	if sk == nil {
		sk = v.skill(in.Name)
	}
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
	body, err := s.skillText(ctx, sk)
	if err != nil {
		s.tenant.opts.Logger.Warn("mcphybrid: loading a skill failed", "skill", sk.Name, "error", err)
		return mcp.NewToolResultError(textSkillFailed(sk.Name, err))
	}
	tools, missing := v.toolsOf(sk)
	var without []string
	if v.disclosure != ByBridge {
		callable, full := s.activate(s.view().withNeeded(tools))
		tools = slices.DeleteFunc(tools, func(name string) bool { return !isNamed(callable, name) })
		if mayUse(v.rights, CallToolName) {
			without = namesOf(full)
		}
	}
	s.nameKnown(v.toolsNamed(slices.Concat(tools, without)))
	head := textSkill(sk.Name, tools, without, missing, v.disclosure == ByBridge)
	if sk.served != nil {
		head = textServedSkill(sk.served, v.offers(metaResourceRead)) + head
	}
	return s.truncate(mcp.NewToolResultText(head + body))
}

// A skillAnswer is the answer to a search for skills.
type skillAnswer struct {
	Skills  []foundSkill `json:"skills"`
	Count   int          `json:"count"`
	Message string       `json:"message"`
}

// A foundSkill is a skill that a search found.
type foundSkill struct {
	Name        string `json:"name"`
	Server      string `json:"server,omitempty"` // that has it, if it is not the host's
	Description string `json:"description"`
}

// textFoundSkills says what to do with so many skills that were found. keywords reports
// whether the query had any.
func textFoundSkills(found int, keywords bool) string {
	switch {
	case found > 0:
		return "Load the skill that fits with skill_load before you begin. If none does, go on without."
	case !keywords:
		return "There is no keyword in the query. Search again with words for the task, such as \"review code\"."
	}
	return "No skill matches. Go on without, or search again with other keywords."
}
