package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/search"
)

// What a model sees of skills, and how it loads one, is in skillview.go. servedskills.go has the skills
// of servers, skillbyuri.go those that the model knows by a URI, and unlistedskill.go
// those that a server has without listing them.

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
	// must return when ctx ends, which happens after [config.Limits.CallTimeout].
	//
	// The text is cached for ten minutes. After five, the next use loads it
	// again in the background. Errors are not cached.
	Load func(ctx context.Context) (string, error)
}

// The limits of a skill, some of which are those of the Agent Skills format
// (https://agentskills.io/specification).
const (
	maxSkillDescription = 1024 // characters
	maxSkillTools       = 32
	maxSkillBody        = resources.MaxSkillText // bytes

	maxSkillName = 64
)

// Validate returns an error if a field is missing or exceeds its limit. What Load returns
// is checked when it is loaded.
func (sk *Skill) Validate() error {
	for _, err := range []error{checkSkillName(sk.Name), checkSkillDescription(sk.Description), checkSkillTools(sk.Tools)} {
		if err != nil {
			return err
		}
	}
	if sk.Load == nil {
		return checkSkillBody(sk.Body)
	}
	return nil
}

// checkSkillName returns an error if a skill can't have that name.
func checkSkillName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(name, "-") != name:
		return errors.New("its name may have lower-case letters, digits and, between these, hyphens")
	case len(name) > maxSkillName:
		return fmt.Errorf("its name has %d characters, more than the limit of %d", len(name), maxSkillName)
	}
	return nil
}

// checkSkillDescription returns an error if line can't describe a skill.
func checkSkillDescription(line string) error {
	if n := utf8.RuneCountInString(line); n > maxSkillDescription {
		return fmt.Errorf("its description has %d characters, more than the limit of %d", n, maxSkillDescription)
	}
	if text.Line(line, maxSkillDescription) == "" {
		return errors.New("it has no description")
	}
	return nil
}

// checkSkillTools returns an error if a skill can't need tools of these names.
func checkSkillTools(names []string) error {
	if len(names) > maxSkillTools {
		return fmt.Errorf("it names %d tools, more than the limit of %d", len(names), maxSkillTools)
	}
	return nil
}

// checkSkillBody returns an error if body can't be the text of a skill.
func checkSkillBody(body string) error {
	switch {
	case strings.TrimSpace(body) == "":
		return errors.New("it has no text")
	case len(body) > maxSkillBody:
		return fmt.Errorf("its text has %d bytes, more than the limit of %d", len(body), maxSkillBody)
	}
	return nil
}

// skillLifetime is how long the text of a skill stays fresh.
const skillLifetime = 5 * time.Minute

// A skill is a [Skill] of a Manager, of the host or of a server.
type skill struct {
	Skill
	element string              // its line in the section
	body    *lazy.Value[string] // nil for that of a server
	served  *servedSkill        // nil for one of the host
}

// A skillSet is one version of the skills that a Manager has. It must not be
// changed once it is published.
type skillSet struct {
	version  uint64
	list     []*skill // in the order given
	byName   map[string]*skill
	problems []error // one for each rejected skill
	index    func() ranker
	served   bool // some are of servers, which not every session has

	maxInline int
	maxTokens int
	views     sync.Map     // *skillView by rights
	viewed    atomic.Int32 // number of views made
}

var noSkills = &skillSet{index: func() ranker { return emptyIndex }}

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
func (s *tenant) newSkillSet(list []Skill) *skillSet {
	set := &skillSet{
		version: s.skills.cur.Load().version + 1, byName: make(map[string]*skill, len(list)),
		maxInline: s.opts.SkillListing.Max, maxTokens: s.opts.SkillListing.MaxTokens,
	}
	for i, given := range list {
		err := given.Validate()
		if err == nil && set.byName[given.Name] != nil {
			err = fmt.Errorf("an earlier skill has this name: %w", ErrDuplicate)
		}
		if err != nil {
			set.problems = append(set.problems, text.Bounded(fmt.Errorf("mcphybrid: skill %d, %q: %w", i+1, given.Name, err)))
			continue
		}
		given.Tools = slices.Clone(given.Tools)
		sk := &skill{Skill: given, element: textSkillElement(given.Name, given.Description)}
		sk.body = &lazy.Value[string]{
			Load: s.loadSkill(sk), Keep: skillLifetime, Life: s.life, Ended: ErrClosed, Run: s.skills.loading.Go, Mu: &s.skills.mu,
		}
		set.list = append(set.list, sk)
		set.byName[sk.Name] = sk
	}
	set.index = sync.OnceValue(func() ranker { return s.indexer.indexSkills(set.list) })
	return set
}

// loadSkill returns the function that loads the text of sk.
func (s *tenant) loadSkill(sk *skill) func(context.Context) (string, error) {
	return func(ctx context.Context) (text string, err error) {
		if sk.Load == nil {
			return strings.ToValidUTF8(sk.Body, "\ufffd"), nil
		}
		ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.CallTimeout)
		defer cancel()
		if text, err = hostcode.Detached(ctx, "its Load", func() (string, error) { return sk.Load(ctx) }); err != nil {
			return "", err
		}
		return strings.ToValidUTF8(text, "\ufffd"), checkSkillBody(text)
	}
}

// indexSkills returns an index of skills. It indexes them like tools.
func (x *indexer) indexSkills(list []*skill) ranker {
	return x.index(nil, len(list),
		func(doc int) string { return list[doc].Name + " " + list[doc].Description },
		func(doc int) *search.Document {
			return &search.Document{Name: list[doc].Name, Description: list[doc].Description}
		})
}
