package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"
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

// A savedSkills is a [skillOffer] with names instead of skills.
type savedSkills struct {
	Listed []savedSkill `json:"listed,omitempty"`
	Count  int          `json:"count,omitempty"`
	More   bool         `json:"more,omitempty"`
}

type savedSkill struct {
	Name string `json:"name"`
	Sum  string `json:"sum"` // start of the hash of its line
}

// shortSum returns a short hash that differs when the skill's line has changed.
func (sk *skill) shortSum() string {
	sum := sha256.Sum256([]byte(sk.element))
	return hex.EncodeToString(sum[:4])
}

func (o *skillOffer) save() *savedSkills {
	saved := &savedSkills{Count: o.Count, More: o.More}
	for _, sk := range o.Listed {
		saved.Listed = append(saved.Listed, savedSkill{sk.Name, sk.shortSum()})
	}
	return saved
}

// restoreSkills returns the saved offer with the skills that still exist, or nil if
// none is left. It reports those that are missing or have changed.
func (v view) restoreSkills(saved *savedSkills, report func(name string)) *skillOffer {
	o := &skillOffer{Count: max(saved.Count, 0), More: saved.More}
	for _, e := range saved.Listed {
		sk := v.skill(e.Name)
		if sk == nil || sk.shortSum() != e.Sum {
			report(e.Name)
		}
		if sk != nil && !slices.Contains(o.Listed, sk) {
			o.Listed = append(o.Listed, sk)
		}
	}
	if len(o.Listed) == 0 && (o.Count == 0 || !v.hasSkills()) {
		return nil
	}
	return o
}
