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

// ServerSkills returns the skills that servers list and that the session may load, in the order
// in which the prompt has them. Of each, URI is that of its SKILL.md, and Raw is the element of
// skills/list. Its files are read by [Session.ReadResource].
func (s *Session) ServerSkills() (list []Resource) {
	v := s.view()
	mine := v.mySkills()
	for _, sk := range mine.list {
		if mine.served[sk] {
			list = append(list, sk.asResource())
		}
	}
	return list
}

// ServerSkill returns the skill whose SKILL.md has that URI, also one that its server does not
// list: then the server is asked. server is its name, or "" if only one can have it. The error
// may wrap those that [Session.ReadResource] has.
func (s *Session) ServerSkill(ctx context.Context, server, uri string) (Resource, error) {
	v := s.view()
	if !mayUse(v.rights, SkillLoadToolName) {
		return Resource{}, ErrNotPermitted
	}
	sk, err := s.skillAt(ctx, server, uri)
	if err != nil {
		return Resource{}, err
	}
	return sk.asResource(), nil
}

// asResource returns a server's skill for a host.
func (sk *skill) asResource() Resource {
	e := sk.served.entry
	return Resource{Server: e.Names.Server, URI: e.ID, Name: e.Name, Registered: e.Names.Name, Description: e.Description, Raw: e.Raw}
}
