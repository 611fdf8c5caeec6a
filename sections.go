package mcphybrid

import (
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/words"
)

// section returns the text of the skills section.
func (o *skillOffer) section() string {
	if len(o.Listed) == 0 {
		more := ""
		if o.More {
			more = "more "
		}
		return words.SkillSearchHeading + words.AboutSkills + fmt.Sprintf("%d %sskills are available that are not listed here. `skill_search` finds them:\n", o.Count, more) + words.SkillSearchSteps
	}
	var b strings.Builder
	if o.More {
		b.WriteString(words.MoreSkillsHeading)
	} else {
		b.WriteString(words.SkillsHeading + "\n")
	}
	b.WriteString("<available_skills>\n")
	for _, sk := range o.Listed {
		b.WriteString(sk.element)
	}
	b.WriteString("</available_skills>\n")
	return b.String()
}

// InlineSection returns the prompt section on the inline tools. By default it tells the
// model to prefer them and to leave out optional parameters, and does not change. It is
// "" if the session began with inline tools of fewer than 2,200 tokens, of which it
// would be more than 3 %. With [PromptOptions.ListInline], it lists the tools too, and
// grows at its end only, until [Session.Compact].
func (s *Session) InlineSection() string {
	return strings.TrimPrefix(s.written(true, false), "\n\n")
}

// SearchSection returns the prompt section on the search tool: how to use it and
// which servers it covers. It is "" if the session does not offer the search tool.
// Activation does not change it.
func (s *Session) SearchSection() string {
	return strings.TrimPrefix(s.written(false, true), "\n\n")
}

// PromptSections returns the sections to append to a system prompt:
// [Session.InlineSection], [Session.SearchSection] in search mode, and
// [Session.SkillsSection] if there are skills. A blank line precedes each. It
// returns "" for a mode other than [PromptFull], and without tools and skills.
//
// Equal catalogs and skills give equal bytes. Later calls return the same text,
// with new tools and skills at its end, until [Session.Compact].
func (s *Session) PromptSections(mode PromptMode) string {
	if mode != PromptFull {
		return ""
	}
	return s.written(true, true)
}

// written updates the list of items and returns its text. It writes only what follows
// the prompt prefix, whose text is kept.
func (s *Session) written(inline, search bool) string {
	s.mu.Lock()
	list, o := s.updateShown(s.viewLocked()), s.prefix
	s.mu.Unlock()
	return s.textOf(list, o, inline, search)
}

// textOf returns the text of list, which begins with o unless that is nil.
func (s *Session) textOf(list []listItem, o *promptPrefix, inline, search bool) string {
	if o == nil || o.own || list == nil {
		return s.sections(list, inline, search)
	}
	kept := &o.texts[0]
	switch {
	case !inline:
		kept = &o.texts[1]
	case !search:
		kept = &o.texts[2]
	}
	if kept.Load() == nil { // writing calls the host's counter: no session waits for another
		first := noText()
		s.write(&first, o.items, inline, search)
		kept.CompareAndSwap(nil, &first)
	}
	to := *kept.Load()
	s.write(&to, list[len(o.items):], inline, search)
	return to.text
}

// sections returns the text of list: the lines of inline tools if inline is set, those
// on search if search is set, and skills if both are. A blank line precedes each
// heading.
func (s *Session) sections(list []listItem, inline, search bool) string {
	to := noText()
	s.write(&to, list, inline, search)
	return to.text
}

// A sectionText is the text of items, and what the text of further ones depends on.
type sectionText struct {
	text           string
	guide, heading string  // of the next inline tools
	open           section // the last one with text
}

func noText() sectionText {
	return sectionText{guide: words.Example("", words.PlainExample), heading: words.ToolsHeading}
}

// searchNamed returns a function that has a text of ours name the search tool as the model
// has it.
func (s *Session) searchNamed() func(string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told().loads {
		return words.ForToolSearch
	}
	return func(text string) string { return text }
}

// write adds the text of further items.
func (s *Session) write(to *sectionText, list []listItem, inline, search bool) {
	var b strings.Builder
	named := s.searchNamed()
	for _, e := range list {
		in := e.section
		if in == exampleText {
			if example, ok := schema.ExampleOf(e.tool.def.InputSchema); ok {
				to.guide = words.Example(e.tool.name, example)
			}
			continue
		}
		of := in == guideText || in == inlineLines
		if in <= plainTool || of && !inline || !of && !search || (in == skillText || in == callableText) && !inline {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(to.text)
		}
		if in != to.open || in == searchText || in == skillText {
			if b.Len() == 0 {
				b.WriteByte('\n')
			}
			b.WriteByte('\n')
		}
		switch {
		case in == guideText:
			b.WriteString(words.Guide)
		case in == searchText:
			if e.slot == asMeta {
				b.WriteString(named(words.SearchHeading))
			}
			b.WriteString(e.offer.servers.Summary(s.scope.opts.Prompt.MaxSummaryTokens, s.scope.tokens))
			if e.slot == asMeta {
				steps := words.StepsActive
				if s.Disclosure() == ByBridge {
					steps = words.StepsBridge
				}
				b.WriteString(named(steps))
				if s.scope.opts.JustInTime != nil && s.Disclosure() != ByBridge {
					b.WriteString(textJustInTime)
				}
			}
		case in == skillText:
			b.WriteString(e.offer.skills.section())
		case in == callableText:
			if to.open != in {
				b.WriteString(words.CallableHeading)
			}
			b.WriteString(words.CallableLine(int(e.meta)))
		case in == inlineLines && to.open != in:
			b.WriteString(to.heading + to.guide)
			to.heading, to.guide = words.MoreToolsHeading, ""
		case in == summaryLines && to.open != in:
			b.WriteString(named(words.SummaryHeading))
		}
		to.open = in
		switch {
		case e.hasLine():
			b.WriteString(textLine(e.tool, e.line, s.scope.opts.Prompt.MaxDescription))
		case in == inlineLines || in == summaryLines:
			b.WriteString(e.offer.servers.Counts())
		}
	}
	if b.Len() > 0 {
		to.text = b.String()
	}
}
