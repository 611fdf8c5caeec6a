package mcphybrid

import (
	"bytes"
	"context"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/resources"
)

// maxUnlisted is how many skills of a server are kept that it does not list. Together they
// have at most as many bytes as one definition may have.
const maxUnlisted = 64

// askSkill asks a server for the skill whose SKILL.md has that URI, and makes it part of the
// catalog, if the server does not list it.
func (m *Manager) askSkill(ctx context.Context, of *owner, server, uri string) error {
	m, src := m.serverOf(of, server)
	if src == nil || src.cfg.NoSkills {
		return ErrUnknownResource
	}
	raw, err := src.server.Skill(ctx, nil, uri)
	if err != nil {
		return err
	}
	d, err := src.lister(m.opts.Access, m.names, m.opts.Limits.MaxDefinition).Unlisted(raw, uri)
	if err != nil {
		return src.hide(err)
	}
	return m.publishChange(func() error {
		i := slices.IndexFunc(src.unlisted, func(o *resources.Definition) bool { return o.Entry.ID == uri })
		if !slices.Contains(m.sources, src) || src.lists(uri) || i >= 0 && bytes.Equal(src.unlisted[i].Entry.Raw, raw) {
			return errNoChange
		}
		if i >= 0 {
			src.unlisted = slices.Delete(src.unlisted, i, i+1)
		}
		src.unlisted = append(src.unlisted, d)
		for len(src.unlisted) > maxUnlisted || resources.Size(src.unlisted) > m.opts.Limits.MaxDefinition {
			src.unlisted = slices.Delete(src.unlisted, 0, 1)
		}
		m.review(src)
		m.stageSource(src)
		return nil
	})
}
