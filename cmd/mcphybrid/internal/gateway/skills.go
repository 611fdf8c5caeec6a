package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
)

// skillsExtension is the extension by which clients get the skills of servers (SEP-2640, as of
// 2026-09-13): those that the client's Session may load.
const skillsExtension = "io.modelcontextprotocol/skills"

// What the extension has beside the resources that the files of skills are.
const (
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
)

// addSkills makes the front answer for skills. mcp-go does not know these requests, but asks a
// hook about every one.
func (g *gateway) addSkills(hooks *server.Hooks) server.ServerOption {
	hooks.AddOnRequestInitialization(func(ctx context.Context, _ any, message any) error {
		raw, _ := message.(json.RawMessage)
		if !bytes.Contains(raw, []byte("skills")) {
			return nil
		}
		var r struct {
			Method string `json:"method"`
			Params struct {
				URI  string                     `json:"uri"`
				Meta map[string]json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(raw, &r) != nil {
			return nil // mcp-go says what is wrong
		}
		result := make(map[string]any)
		switch r.Method {
		case methodSkillsList:
			g.awaitServers(ctx)
			skills := []any{}
			c := g.client(ctx)
			for _, sk := range c.session.ServerSkills() {
				if e := c.skill(sk); e != nil && c.has(sk.Server) {
					skills = append(skills, e)
				}
			}
			result["skills"] = skills
		case methodSkillsGet:
			err := g.pass(ctx, request{methodSkillsGet, "", r.Params.URI, nil}, func(ctx context.Context, c *clientCall) error {
				from, own := c.from.named(r.Params.URI)
				sk, err := c.from.session.ServerSkill(ctx, from, own)
				if err == nil {
					result["skill"] = c.from.skill(sk)
				}
				return err
			})
			if err != nil {
				return refuseSkill(g.scope(ctx).refusal(r.Params.URI, err))
			}
		default:
			return nil
		}
		if r.Params.Meta[mcp.MetaKeyProtocolVersion] != nil { // since 2026-07-28
			result["resultType"], result["ttlMs"], result["cacheScope"] = mcp.ResultTypeComplete, 0, mcp.CacheScopePrivate
		}
		answer, err := json.Marshal(result)
		if err != nil {
			return wire.Refuse(mcp.INTERNAL_ERROR, nil, err)
		}
		return wire.Answer(answer)
	})
	return server.WithExtensions(map[string]any{skillsExtension: struct{}{}})
}

// skill returns what a client gets of a skill: its URIs name its server. It is nil if the server
// says nothing that can be read, which nobody has accepted.
func (s scope) skill(sk mcphybrid.Resource) any {
	type file struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	}
	var said struct {
		URI         string          `json:"uri"`
		Frontmatter json.RawMessage `json:"frontmatter"`
		Resources   []file          `json:"resources"`
	}
	if json.Unmarshal(sk.Raw, &said) != nil {
		return nil
	}
	said.URI = s.uri(sk.Server, sk.URI)
	for i, f := range said.Resources {
		said.Resources[i].URI = s.uri(sk.Server, f.URI)
	}
	return said
}

// refuseSkill returns the error of a request for a skill. One that the client may not have is as
// one that is not there.
func refuseSkill(err error) error {
	for _, gone := range []error{mcphybrid.ErrUnknownResource, mcphybrid.ErrNotPermitted, mcphybrid.ErrQuarantined, mcp.ErrInvalidParams} {
		if errors.Is(err, gone) {
			return wire.Refuse(mcp.INVALID_PARAMS, nil, err)
		}
	}
	return wire.Refuse(mcp.INTERNAL_ERROR, nil, err)
}
