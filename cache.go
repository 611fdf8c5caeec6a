package mcphybrid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/cache"
	"github.com/mcphybrid/mcphybrid/internal/document"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// cacheKey returns a hash that differs if a configuration may give the server
// other tools. The environment and headers, which hold secrets, are not part of
// it.
func (sc *ServerConfig) cacheKey() string {
	return cache.Key(sc.Command, sc.Args, sc.Dir, sc.URL, sc.Tools, sc.Prefix)
}

// recall restores the names that were given before this run, once. It returns the
// cached catalog, or nil.
func (m *Manager) recall() (*cache.Catalog, error) {
	if err := m.trust.Load(); err != nil {
		if m.opts.Trust.holds() {
			return nil, fmt.Errorf("mcphybrid: %w", err)
		}
		m.opts.Logger.Warn("mcphybrid: " + err.Error())
	}
	var failed error
	m.recalling.Do(func() {
		cached, err := cache.Read(m.opts.Cache)
		if failed = err; err == nil {
			m.names.Restore(cached.Names)
			m.cached.Store(cached)
		}
	})
	if failed != nil {
		m.opts.Logger.Warn("mcphybrid: loading the cached catalog failed", "error", failed)
	}
	m.logRefused()
	return m.cached.Load(), nil
}

// fill gives servers that are not connected the tools that they last listed, in one
// change of the catalog. It returns the servers whose list is too old.
func (m *Manager) fill(sources []*source, cached *cache.Catalog) (stale []*source, err error) {
	if cached == nil {
		return nil, nil
	}
	type fill struct {
		src    *source
		defs   []*definition
		offers []*resources.Offer
		listed time.Time
	}
	var fills []fill
	for _, src := range sources {
		c, ok := cached.Servers[src.name]
		if !ok || src.cfg.InProcess != nil || src.invalid != nil || c.Config != src.cfg.cacheKey() {
			continue
		}
		defs, offers, err := m.fromCache(src, &c)
		if err != nil {
			continue // we start the server and list its tools instead
		}
		fills = append(fills, fill{src, defs, offers, c.Listed})
		if age := time.Since(c.Listed); src.cfg.Eager || m.opts.Limits.Refresh > 0 && (age > m.opts.Limits.Refresh || age < 0) {
			stale = append(stale, src)
		}
	}
	if len(fills) == 0 {
		return nil, nil
	}
	return stale, m.change(func() error {
		for _, f := range fills {
			if m.take(f.src, f.defs, f.offers, f.listed) == nil { // else we start the server
				f.src.server.SetCached()
			}
		}
		return nil
	})
}

// fromCache returns the definitions of the cached tools of src, and what it listed
// beside tools. A call of one of them starts the server.
func (m *Manager) fromCache(src *source, c *cache.Server) ([]*definition, []*resources.Offer, error) {
	var all upstream.List
	add := func(to upstream.Kind, list []string) {
		for _, raw := range list {
			all.Elements[to] = append(all.Elements[to], upstream.Element{Raw: json.RawMessage(raw)})
		}
	}
	add(upstream.Tools, c.Tools)
	for kind, of := range resources.Lists {
		add(of, c.More[resources.Kind(kind).String()])
	}
	ctx := context.Background()
	defs, problems, _, err := src.parseDefinitions(ctx, all.Elements[upstream.Tools], m.names, m.opts.Limits.MaxDefinition)
	offers, more, _ := src.lister(m.opts.Access, m.opts.Limits.MaxDefinition).Check(ctx, all, nil)
	if problems = append(problems, more...); err != nil || len(problems) > 0 || len(defs)+len(offers) > m.opts.Limits.MaxTools {
		return nil, nil, fmt.Errorf("the cached lists can't be used: %v", problems)
	}
	m.adopt(src, defs)
	if err := m.weigh(m.life, defs); err != nil {
		return nil, nil, err
	}
	return defs, offers, nil
}

// saveCache stores the lists of all servers. It only logs an error, since the
// Manager works without a cache.
func (m *Manager) saveCache() {
	if m.opts.Cache == nil {
		return
	}
	m.caching.Do(m.saveCacheNow)
}

func (m *Manager) saveCacheNow() {
	cached := cache.Catalog{Names: m.names.Claims(), Servers: make(map[string]cache.Server)}
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	lists, offers := make([][]*definition, len(sources)), make([][]*resources.Offer, len(sources))
	listed := make([]time.Time, len(sources))
	for i, src := range sources {
		lists[i], offers[i], listed[i] = src.listed, src.offers, src.listedAt
	}
	m.mu.Unlock()
	for i, src := range sources {
		if src.server == nil || src.cfg.InProcess != nil || listed[i].IsZero() {
			continue
		}
		c := cache.Server{Config: src.cfg.cacheKey(), Listed: listed[i], Tools: []string{}}
		for _, d := range lists[i] {
			c.Tools = append(c.Tools, string(d.Raw))
		}
		c.More = resources.Raw(offers[i])
		cached.Servers[src.name] = c
	}
	if err := cached.Save(m.opts.Cache); err != nil {
		m.opts.Logger.Warn("mcphybrid: storing the catalog failed", "error", err)
		return
	}
	m.names.Restore(cached.Names)
	m.logRefused()
}

// knownStore returns the store of the known tools, or nil.
func (o *Options) knownStore() document.Store {
	if o.TrustStore == nil || o.Trust == TrustOff {
		return nil
	}
	return o.TrustStore
}

// logRefused logs the stored prefixes that the Manager can't use, because it has
// given them to other servers.
func (m *Manager) logRefused() {
	for _, c := range m.names.Refused() {
		m.opts.Logger.Warn("mcphybrid: a stored prefix is not used", "prefix", c.Prefix, "server", c.Server)
	}
}
