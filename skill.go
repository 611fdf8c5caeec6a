package mcphybrid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/foreign"
	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/skills"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/words"
	"github.com/mcphybrid/mcphybrid/search"
)

// A Skill is a text of instructions for one kind of task. The prompt lists the
// names and descriptions of the skills. If there are too many, the model searches
// for them instead. It loads the text of a skill when it needs it. See
// [Options.Skills] and, for skills in files, LoadSkills of the package files.
type Skill struct {
	// Name is the name by which the model loads the skill: 1 to 64 lower-case
	// ASCII letters, digits and hyphens, without a hyphen at either end.
	Name string

	// Description says what the skill is for and when to use it, in at most
	// 1,024 characters. Before it loads a skill, the model knows nothing else
	// of it.
	Description string

	// Tools are the tools that the skill needs, at most 32. Each entry is a
	// registered name, or an own name, which stands for the tools of all
	// servers with that name. Loading the skill activates them. It skips the
	// tools that are missing or not permitted and tells the model so.
	// [Manager.Problems] reports names that no server has.
	Tools []string

	// Body is the text, at most 1 MiB.
	Body string

	// Load, if not nil, returns the text instead of Body. It is called when a
	// model first loads the skill, once for all sessions that wait for it, and
	// must return when ctx ends, which happens after [ServerLimits.CallTimeout].
	//
	// The text is cached for ten minutes. After five, the next use loads it
	// again in the background. Errors are not cached.
	Load func(ctx context.Context) (string, error)
}

// skillLifetime is how long the text of a skill stays fresh.
const skillLifetime = 5 * time.Minute

// A skill is a [Skill] of a Manager.
type skill struct {
	Skill
	element string // its line in the section
	body    *lazy.Value[string]
}

// A skillSet is one version of the skills that a Manager has. It must not be
// changed once it is published.
type skillSet struct {
	version  uint64
	list     []*skill // in the order given
	byName   map[string]*skill
	problems []error // one for each rejected skill
	index    func() ranker

	maxInline int
	maxTokens int
	views     sync.Map     // *skillView by rights
	viewed    atomic.Int32 // number of views made
}

var noSkills = &skillSet{index: func() ranker { return nothing }}

// A skillShelf holds the skills of a Manager.
type skillShelf struct {
	cur atomic.Pointer[skillSet] // never nil; stored with Manager.mu held, and by close

	mu      sync.Mutex     // guards the texts
	loading sync.WaitGroup // counts the loads of texts
}

// close waits until no text is being loaded. The Manager's life has ended by then.
func (s *skillShelf) close() {
	s.mu.Lock()
	s.cur.Store(noSkills)
	s.mu.Unlock() // no load begins after this
	s.loading.Wait()
}

// newSkillSet returns the set of list, with the version after the current one.
func (s *scope) newSkillSet(list []Skill) *skillSet {
	set := &skillSet{
		version: s.skills.cur.Load().version + 1, byName: make(map[string]*skill, len(list)),
		maxInline: s.opts.SkillListing.Max, maxTokens: s.opts.SkillListing.MaxTokens,
	}
	for i, given := range list {
		err := skills.Skill(given).Check()
		if err == nil && set.byName[given.Name] != nil {
			err = fmt.Errorf("an earlier skill has this name: %w", ErrDuplicate)
		}
		if err != nil {
			set.problems = append(set.problems, text.Bounded(fmt.Errorf("mcphybrid: skill %d, %q: %w", i+1, given.Name, err)))
			continue
		}
		given.Tools = slices.Clone(given.Tools)
		sk := &skill{Skill: given, element: words.SkillElement(given.Name, given.Description)}
		sk.body = &lazy.Value[string]{
			Load: s.loadSkill(sk), Keep: skillLifetime, Life: s.life, Ended: ErrClosed, Run: s.skills.loading.Go, Mu: &s.skills.mu,
		}
		set.list = append(set.list, sk)
		set.byName[sk.Name] = sk
	}
	set.index = sync.OnceValue(func() ranker { return s.newSkillIndex(set.list) })
	return set
}

// loadSkill returns the function that loads the text of sk.
func (s *scope) loadSkill(sk *skill) func(context.Context) (string, error) {
	return func(ctx context.Context) (text string, err error) {
		if sk.Load == nil {
			return strings.ToValidUTF8(sk.Body, "\ufffd"), nil
		}
		ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.CallTimeout)
		defer cancel()
		if text, err = foreign.Detached(ctx, "its Load", func() (string, error) { return sk.Load(ctx) }); err != nil {
			return "", err
		}
		return strings.ToValidUTF8(text, "\ufffd"), skills.CheckBody(text)
	}
}

// newSkillIndex returns an index of skills. It indexes them like tools.
func (s *scope) newSkillIndex(list []*skill) ranker {
	return s.indexer.index(nil, len(list),
		func(doc int) string { return list[doc].Name + " " + list[doc].Description },
		func(doc int) *search.Document {
			return &search.Document{Name: list[doc].Name, Description: list[doc].Description}
		})
}

// A skillView holds the skills that sessions with equal rights may use.
type skillView struct {
	list []*skill // in the order of the set
	fit  bool     // the prompt has room to list them
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
	if len(v.list) <= set.maxInline {
		section := (&skillOffer{Listed: v.list}).section()
		v.fit = utf8.RuneCountInString(section)/4 <= set.maxTokens
	}
	if set.viewed.Add(1) <= maxPromptPrefixes {
		set.views.Store(key, v)
	}
	return v
}

// mySkills returns the skills that the session may load.
func (v *view) mySkills() *skillView {
	if v.skills == nil || len(v.skills.list) == 0 || !mayUse(v.rights, SkillLoadToolName) {
		return &skillView{}
	}
	return v.skills.view(v.skillRights)
}

// hasSkills reports whether there are skills that the session may load.
func (v *view) hasSkills() bool { return len(v.mySkills().list) > 0 }

// searchesSkills reports whether the model must search for skills, since there are
// too many to list. A session that may not search lists them all.
func (v *view) searchesSkills() bool {
	mine := v.mySkills()
	return len(mine.list) > 0 && !mine.fit && mayUse(v.rights, SkillSearchToolName)
}

// skill returns the skill with that name if the session may load it, or nil.
func (v *view) skill(name string) *skill {
	if v.skills == nil || !mayUse(v.rights, SkillLoadToolName) || !v.skillRights.PermitName(name) {
		return nil
	}
	return v.skills.byName[name]
}

// toolsOf returns the registered names of the tools that sk names and the session
// may use, each once. missing are the names without such a tool.
func (v *view) toolsOf(sk *skill) (names, missing []string) {
	add := func(t *BridgeTool) {
		if !slices.Contains(names, t.name) && len(names) < skills.MaxTools {
			names = append(names, t.name)
		}
	}
	for _, name := range sk.Tools {
		if t, _ := v.lookup(name); t != nil {
			add(t)
			continue
		}
		found := false
		for t, p := range v.each() {
			if t.def.Own == name && p != hidden {
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

// A skillOffer is what a skills section tells the model.
type skillOffer struct {
	Listed []*skill // the skills to list
	Count  int      // number of skills to search for, if none is listed
	More   bool     // earlier sections listed others
}

// newSkills returns the offer of new skills for a model that was shown list, or nil
// if there are none.
func (v *view) newSkills(list []listItem) *skillOffer {
	told := make(map[string]bool)
	for _, e := range list {
		if e.section != skillText {
			continue
		}
		if len(e.offer.skills.Listed) == 0 {
			return nil // the model searches, which also finds new skills
		}
		for _, sk := range e.offer.skills.Listed {
			told[sk.Name] = true
		}
	}
	o := &skillOffer{More: len(told) > 0}
	for _, sk := range v.mySkills().list {
		if !told[sk.Name] {
			o.Listed = append(o.Listed, sk)
		}
	}
	switch {
	case len(o.Listed) == 0:
		return nil
	case v.searchesSkills():
		o.Count, o.Listed = len(o.Listed), nil
	}
	return o
}

func (o *skillOffer) save() *saved.Skills {
	kept := &saved.Skills{Count: o.Count, More: o.More}
	for _, sk := range o.Listed {
		kept.Listed = append(kept.Listed, saved.Skill{Name: sk.Name, Description: sk.Description})
	}
	return kept
}

// restoreSkills returns the saved offer without the skills that the session may not
// load, or nil if none is left. It reports those, and those that are missing or
// have changed.
func (v *view) restoreSkills(o *saved.Skills, report func(name string)) (*skillOffer, error) {
	restored, seen := &skillOffer{Count: max(o.Count, 0), More: o.More}, make(map[string]bool)
	if !mayUse(v.rights, SkillLoadToolName) {
		return nil, nil
	}
	for _, e := range o.Listed {
		if err := (skills.Skill{Name: e.Name, Description: e.Description, Body: "-"}).Check(); err != nil {
			return nil, fmt.Errorf("the skill %q: %w", text.Line(e.Name, text.MaxName), err)
		}
		sk := v.skill(e.Name)
		if sk == nil || sk.Description != e.Description {
			report(e.Name)
			sk = &skill{Skill: Skill{Name: e.Name, Description: e.Description}, element: words.SkillElement(e.Name, e.Description)}
		}
		if v.skillRights.PermitName(e.Name) && !seen[e.Name] {
			seen[e.Name] = true
			restored.Listed = append(restored.Listed, sk)
		}
	}
	if len(restored.Listed) == 0 && (restored.Count == 0 || len(o.Listed) > 0) {
		return nil, nil
	}
	return restored, nil
}

// SkillListingOptions say up to when the prompt section lists skills. With more
// of either, the model gets [SkillSearchToolName] instead, unless
// [Options.Access] denies it.
type SkillListingOptions struct {
	// Max is the largest number of skills that are listed. It defaults to
	// [DefaultMaxInlineSkills].
	Max int

	// MaxTokens is the largest number of tokens of the section, estimated as a
	// quarter of its characters. It defaults to [DefaultMaxSkillTokens].
	MaxTokens int
}
