package mcphybrid

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A cachedCatalog is what is stored of the servers' tools, so that there is a
// catalog before a server runs.
type cachedCatalog struct {
	Version int                     `json:"version"`
	Servers map[string]cachedServer `json:"servers"` // by name
}

const cacheVersion = 1

type cachedServer struct {
	Config string    `json:"config"` // see cacheKey
	Listed time.Time `json:"listed"` // when the server said so last
	Tools  []string  `json:"tools"`  // elements of tools/list results, as strings to keep each byte
}

// cacheKey tells configurations apart of which a server may have other tools.
// Secrets have no part in it: neither the environment nor headers.
func (sc *ServerConfig) cacheKey() string {
	data, _ := json.Marshal([]any{sc.Command, sc.Args, sc.Dir, sc.URL, sc.Tools})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// loadCache gives servers that are not connected the tools that they had when
// they were last listed, in one step of the catalog, and returns those whose
// list is too old.
func (m *Manager) loadCache(sources []*source) (stale []*source, err error) {
	if m.opts.Cache == nil {
		return nil, nil
	}
	data, err := m.opts.Cache.Load()
	if err != nil || data == nil {
		return nil, err
	}
	var cached cachedCatalog
	if err := json.Unmarshal(data, &cached); err != nil {
		return nil, fmt.Errorf("the cached catalog: %w", text.JSONError(data, err))
	}
	if cached.Version != cacheVersion {
		return nil, nil // another version's: made anew
	}
	type fill struct {
		src  *source
		defs []*definition
	}
	var fills []fill
	for _, src := range sources {
		c, ok := cached.Servers[src.name]
		if !ok || src.server.cfg.InProcess != nil || src.server.invalid != nil || c.Config != src.server.cfg.cacheKey() {
			continue
		}
		defs, err := src.server.fromCache(c.Tools, c.Listed)
		if err != nil {
			continue // it is listed instead
		}
		fills = append(fills, fill{src, defs})
		if age := time.Since(c.Listed); src.server.cfg.Eager || m.opts.Refresh > 0 && (age > m.opts.Refresh || age < 0) {
			stale = append(stale, src)
		}
	}
	if len(fills) == 0 {
		return nil, nil
	}
	return stale, m.change(func() error {
		for _, f := range fills {
			f.src.listed = f.defs
			m.judge(f.src)
		}
		return nil
	})
}

// fromCache returns the definitions of tools as they were when listed. The
// server is then connected when one is called.
func (s *server) fromCache(tools []string, listed time.Time) ([]*definition, error) {
	elements := make([]element, len(tools))
	for i, raw := range tools {
		elements[i].raw = json.RawMessage(raw)
	}
	defs, problems, err := parseDefinitions(context.Background(), s.cfg, elements, s.limits.maxDefinition)
	if err != nil || len(problems) > 0 || len(defs) > s.limits.maxTools {
		return nil, fmt.Errorf("the cached tools can't be used: %v", problems)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range defs {
		defs[i] = s.same(d)
	}
	s.listed = listed
	s.status.Tools = len(defs)
	s.setLocked(StateCached, nil)
	return defs, nil
}

// saveCache stores the tools of all servers. What went wrong is logged: a
// catalog can be had without.
func (m *Manager) saveCache() {
	if m.opts.Cache == nil {
		return
	}
	m.cacheMu.Lock() // saves in order
	defer m.cacheMu.Unlock()
	cached := cachedCatalog{Version: cacheVersion, Servers: make(map[string]cachedServer)}
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	lists := make([][]*definition, len(sources))
	for i, src := range sources {
		lists[i] = src.listed
	}
	m.mu.Unlock()
	for i, src := range sources {
		if src.server == nil || src.server.cfg.InProcess != nil {
			continue
		}
		listed := src.server.lastListed()
		if listed.IsZero() {
			continue
		}
		c := cachedServer{Config: src.server.cfg.cacheKey(), Listed: listed, Tools: []string{}}
		for _, d := range lists[i] {
			c.Tools = append(c.Tools, string(d.raw))
		}
		cached.Servers[src.name] = c
	}
	data, err := json.Marshal(cached)
	if err == nil {
		err = m.opts.Cache.Save(data)
	}
	if err != nil {
		m.opts.Logger.Warn("mcphybrid: the catalog could not be stored", "error", err)
	}
}
