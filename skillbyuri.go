package mcphybrid

import (
	"cmp"
	"context"
	"errors"

	"github.com/mcphybrid/mcphybrid/internal/broker"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// This file is about skills that are asked for by their URIs. A server need not list all that it
// has: instructions may name one, and the server says what it is. Then it goes the way of one
// that is listed, to be reviewed and held back, but no list and no search has it.

// skillAt returns the skill of a server, or of the only one that has it if that is "", whose
// SKILL.md has that URI. The server is asked each time for one that it does not list.
func (s *Session) skillAt(ctx context.Context, server, uri string) (*skill, error) {
	if len(uri) > resources.MaxURI {
		return nil, &UnknownResourceError{Server: server, ID: uri}
	}
	all := s.view().readable()
	at, err := all.Locate(ctx, resources.Skill, server, uri, nil)
	e := all.Entry(at, resources.Skill, uri)
	if unknown := new(resources.Unknown); errors.As(err, &unknown) && unknown.Servers == nil || e != nil && e.Unlisted {
		if at, err = s.askSkill(ctx, all, server, uri); err != nil {
			return nil, err
		}
		all = s.view().readable()
		at, err = all.Locate(ctx, resources.Skill, at.Server, uri, nil)
		e = all.Entry(at, resources.Skill, uri)
	}
	if unknown := new(resources.Unknown); errors.As(err, &unknown) {
		return nil, (*UnknownResourceError)(unknown)
	}
	if err != nil || e == nil { // it was forgotten just now
		return nil, cmp.Or(err, error(&UnknownResourceError{Server: server, ID: uri}))
	}
	return skillOf(at.Of.(*owner), e), nil
}

// askSkill asks the server that may have a skill, and returns which one that is.
func (s *Session) askSkill(ctx context.Context, all *resources.View, server, uri string) (at resources.Place, err error) {
	asked := all.MayAsk(server, uri)
	if len(asked) != 1 {
		unknown := &UnknownResourceError{Server: server, ID: uri}
		for _, at := range asked {
			unknown.Servers = append(unknown.Servers, at.Server)
		}
		return at, unknown
	}
	at = asked[0]
	if tell := s.tenant.opts.OnRequest; tell != nil {
		tell(ctx, at.Server)
	}
	err = s.tenant.manager.askSkill(broker.WithCaller(ctx, s.caller), at.Of.(*owner), at.Server, uri)
	if err != nil {
		err = upstream.About(err, resources.Skill.String(), uri, at.Server)
	}
	return at, err
}
