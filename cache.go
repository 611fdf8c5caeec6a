package mcphybrid

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/cache"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// An audience is whom a cache may give the lists of a server.
type audience int

const (
	public      audience = iota // all with the same configuration, but for its credentials
	credentials                 // those that have the same credentials there, too
	nobody                      // the credentials come from a login or from the host
)

func audienceOf(list upstream.List) audience {
	switch {
	case !list.Private:
		return public
	case list.Changing:
		return nobody
	}
	return credentials
}

// cacheKey returns the key of a server's lists for an audience, or "" if they are not kept.
// It differs if the configuration, or what servers are told of the host, may give the
// server other tools.
func cacheKey(cfg *ServerConfig, extensions map[string]any, of audience) string {
	parts := []any{cfg.Command, cfg.Args, cfg.Dir, cfg.URL, cfg.Tools, cfg.Prefix}
	if _, isGateway := extensions[upstream.GatewayExtension]; isGateway { // it differs with each run
		extensions = maps.Clone(extensions)
		if delete(extensions, upstream.GatewayExtension); len(extensions) == 0 {
			extensions = nil
		}
	}
	if extensions != nil {
		parts = append(parts, extensions)
	}
	switch {
	case of == public:
	case of == nobody || cfg.HeaderFunc != nil || cfg.HeadersHelper != "" || cfg.HTTPClient != nil:
		return ""
	default:
		// So few bits tell credentials apart, and don't tell what they are.
		sum := sha256.Sum256([]byte(text.JSON([]any{cfg.Env, cfg.Headers})))
		parts = append(parts, "credentials", sum[:4])
	}
	return cache.Key(parts...)
}

// applyCached gives servers that are not connected the tools that the cache has of them, in one
// change of the catalog. One that is connected lists again. It returns the servers whose
// list is too old.
func (m *Manager) applyCached(sources []*source, cached func(name string) *cache.Server) (stale []*source, err error) {
	type found struct {
		src *source
		received
		listed time.Time
	}
	var lists []found
	for _, src := range sources {
		if src.server == nil || src.invalid != nil {
			continue
		}
		c := cached(src.name)
		if c == nil {
			continue
		}
		kept, own := public, cacheKey(&src.cfg, m.opts.Extensions, credentials)
		if c.Config == own {
			kept = credentials
		}
		if c.Config == "" || kept == public && c.Config != cacheKey(&src.cfg, m.opts.Extensions, public) {
			continue
		}
		if src.server.ListAgain() {
			continue // what it lists counts
		}
		list, ok := m.fromCache(src, c, own)
		if !ok {
			continue // we start the server and list its tools instead
		}
		list.audience = kept
		lists = append(lists, found{src, list, c.Listed})
		if age := time.Since(c.Listed); src.cfg.Eager || m.opts.Limits.Refresh > 0 && (age > m.opts.Limits.Refresh || age < 0) {
			stale = append(stale, src)
		}
	}
	return stale, m.publishChange(func() error {
		if len(lists) == 0 {
			return errNoChange
		}
		for _, f := range lists {
			f.problems = f.src.problems
			if slices.Contains(m.sources, f.src) && f.listed.After(f.src.listedAt) && f.src.server.SetCached() && m.storeList(f.src, f.received, f.listed) == nil { // else we start the server
				m.review(f.src)
				m.stageSource(f.src)
				m.cacheList(f.src, m.cache, false)
			}
		}
		return nil
	})
}

// refreshCache reads [Options.Cache] again. After an error nothing has changed.
func (m *Manager) refreshCache() error {
	cached, err := m.cache.Read()
	if err != nil {
		return err
	}
	m.names.Restore(cached.Names)
	m.logStored(nil)
	m.cache.Save()
	m.mu.Lock()
	sources := slices.DeleteFunc(slices.Clone(m.sources), func(src *source) bool { return !src.begun }) // whose names are for Start to give
	m.mu.Unlock()
	_, err = m.applyCached(sources, cached.News)
	return err
}

// fromCache returns what the cache has of src, if it can be used. A call of one of the tools
// starts the server. own is the key for the credentials of src.
func (m *Manager) fromCache(src *source, c *cache.Server, own string) (list received, ok bool) {
	all := resources.Listed(c.Lists, cache.Tools)
	ctx := context.Background()
	defs, problems, _, err := src.parseDefinitions(ctx, all.Elements[upstream.Tools], m.names, m.sharedDefinitions(), m.opts.Limits.MaxDefinition)
	others, more, _ := src.lister(m.opts.Access, m.names, m.opts.Limits.MaxDefinition).Check(ctx, all, nil)
	if problems = append(problems, more...); err != nil || len(problems) > 0 || len(defs)+len(others) > m.opts.Limits.MaxTools {
		return list, false
	}
	m.bindCalls(src, defs)
	list = received{defs: defs, resources: others}
	// Nothing says whose instructions are: they are for the same credentials only.
	if said := c.Lists[cache.Instructions]; len(said) == 2 && said[1] == own {
		list.instructions = src.readInstructions(said[0])
	}
	return list, m.countTokens(m.life, defs) == nil
}

// cacheList puts what src has listed into a cache. The caller holds mu.
func (m *Manager) cacheList(src *source, in cache.Cache, isNew bool) {
	if src.cfg.InProcess != nil {
		return
	}
	key := cacheKey(&src.cfg, m.opts.Extensions, src.audience)
	if key == "" {
		in.Forget(src.name)
		return
	}
	defs, others, instructions, whose := src.listed, src.resources, src.rawInstructions, ""
	if !src.changing {
		whose = cacheKey(&src.cfg, m.opts.Extensions, credentials)
	}
	in.Put(src.name, src.listedAt, isNew, func() *cache.Server {
		lists := resources.Raw(others)
		lists[cache.Tools] = make([]string, len(defs))
		for i, d := range defs {
			lists[cache.Tools][i] = string(d.Raw)
		}
		if instructions != "" && whose != "" {
			lists[cache.Instructions] = []string{instructions, whose}
		}
		return &cache.Server{Config: key, Lists: lists}
	})
}
