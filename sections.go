package mcphybrid

// How the items of a session's list (list.go) become the text of the prompt sections, whose words prompt.go has.

import (
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// written updates the list of items and returns its text. It writes only what follows
// the shared prefix, whose text is kept.
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
// on search if search is set, and if both are, skills and what the call tool can call. A blank line
// precedes each heading.
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
	return sectionText{guide: textExample("", plainExample), heading: textToolsHeading}
}

// searchNamed returns a function that has a text of ours name the search tool as the model
// has it, and how that reads the instructions of a server: OpenAI's has tools only.
func (s *Session) searchNamed() (named func(string) string, more string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transcriptCopy().loads {
		return textForToolSearch, ""
	}
	return func(text string) string { return text }, textGistMore
}

// isWanted reports whether a section belongs to the text on inline tools, on search, or both.
func (in section) isWanted(inline, search bool) bool {
	switch in {
	case guideText, inlineLines:
		return inline
	case skillText, callableText, activeText:
		return inline && search
	}
	return in > plainTool && search
}

// write adds the text of further items.
func (s *Session) write(to *sectionText, list []listItem, inline, search bool) {
	var b strings.Builder
	named, more := s.searchNamed()
	for _, e := range list {
		in := e.section
		if in == exampleText {
			if example, ok := schema.ExampleOf(e.tool.def.InputSchema); ok {
				to.guide = textExample(e.tool.name, example)
			}
			continue
		}
		if !in.isWanted(inline, search) {
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
			b.WriteString(textGuide)
		case in == searchText:
			if e.slot == asMeta {
				b.WriteString(named(textSearchHeading))
			}
			most := s.tenant.opts.Prompt.MaxSummaryTokens
			summary := e.mentions.summarize(most, s.tenant.tokens)
			b.WriteString(summary)
			if e.slot == asMeta {
				first, steps := textNotShown, textStepsActive
				if summary == "" {
					first = textAllShown
				}
				if s.Disclosure() == ByBridge {
					steps = textStepsBridge
				}
				b.WriteString(named(first + steps))
				if s.tenant.opts.JustInTime != nil && s.Disclosure() != ByBridge {
					b.WriteString(textJustInTime)
				}
			}
			b.WriteString(e.mentions.servers.gists(textGistHeading+more, most, summary, s.tenant.tokens))
		case in == skillText:
			b.WriteString(e.mentions.skills.section())
		case in == callableText:
			if to.open != in {
				b.WriteString(textCallableHeading)
			}
			b.WriteString(textCallableLine(e.meta))
		case in == activeText:
			if to.open != in {
				b.WriteString(textActiveHeading)
			}
			b.WriteString(textDefinition(e.tool))
		case in == inlineLines && to.open != in:
			b.WriteString(to.heading + to.guide)
			to.heading, to.guide = textMoreToolsHeading, ""
		case in == summaryLines && to.open != in:
			b.WriteString(named(textSummaryHeading))
		}
		to.open = in
		switch {
		case e.hasLine():
			b.WriteString(textLine(e.tool, e.line, s.tenant.opts.Prompt.MaxDescription))
		case in == inlineLines || in == summaryLines:
			b.WriteString(e.mentions.servers.counts())
		}
	}
	if b.Len() > 0 {
		to.text = b.String()
	}
}
