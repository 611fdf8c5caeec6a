package mcphybrid

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/skills"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A skillView holds the skills that sessions with equal rights may use.
type skillView struct {
	list []*skill // in the order of the set
	fit  bool     // the prompt has room to list them
}

// view returns the skills that r permits.
func (set *skillSet) view(r rights) *skillView {
	key := fmt.Sprintf("%q", r)
	if kept, ok := set.views.Load(key); ok {
		return kept.(*skillView)
	}
	v := &skillView{list: set.list}
	if len(r) > 0 {
		v.list = slices.DeleteFunc(slices.Clone(set.list), func(sk *skill) bool { return !r.permitName(sk.Name) })
	}
	if len(v.list) <= set.maxInline {
		section := (&skillOffer{Listed: v.list}).section()
		v.fit = utf8.RuneCountInString(section)/4 <= set.maxTokens
	}
	if set.viewed.Add(1) <= maxSelections {
		set.views.Store(key, v)
	}
	return v
}

// mySkills returns the skills that the session may load.
func (v view) mySkills() *skillView {
	if v.skills == nil || len(v.skills.list) == 0 || !v.rights.mayUse(SkillLoadToolName) {
		return &skillView{}
	}
	return v.skills.view(v.skillRights)
}

// hasSkills reports whether there are skills that the session may load.
func (v view) hasSkills() bool { return len(v.mySkills().list) > 0 }

// searchesSkills reports whether the model must search for skills, since there are
// too many to list. A session that may not search lists them all.
func (v view) searchesSkills() bool {
	mine := v.mySkills()
	return len(mine.list) > 0 && !mine.fit && v.rights.mayUse(SkillSearchToolName)
}

// skill returns the skill with that name if the session may load it, or nil.
func (v view) skill(name string) *skill {
	if v.skills == nil || !v.rights.mayUse(SkillLoadToolName) || !v.skillRights.permitName(name) {
		return nil
	}
	return v.skills.byName[name]
}

// A skillOffer is what a skills section tells the model.
type skillOffer struct {
	Listed []*skill // the skills to list
	Count  int      // number of skills to search for, if none is listed
	More   bool     // earlier sections listed others
}

// newSkills returns the offer of new skills for a model that was shown list, or nil
// if there are none.
func (v view) newSkills(list []shown) *skillOffer {
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
func (v view) restoreSkills(o *saved.Skills, report func(name string)) (*skillOffer, error) {
	restored, seen := &skillOffer{Count: max(o.Count, 0), More: o.More}, make(map[string]bool)
	if !v.rights.mayUse(SkillLoadToolName) {
		return nil, nil
	}
	for _, e := range o.Listed {
		if err := (skills.Skill{Name: e.Name, Description: e.Description, Body: "-"}).Check(); err != nil {
			return nil, fmt.Errorf("the skill %q: %w", text.Line(e.Name, text.MaxName), err)
		}
		sk := v.skill(e.Name)
		if sk == nil || sk.Description != e.Description {
			report(e.Name)
			sk = &skill{Skill: Skill{Name: e.Name, Description: e.Description}, element: skillElement(e.Name, e.Description)}
		}
		if v.skillRights.permitName(e.Name) && !seen[e.Name] {
			seen[e.Name] = true
			restored.Listed = append(restored.Listed, sk)
		}
	}
	if len(restored.Listed) == 0 && (restored.Count == 0 || len(o.Listed) > 0) {
		return nil, nil
	}
	return restored, nil
}
