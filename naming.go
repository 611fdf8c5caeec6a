package mcphybrid

// Each server's prefix and each tool's registered name, mcp_server__tool, are given once.
// internal/names makes them; this file asks for them.

import (
	"cmp"

	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
)

// claimNames gives the source the prefix of its tools' names: the same at each call.
func (src *source) claimNames(book *names.Book) error {
	c, first, err := book.Claim(src.name, src.cfg.Prefix)
	if err != nil {
		return err
	}
	src.claim, src.number, src.collision = c, book.Number(c), nil
	if first != "" {
		src.collision = &CollisionError{src.name, names.Alone(src.name, src.cfg.Prefix).Prefix, c.Prefix, first}
	}
	return nil
}

// nameTool gives d its registered name: the same at each call.
func (src *source) nameTool(book *names.Book, d *definition) (err error) {
	if d.registered, err = book.Name(src.claim, d.Own); err != nil {
		return err
	}
	if alone := names.Alone(src.name, src.cfg.Prefix); alone != src.claim {
		d.wanted = alone.Name(d.Own)
	}
	return nil
}

// nameSkill gives a skill of the server the name by which models load it: the same at each
// call. It fails if it can be no skill.
func (src *source) nameSkill(book *names.Book, it *resources.Item) (string, error) {
	if err := cmp.Or(checkSkillName(it.Name), checkSkillDescription(it.Description), checkSkillTools(it.Manifest.Tools)); err != nil {
		return "", err
	}
	return book.Name(src.claim, it.Manifest.Own)
}

// subjectOf returns what patterns see of what a server lists under a name, besides tools.
func (src *source) subjectOf(own string) rules.Subject {
	t := rules.Subject{Name: src.claim.Name(own), Server: src.name, Own: own}
	if own == "" {
		t.Name = src.claim.Start()
	}
	if alone := names.Alone(src.name, src.cfg.Prefix); alone != src.claim {
		t.Wanted = alone.Name(own)
	}
	return t
}

// anyTool returns what patterns see of a tool of which only the server is known.
func (src *source) anyTool() rules.Subject { return anyTool(src.claim) }
