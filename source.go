package mcphybrid

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// A source is one place in the registration order: a server, or a group of tools
// without a connection. The Manager's mu guards the fields that change. After a change of
// what catalogs take of it, call [Manager.stageSource].
type source struct {
	name    string
	cfg     ServerConfig     // of the server
	server  *upstream.Server // nil for tools without a connection
	account *login.Account   // at the server; nil unless it has a URL
	invalid error            // why cfg is invalid, or nil

	claim     names.Claim     // of the names of its tools
	number    int             // of the claim's prefix
	collision *CollisionError // or nil

	begun    bool      // the server was started
	live     bool      // the server has listed its tools in this run
	listedAt time.Time // when the server last listed its tools; zero if never

	listed          []*definition           // the tools that the server listed; nil before its first list
	resources       []*resources.Definition // what it listed besides tools
	skilled         bool                    // it has skills, listed or not
	unlisted        []*resources.Definition // skills that it does not list, asked for by their URIs; the last one last
	rawInstructions string                  // the instructions that it gave
	audience        audience                // whom a cache may give these, but for the instructions
	changing        bool                    // the credentials come from a login or from the host
	bytes           int                     // of the definitions that it listed

	// What catalogs take of these.
	defs         []*definition      // the tools that are not in quarantine; without a connection, all tools
	entries      []*resources.Entry // those of resources, some of them in quarantine
	instructions string             // those that it gave, or "" if they are held back or left out
	changed      []*ChangedError    // what has changed
	problems     []error
}

// isUnlisted reports whether it is a server that has never listed its tools. The caller
// holds mu.
func (src *source) isUnlisted() bool { return src.server != nil && src.listedAt.IsZero() }

// hide hides the server's secrets in err.
func (src *source) hide(err error) error {
	if src.server == nil {
		return err
	}
	return src.server.Hide(err)
}

// sourceNamed returns the source with that name, the first one if there are several, or nil.
// The caller holds mu.
func (m *Manager) sourceNamed(name string) *source { return m.named[name] }

// stageSource prepares what the next catalog takes of src, its tools among that. A new source
// is registered as the last one. The caller holds mu.
func (m *Manager) stageSource(src *source) {
	i := slices.Index(m.sources, src)
	if i < 0 {
		m.sources, m.perServer = append(m.sources, src), append(m.perServer, m.newServerTools(src, nil))
		if m.named[src.name] == nil {
			m.named[src.name] = src
		}
		return
	}
	if now := m.newServerTools(src, m.perServer[i]); now != m.perServer[i] {
		if m.toolsShared {
			m.perServer, m.toolsShared = slices.Clone(m.perServer), false
		}
		m.perServer[i] = now
	}
}

// dropSource forgets src and reports whether it was there. The caller holds mu.
func (m *Manager) dropSource(src *source) bool {
	i := slices.Index(m.sources, src)
	if i < 0 {
		return false
	}
	m.sources, m.perServer = slices.Delete(m.sources, i, i+1), slices.Delete(slices.Clone(m.perServer), i, i+1)
	m.bytes -= src.bytes
	m.cache.Forget(src.name)
	if m.named[src.name] == src {
		delete(m.named, src.name)
		behind := m.sources[i:] // src was the first of its name
		if j := slices.IndexFunc(behind, func(other *source) bool { return other.name == src.name }); j >= 0 {
			m.named[src.name] = behind[j]
		}
	}
	return true
}

// newSource returns the source of a server. Starting the server reports an invalid
// cfg.
func (m *Manager) newSource(cfg ServerConfig) *source {
	cfg = cfg.Clone()
	src := &source{name: cfg.Name, cfg: cfg, claim: names.Alone(cfg.Name, cfg.Prefix)}
	if src.invalid = src.cfg.Validate(); src.invalid == nil {
		src.invalid = m.opts.checkSelections(&src.cfg)
	}
	if src.invalid == nil && m.sourceNamed(cfg.Name) != nil {
		src.invalid = ErrDuplicate
	}
	src.server = upstream.New(m.upstreamConfig(src), src.limits(&m.opts), func(ctx context.Context, list upstream.List) error {
		return m.receive(ctx, src, list)
	})
	return src
}

// idleSelections are the problems with a ResultSelect that is for no tool which the server has
// listed.
func (src *source) idleSelections() (problems []error) {
	for _, tool := range slices.Sorted(maps.Keys(src.cfg.ResultSelect)) {
		if !slices.ContainsFunc(src.listed, func(d *definition) bool { return d.Own == tool }) {
			problems = append(problems, src.hide(fmt.Errorf("mcphybrid: server %q: its ResultSelect is for %q, which is not there", src.name, text.Line(tool, text.MaxName))))
		}
	}
	return problems
}

// newServerTools returns what catalogs take of src. It is old, what they took before, if that
// is the same still, and keeps the *BridgeTool of each tool that old has with the same
// definition. It is nil if there is nothing to take.
func (m *Manager) newServerTools(src *source, old *serverTools) *serverTools {
	s := &serverTools{server: src.name, hide: src.hide, number: src.number, defs: src.defs, entries: src.entries, changed: src.changed, problems: src.problems, instructions: src.instructions, selects: src.cfg.ResultSelect, skilled: src.skilled && !src.cfg.NoSkills, unlisted: src.cfg.UnlistedResources, lists: src.listed != nil || src.server == nil}
	if src.collision != nil {
		s.problems = slices.Concat([]error{src.collision}, src.problems)
	}
	if src.listed != nil {
		s.needs = src.cfg.Needs
		s.problems = slices.Concat(s.problems, src.idleSelections())
	}
	switch {
	case s.onlyTools() && len(src.defs) == 0 && !s.lists:
		return nil
	case s.onlyTools() && old != nil && old.onlyTools() && old.lists == s.lists && old.instructions == s.instructions && slices.Equal(old.defs, src.defs):
		return old
	}
	s.gist = text.Gist(s.instructions, maxGist)
	s.makeTools(m.owner, rules.Access(m.opts.Access), old)
	return s
}
