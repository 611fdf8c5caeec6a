package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// receive makes what a server has listed part of the catalog. If it fails, the server keeps
// what it had.
//
//	parseDefinitions   the tools, checked (serverdefinition.go) and named (naming.go)
//	checkResources     likewise the resources, templates, prompts and skills (internal/resources)
//	idleEntries        what of the configuration matches none of these
//	bindCalls          how each tool is called
//	countTokens        what each costs (toolcost.go)
//	readInstructions   what the server says of itself
//	setList            ─▶ publishChange, which runs, unless the list is as it was
//	                        1. storeList     the list, within its limits
//	                        2. review        what of it may be used (review.go)
//	                        3. stageSource   its tools (source.go, servertools.go)
//	                        4. cacheList     for the next run (cache.go)
//	                      and then makes the next catalog (publish.go, catalog.go). Sessions look for it when they are used next
//	                      (view.go); registries hear of it at once (registrar.go).
func (m *Manager) receive(ctx context.Context, src *source, list upstream.List) error {
	defs, problems, ignored, err := src.parseDefinitions(ctx, list.Elements[upstream.Tools], m.names, m.sharedDefinitions(), m.opts.Limits.MaxDefinition)
	if err != nil {
		return err
	}
	others, more, err := m.checkResources(ctx, src, list)
	if err != nil {
		return err
	}
	problems = slices.Concat(problems, more, src.idleEntries(defs, others, ignored))
	for i, err := range problems {
		problems[i] = src.hide(err)
	}
	m.bindCalls(src, defs)
	if err := m.countTokens(ctx, defs); err != nil {
		return err
	}
	return m.setList(src, received{defs, others, list.Skilled, src.readInstructions(list.Instructions), problems, audienceOf(list), list.Changing})
}

// parseDefinitions checks the elements of a tools/list result and names the tools.
// It returns the usable tools that the configuration permits, in their order.
// problems has an error for each element that is malformed, too large, can't be named or
// repeats a name. ignored
// has what patterns see of the tools that the configuration does not permit. err is
// that of ctx.
func (src *source) parseDefinitions(ctx context.Context, elements []upstream.Element, book *names.Book, texts *rawDefinitions, maxBytes int) (defs []*definition, problems []error, ignored []rules.Subject, err error) {
	defs = []*definition{} // not nil: the server has listed its tools, if none
	seen := make(map[string]bool)
	for i, e := range elements {
		if err := ctx.Err(); err != nil {
			return nil, nil, nil, err
		}
		var d *definition
		err := e.Problem
		if err == nil {
			d, err = texts.parse(src.name, e.Raw, maxBytes)
		}
		if err == nil && seen[d.Own] {
			err = fmt.Errorf("another tool is named %q too; the first is kept", text.Line(d.Own, text.MaxName))
		}
		if err == nil {
			err = src.nameTool(book, d)
		}
		if err == nil && !permitsOwn(src.cfg.Tools, d.subject()) {
			ignored = append(ignored, d.subject())
			continue
		}
		if err != nil {
			problems = append(problems, text.Bounded(fmt.Errorf("mcphybrid: server %q: tool %d: %w", src.name, i, err)))
			continue
		}
		seen[d.Own] = true
		defs = append(defs, d)
	}
	return defs, problems, ignored, nil
}

// sharedDefinitions returns the definitions that m shares with others, or nil. A system shares
// none: few of its servers list the same, and an entry takes about 200 bytes.
func (m *Manager) sharedDefinitions() *rawDefinitions {
	if m.system == nil {
		return nil
	}
	return m.system.rawDefinitions
}

// checkResources returns what a list has besides tools. It keeps what the server listed last
// time, unchanged.
func (m *Manager) checkResources(ctx context.Context, src *source, list upstream.List) ([]*resources.Definition, []error, error) {
	m.mu.Lock()
	old := src.resources
	m.mu.Unlock()
	return src.lister(m.opts.Access, m.names, m.opts.Limits.MaxDefinition).Check(ctx, list, old)
}

// lister returns what checks the lists of the server besides its tools.
func (src *source) lister(access Access, book *names.Book, maxBytes int) *resources.Lister {
	l := &resources.Lister{Server: src.name, Names: src.subjectOf, MaxBytes: maxBytes, Skill: func(it *resources.Item) (string, error) { return src.nameSkill(book, it) }, Bar: func(t rules.Subject) error {
		if !permitsOwn(src.cfg.Tools, t) || !rules.Access(access).Permits(t) {
			return ErrNotPermitted
		}
		return nil
	}}
	if src.cfg.NoSkills { // they are kept, since others may share the cache
		l.NoSkills = ErrNotPermitted
	}
	return l
}

// idleEntries returns an error for each entry of [ServerConfig.Tools] that matches nothing of
// what the server has listed.
func (src *source) idleEntries(defs []*definition, others []*resources.Definition, ignored []rules.Subject) []error {
	known := slices.Clone(ignored)
	for _, o := range others {
		known = append(known, o.Entry.Names)
	}
	for _, d := range defs {
		known = append(known, d.subject())
	}
	for i := range known {
		known[i].Within = true
	}
	return rules.Access(src.cfg.Tools).Idle(rules.Known{Tools: known}, fmt.Sprintf("server %q: tools", src.name))
}

// readInstructions returns what is kept of the instructions that the server gave: "" if
// nothing of them could be read. [ServerConfig.NoInstructions] only keeps them from being
// shown, since others may share the cache.
func (src *source) readInstructions(given string) string {
	kept := src.hide(errors.New(text.Cut(given, maxInstructions))).Error() // a server may repeat its secrets
	if text.Lines(kept) == "" {
		return ""
	}
	return kept
}

// bindCalls makes defs callable on the server of src. It keeps the *definition of a
// tool that the server listed last time, unchanged.
func (m *Manager) bindCalls(src *source, defs []*definition) {
	m.mu.Lock()
	listed := src.listed
	m.mu.Unlock()
	known := make(map[string]*definition, len(listed))
	for _, d := range listed {
		known[d.Own] = d
	}
	for i, d := range defs {
		if old := known[d.Own]; old != nil && bytes.Equal(old.Raw, d.Raw) {
			defs[i] = old
			continue
		}
		d.call = func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			return src.server.Call(ctx, upstream.Tool{Name: d.Own, Repeatable: d.Repeatable(), Task: d.Task, Bar: func() error { return m.mayNotCall(src, d) }}, args)
		}
	}
}

// A received is what a server has listed, checked.
type received struct {
	defs         []*definition // not nil
	resources    []*resources.Definition
	skilled      bool // it has skills, listed or not
	instructions string
	problems     []error
	audience     audience
	changing     bool // the credentials come from a login or from the host
}

// has reports whether src has that list.
func (src *source) has(list received) bool {
	alike := func(a, b error) bool { return a.Error() == b.Error() }
	return slices.Equal(src.listed, list.defs) && slices.Equal(src.resources, list.resources) && src.rawInstructions == list.instructions && src.changing == list.changing && src.skilled == list.skilled &&
		slices.EqualFunc(src.problems, list.problems, alike) && src.audience == list.audience
}

// setList makes what a server has listed that of src, in one change of the catalog.
func (m *Manager) setList(src *source, list received) error {
	err := m.publishChange(func() error {
		if !slices.Contains(m.sources, src) {
			return errors.New("the server was removed while it started")
		}
		if !src.listedAt.IsZero() && src.has(list) {
			src.listedAt = time.Now()
			m.cache.Again(src.name, src.listedAt)
			if !src.live { // it still has what the cache said
				src.live = true
				m.embed()
			}
			return errNoChange
		}
		if err := m.storeList(src, list, time.Now()); err != nil {
			return err
		}
		m.review(src)
		m.stageSource(src)
		m.cacheList(src, m.cache, true)
		src.live = true
		return nil
	})
	if err == nil && m.startsRunning.Load() == 0 { // else Start does so once for all servers
		m.saveAndIndex()
	}
	return err
}

// storeList stores the list of src, received at the time then. It fails if it has more bytes
// than [config.Limits.MaxListing], or all servers together than [config.Limits.MaxCatalog]. The caller holds mu.
func (m *Manager) storeList(src *source, list received, then time.Time) error {
	size, others := resources.Size(list.resources), m.bytes-src.bytes
	for _, d := range list.defs {
		size += len(d.Raw)
	}
	if limit := m.opts.Limits.MaxListing; size > limit { // the list is from the cache
		return fmt.Errorf("its tools, resources, prompts and skills have %d bytes, more than the limit of %d", size, limit)
	}
	if limit := m.opts.Limits.MaxCatalog; size > limit-others {
		return fmt.Errorf("its tools, resources, prompts and skills have %d bytes and those of other servers %d, together more than the limit of %d", size, others, limit)
	}
	src.listed, src.resources, src.rawInstructions, src.problems, src.audience = list.defs, list.resources, list.instructions, list.problems, list.audience
	src.bytes, src.listedAt, src.changing = size, then, list.changing
	m.bytes = others + size
	src.skilled, src.unlisted = list.skilled, slices.DeleteFunc(src.unlisted, func(o *resources.Definition) bool { return src.lists(o.Entry.ID) })
	return nil
}

// lists reports whether the server lists the skill whose SKILL.md has that URI. The caller
// holds mu.
func (src *source) lists(uri string) bool {
	return slices.ContainsFunc(src.resources, func(o *resources.Definition) bool {
		return o.Entry.Kind == resources.Skill && o.Entry.ID == uri
	})
}
