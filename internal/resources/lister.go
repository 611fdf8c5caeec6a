package resources

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// Lists are the lists of a server by what they have.
var Lists = [NumKinds]upstream.Kind{Resource: upstream.Resources, Template: upstream.Templates, Prompt: upstream.Prompts, Skill: upstream.Skills}

// A Definition is an entry as its server listed it last. It is immutable.
type Definition struct {
	Entry   *Entry           // barred if the configuration does not permit it
	Trusted trust.Definition // what must not change unnoticed
}

// Entries returns their entries. held says why some of them are held back, by
// their place.
func Entries(defs []*Definition, held map[int]error) []*Entry {
	list := make([]*Entry, len(defs))
	for i, o := range defs {
		list[i] = o.Entry
		if why := held[i]; why != nil && o.Entry.Barred == nil {
			e := *o.Entry
			e.Quarantined = why
			list[i] = &e
		}
	}
	return list
}

// Size returns how many bytes the elements have.
func Size(defs []*Definition) (bytes int) {
	for _, o := range defs {
		bytes += len(o.Entry.Raw)
	}
	return bytes
}

// Listed returns what a server has listed, by what it is: the inverse of [Raw]. Tools are
// what tools says.
func Listed(lists map[string][]string, tools string) (all upstream.List) {
	add := func(to upstream.Kind, list []string) {
		for _, raw := range list {
			all.Elements[to] = append(all.Elements[to], upstream.Element{Raw: json.RawMessage(raw)})
		}
	}
	add(upstream.Tools, lists[tools])
	for kind, of := range Lists {
		add(of, lists[Kind(kind).String()])
	}
	return all
}

// Raw returns the elements by what they are.
func Raw(defs []*Definition) map[string][]string {
	raw := make(map[string][]string)
	for _, o := range defs {
		kind := o.Entry.Kind.String()
		raw[kind] = append(raw[kind], string(o.Entry.Raw))
	}
	return raw
}

// Count returns how many there are of each kind.
func Count(defs []*Definition) (n [NumKinds]int) {
	for _, o := range defs {
		n[o.Entry.Kind]++
	}
	return n
}

// A Lister checks what one server lists.
type Lister struct {
	Server   string
	Names    func(own string) rules.Subject // what patterns see of a name
	Bar      func(rules.Subject) error      // why the configuration does not permit something, or nil
	MaxBytes int                            // of one element

	// NoSkills, if not nil, says why the configuration permits no skill. Then nobody is told
	// of skills that can't be used.
	NoSkills error

	// Skill checks what is said of a skill, and returns the name by which models load it.
	Skill func(*Item) (string, error)
}

// maxListedForms is how many bytes the forms of the URIs that a server lists may have
// together, beside the URIs themselves. They are kept.
const maxListedForms = 4 << 20

// Check returns what can be used of the lists of a server, in order, and an error for
// each element that can't be. What was listed unchanged before, or could not be listed
// now, is that of old. err is that of ctx.
func (l *Lister) Check(ctx context.Context, all upstream.List, old []*Definition) (list []*Definition, problems []error, err error) {
	known := make(map[ID]*Definition, len(old))
	for _, o := range old {
		known[o.Entry.Key()] = o
	}
	note := func(kind Kind, format string, args ...any) {
		if kind == Skill && l.NoSkills != nil {
			return
		}
		err := fmt.Errorf("mcphybrid: server %q: "+format, append([]any{l.Server}, args...)...)
		problems = append(problems, text.Bounded(err))
	}
	room := maxListedForms
	for kind := range NumKinds {
		if failed := all.Failed[Lists[kind]]; failed != nil {
			note(kind, "its %ss can't be listed: %w", kind, failed)
			for _, o := range old {
				if o.Entry.Kind == kind {
					list = append(list, o)
				}
			}
		}
		seen, named := make(map[string]bool), make(map[string]bool)
		for i, e := range all.Elements[Lists[kind]] {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			o, err := l.definition(kind, e, known)
			if err == nil && seen[o.Entry.ID] {
				err = fmt.Errorf("another one is %q too; the first is kept", text.Line(o.Entry.ID, text.MaxName))
			}
			if err == nil && kind == Skill && named[o.Entry.Names.Name] {
				err = fmt.Errorf("%q: another one has its name too; the first is kept", text.Line(o.Entry.ID, text.MaxName))
			}
			if err == nil && kind == Template && len(seen) == MaxTemplates {
				err = fmt.Errorf("there are more than the limit of %d", MaxTemplates)
			}
			if err == nil {
				for _, form := range o.Entry.Names.Forms {
					room -= len(form)
				}
				if room < 0 {
					err = fmt.Errorf("%q can be taken for others that have, with those of all resources before, more than the limit of %d bytes", text.Line(o.Entry.ID, text.MaxName), maxListedForms)
				}
			}
			if err != nil {
				note(kind, "%s %d: %w", kind, i, err)
				continue
			}
			seen[o.Entry.ID], named[o.Entry.Names.Name] = true, true
			list = append(list, o)
		}
	}
	return list, problems, nil
}

// Unlisted checks a skill that the server does not list, and was asked for by its URI.
func (l *Lister) Unlisted(raw json.RawMessage, uri string) (*Definition, error) {
	d, err := l.definition(Skill, upstream.Element{Raw: raw}, nil)
	switch {
	case err != nil:
		return nil, err
	case d.Entry.ID != uri:
		return nil, fmt.Errorf("the server was asked for %q and answered with %q", text.Line(uri, text.MaxName), text.Line(d.Entry.ID, text.MaxName))
	}
	d.Entry.Unlisted = true
	return d, nil
}

func (l *Lister) definition(kind Kind, e upstream.Element, known map[ID]*Definition) (*Definition, error) {
	if e.Problem != nil {
		return nil, e.Problem
	}
	item, err := Parse(kind, e.Raw, l.MaxBytes)
	if err != nil {
		return nil, err
	}
	entry := &Entry{Item: item}
	if kind == Skill {
		name, err := l.Skill(item)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text.Line(item.ID, text.MaxName), err)
		}
		entry.Names = l.Names(item.Manifest.Own)
		entry.Names.Name = name
	} else {
		entry.Names = l.Names(item.Name)
	}
	if kind != Prompt {
		entry.Names.URI, entry.Names.Forms = item.ID, item.forms
	}
	if old := known[entry.Key()]; old != nil && string(old.Entry.Raw) == string(e.Raw) {
		return old, nil
	}
	entry.Barred = l.Bar(entry.Names)
	if kind == Skill && l.NoSkills != nil {
		entry.Barred = l.NoSkills
	}
	return &Definition{entry, trust.Definition{Name: kind.String() + " " + item.ID, Sum: sha256.Sum256(e.Raw), Hash: item.Hash}}, nil
}
