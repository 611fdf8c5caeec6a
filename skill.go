package mcphybrid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/skills"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// A Skill is a text of instructions for one kind of task. What there is for
// tools there is for skills: the model sees their names and descriptions, or if
// they are too many searches for them, and reads the text of one when it needs
// it. See [Options.Skills] and, for skills in files, [LoadSkills].
type Skill struct {
	// Name is what the model loads it by: at most 64 lower-case letters of
	// ASCII, digits and hyphens, without a hyphen at either end.
	Name string

	// Description says what the skill is for, and when to use it: at most
	// 1,024 characters. It is all that the model knows of a skill before it
	// loads it.
	Description string

	// Tools are the tools that the skill needs, at most 32, by registered or
	// own name; an own name stands for the tools of that name of all servers.
	// They become active when the skill is loaded. Those that are not there
	// or not permitted are left out: the model is told so, and
	// [Manager.Problems] has those that are nowhere.
	Tools []string

	// Body is the text, of at most 1 MiB.
	Body string

	// Load, if not nil, returns the text in the place of Body. It is called
	// when the skill is first loaded, once for all sessions that wait for it,
	// and must return when ctx ends, as it does after [Options.CallTimeout].
	// The text serves for five minutes. After these it is loaded anew, and
	// serves on meanwhile; after ten, whoever asks waits for the new one. An
	// error is not kept.
	Load func(ctx context.Context) (string, error)
}

// skillLifetime is how long the text of a skill serves.
const skillLifetime = 5 * time.Minute

// A skill is a [Skill] of a Manager.
type skill struct {
	Skill
	element string // of the section
	body    *lazy.Value[string]
}

// A skillSet is one version of the skills that a Manager has. It must not be
// changed once it is published.
type skillSet struct {
	version  uint64
	list     []*skill // as they were given
	byName   map[string]*skill
	problems []error // of those that were left out
	index    func() retriever

	maxInline int
	maxTokens int
	views     sync.Map     // of *skillView, by rights
	viewed    atomic.Int32 // views that were made
}

var noSkills = &skillSet{index: func() retriever { return ended.index }}

// A skillShelf is where a Manager has its skills.
type skillShelf struct {
	cur atomic.Pointer[skillSet] // never nil; stored with Manager.mu held, and by close

	mu      sync.Mutex     // of the texts
	loading sync.WaitGroup // of texts
}

// close waits until no text is being loaded, once the Manager's life has ended.
func (s *skillShelf) close() {
	s.mu.Lock()
	s.cur.Store(noSkills)
	s.mu.Unlock() // no load begins from here on
	s.loading.Wait()
}

// newSkillSet returns the set that follows the one there is.
func (s *scope) newSkillSet(list []Skill) *skillSet {
	set := &skillSet{
		version: s.skills.cur.Load().version + 1, byName: make(map[string]*skill, len(list)),
		maxInline: s.opts.MaxInlineSkills, maxTokens: s.opts.MaxSkillTokens,
	}
	for i, given := range list {
		err := skills.Skill(given).Check()
		if err == nil && set.byName[given.Name] != nil {
			err = fmt.Errorf("there is another one before it: %w", ErrDuplicate)
		}
		if err != nil {
			set.problems = append(set.problems, text.Bounded(fmt.Errorf("mcphybrid: skill %d, %q: %w", i+1, given.Name, err)))
			continue
		}
		given.Tools = slices.Clone(given.Tools)
		sk := &skill{Skill: given, element: skillElement(given.Name, given.Description)}
		sk.body = &lazy.Value[string]{
			Load: s.loadSkill(sk), Keep: skillLifetime, Life: s.life, Ended: ErrClosed, Run: s.skills.loading.Go, Mu: &s.skills.mu,
		}
		set.list = append(set.list, sk)
		set.byName[sk.Name] = sk
	}
	set.index = sync.OnceValue(func() retriever { return newSkillIndex(set.list, &s.opts) })
	return set
}

// loadSkill returns the function that loads the text of sk.
func (s *scope) loadSkill(sk *skill) func(context.Context) (string, error) {
	return func(ctx context.Context) (text string, err error) {
		if sk.Load == nil {
			return strings.ToValidUTF8(sk.Body, "\ufffd"), nil
		}
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("its Load panicked: %v", p)
			}
		}()
		ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
		defer cancel()
		if text, err = sk.Load(ctx); err != nil {
			return "", err
		}
		return strings.ToValidUTF8(text, "\ufffd"), skills.CheckBody(text)
	}
}

// newSkillIndex returns what finds skills, which are indexed as tools are.
func newSkillIndex(list []*skill, opts *Options) retriever {
	if opts.Ranker == RankerClassic {
		texts := make([]string, len(list))
		for i, sk := range list {
			texts[i] = sk.Name + " " + sk.Description
		}
		return NewBM25Index(texts, opts.BM25)
	}
	docs := make([]*search.Document, len(list))
	for i, sk := range list {
		docs[i] = &search.Document{Name: sk.Name, Description: sk.Description}
	}
	return search.NewIndex(docs, &search.Options{Ranker: search.Ranker(opts.Ranker), Lexicon: opts.Lexicon, Threshold: opts.SearchThreshold})
}

// toolsOf returns the registered names of the tools that sk names and the
// session may use, each once, and the names for which there is none.
func (v view) toolsOf(sk *skill) (names, missing []string) {
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
			if t.def.name == name && p != hidden {
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

// LoadSkills returns the skills in a folder, in the order of their paths: of
// each folder in it, four levels deep, that has a file SKILL.md in the Agent
// Skills format (https://agentskills.io/specification). What is in the folder
// of a skill is its own, and no further skill; folders whose names begin with a
// period, and node_modules, are passed over.
//
//	---
//	name: code-review
//	description: How we review code. Use it for every pull request.
//	tools: [get_diff, mcp_github__create_review]
//	---
//	Read the whole change before …
//
// Of the front matter, name, description and tools become those of a [Skill],
// by its limits; tools, which is not of the format, is a list or a line of
// names. All other fields are left to those who know them. The name need not
// be that of the folder. A file has at most 1 MiB, of which 64 KiB are front
// matter. What stands below it is read when the skill is loaded, from the file
// as it is by then.
//
// Symbolic links are followed within the folder only. The error names each file
// that can't be used, the line, and what is wrong; it comes with all the
// other skills. Of two of one name there is the first,
// and of more than 2,000 folders only those are looked at.
func LoadSkills(dir string) ([]Skill, error) { return loadedSkills(skills.Load(dir)) }

// LoadSkillsFS is [LoadSkills] for skills that are elsewhere, such as in the
// program. Where links lead is up to fsys, which is read later too.
func LoadSkillsFS(fsys fs.FS) ([]Skill, error) { return loadedSkills(skills.LoadFS(fsys)) }

func loadedSkills(read []skills.Skill, problems []error) (list []Skill, err error) {
	for _, sk := range read {
		list = append(list, Skill(sk))
	}
	for i, err := range problems {
		if duplicate := new(skills.DuplicateError); errors.As(err, &duplicate) {
			err = fmt.Errorf("%w: %w", err, ErrDuplicate)
		}
		problems[i] = text.Bounded(fmt.Errorf("mcphybrid: %w", err))
	}
	return list, errors.Join(problems...)
}
