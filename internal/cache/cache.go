// Package cache keeps what servers have listed in a store, by which there is a catalog
// before any server runs, and which several processes may share. It writes once a second
// at most and, if the store has parts, little more than what has changed.
package cache

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
)

// A Catalog is the document of the store.
type Catalog struct {
	Version int                        `json:"version"`
	Base    string                     `json:"base,omitempty"` // key of a part, a Catalog that has the rest
	Names   []names.Claim              `json:"names,omitempty"`
	Servers map[string]json.RawMessage `json:"servers"` // each a Server, by name

	base   *Catalog // of that part, or nil
	keeper *Keeper
}

const version = 2 // a server of version 1 has its lists as "tools" and "more"

// A Server is what a server has listed.
type Server struct {
	Config string    `json:"config"` // see [Key]
	Listed time.Time `json:"listed"` // when it listed this

	// Lists has the elements of its lists, as strings to keep each byte, by what they
	// are. If Part is the key of a part, it is that which has them.
	Lists map[string][]string `json:"lists,omitempty"`
	Part  string              `json:"part,omitempty"`
}

// Tools is the key of the list of tools, and Instructions that of the server's instructions,
// the only element of their list.
const (
	Tools        = "tool"
	Instructions = "instructions"
)

const (
	// maxAge is how long a server stays in the store that nobody has listed since.
	maxAge = 30 * 24 * time.Hour

	// maxServers is how many servers of other processes the store keeps at most.
	maxServers = 10_000

	// maxRecent is the largest document in bytes, if the store has parts. A larger one
	// goes to a new base. A base of 2,000 servers has 40 times as many.
	maxRecent = 8 << 10
)

// Key returns a hash of those parts of a configuration by which a server may have
// other tools.
func Key(parts ...any) string {
	data, _ := json.Marshal(parts)
	return store.KeyOf(data)[:32]
}

var errGone = errors.New("a part is missing")

// parse reads the document of the store. The catalog is empty if there is none, if a later
// version wrote it, or with an error. It is nil if it has a part that can't be read.
func (k *Keeper) parse(data []byte) (*Catalog, error) {
	c, err := parse(data)
	if err != nil || c.Base == "" {
		return c, err
	}
	k.mu.Lock()
	key, base := k.baseKey, k.base
	k.mu.Unlock()
	if key != c.Base {
		key = c.Base
		if data, err = k.part(key); err != nil {
			return nil, err
		}
		if base, err = parse(data); err != nil {
			return base, err
		}
		k.mu.Lock()
		k.baseKey, k.base = key, base
		k.mu.Unlock()
	}
	c.base = base
	c.Names = append(base.Names[:len(base.Names):len(base.Names)], c.Names...)
	for name, s := range base.Servers {
		if c.Servers[name] == nil {
			c.Servers[name] = s
		}
	}
	return c, nil
}

func parse(data []byte) (*Catalog, error) {
	c := new(Catalog)
	if data != nil {
		if err := json.Unmarshal(data, c); err != nil {
			err = text.JSONError(data, err)
			c, _ = parse(nil)
			return c, err
		}
	}
	if c.Version != 1 && c.Version != version {
		c = new(Catalog)
	}
	if c.Servers == nil {
		c.Servers = make(map[string]json.RawMessage)
	}
	return c, nil
}

// format returns c as the document of a store with parts, and a new base if it needs one.
func (c *Catalog) format() (doc, base []byte) {
	recent := c
	if b := c.base; b != nil {
		recent = &Catalog{Base: c.Base, Servers: make(map[string]json.RawMessage)}
		known := make(map[names.Claim]bool, len(b.Names))
		for _, claim := range b.Names {
			known[claim] = true
		}
		for _, claim := range c.Names {
			if !known[claim] {
				recent.Names = append(recent.Names, claim)
			}
		}
		for name, s := range c.Servers {
			if string(b.Servers[name]) != string(s) {
				recent.Servers[name] = s
			}
		}
		for name := range b.Servers {
			if c.Servers[name] == nil {
				recent = c // one has left
			}
		}
	}
	recent.Version = version
	if recent != c || c.Base == "" {
		if doc = text.RawJSON(recent); len(doc) <= maxRecent {
			return doc, nil
		}
	}
	c.Version, c.Base = version, ""
	base = text.RawJSON(c)
	return text.RawJSON(Catalog{Version: version, Base: store.KeyOf(base)}), base
}

// server returns what c has of a server, or nil. If a part has its lists, they are nil.
func (c *Catalog) server(name string) *Server {
	var s struct {
		Server
		Tools []string            `json:"tools"`
		More  map[string][]string `json:"more"`
	}
	if json.Unmarshal(c.Servers[name], &s) != nil {
		return nil
	}
	if s.Lists == nil && s.Tools != nil {
		s.Lists = map[string][]string{Tools: s.Tools}
		for kind, list := range s.More {
			s.Lists[kind] = list
		}
	}
	return &s.Server
}

// mark returns what differs if lists in c differ, or their configuration.
func (c *Catalog) mark(name string, s *Server) string {
	if s.Part != "" {
		return s.Part + s.Config
	}
	return store.KeyOf(c.Servers[name])
}

// Server returns what the server has listed, or nil if that is not known.
func (c *Catalog) Server(name string) *Server {
	s := c.server(name)
	if s == nil || s.Part == "" && s.Lists == nil {
		return nil
	}
	found := &kept{name: name, listed: s.Listed, config: s.Config, seen: c.mark(name, s)}
	if s.Part != "" {
		var err error
		if s.Lists, found.chain, err = c.keeper.follow(s.Part, nil, nil); err != nil {
			return nil // it is asked
		}
	}
	c.keeper.loaded(found)
	return s
}

// News returns what another process has stored of the server since News or Server looked,
// if it is another list than ours, of the same configuration. Else it returns nil. If we
// have no list, it is [Catalog.Server].
func (c *Catalog) News(name string) *Server {
	s := c.server(name)
	ours, chain, seen := c.keeper.ours(name)
	if ours == nil {
		return c.Server(name)
	}
	if s == nil || seen == c.mark(name, s) {
		return nil
	}
	if s.Part != "" {
		if chain != nil && chain.diff(ours.Lists).is(chain) {
			s.Lists, chain, _ = c.keeper.follow(s.Part, chain, ours.Lists)
		} else {
			s.Lists, chain, _ = c.keeper.follow(s.Part, nil, nil)
		}
	}
	if s.Lists == nil {
		return nil
	}
	of := newChain(s.Lists)
	other := s.Config == ours.Config && !of.diff(ours.Lists).is(of)
	if c.keeper.looked(name, c.mark(name, s), s, chain, other); other {
		return s
	}
	return nil
}

// forget removes servers that nobody has listed for long, but not those of ours. If others
// are too many, it takes less time. It returns the keys of their parts.
func (c *Catalog) forget(ours []*kept, now time.Time) (gone []string) {
	others := make(map[string]*Server)
	for name := range c.Servers {
		others[name] = c.server(name)
	}
	for _, s := range ours {
		delete(others, s.name)
	}
	for age := maxAge; age == maxAge || len(others) > maxServers; age /= 2 {
		for name, s := range others {
			if s != nil && now.Sub(s.Listed) <= age && age > 0 {
				continue
			}
			delete(others, name)
			if delete(c.Servers, name); s != nil && s.Part != "" {
				gone = append(gone, s.Part)
			}
		}
	}
	return gone
}
