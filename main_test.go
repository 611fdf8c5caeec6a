package mcphybrid

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { mcptest.Main(m, map[string]func(){"hostile": serveHostile}) }

// Short names for helpers that the tests of several packages share.
var (
	children        = mcptest.Children
	skipUnlessUnix  = mcptest.SkipUnlessUnix
	startGrandchild = mcptest.StartGrandchild
	echoTool        = mcptest.Echo
	serveHTTP       = mcptest.ServeHTTP
	soon            = mcptest.Soon
	resultText      = mcptest.Text
)

// endOfChild is how long a child may take to end by itself, and again after
// SIGTERM.
const endOfChild = 3 * time.Second

// child returns the configuration of a server that is this test program,
// started as a child that behaves as mode says: see [mcptest.Child].
func child(t *testing.T, name, mode string) ServerConfig {
	t.Helper()
	command, env := mcptest.Child(t, mode)
	return ServerConfig{Name: name, Command: command, Env: env}
}

// check returns the first broken invariant of m, of the Managers of its users
// and of the sessions, or nil. Others may use them at the same time.
func check(m *Manager, sessions ...*Session) error {
	m.mu.Lock()
	users := m.users.list()
	m.mu.Unlock()
	for _, u := range users {
		if err := check(u); err != nil {
			return fmt.Errorf("user %q: %w", u.user.id, err)
		}
	}
	if err := checkNames(m); err != nil {
		return err
	}
	if err := cmp.Or(checkBounds(m), checkSources(m)); err != nil {
		return err
	}
	for _, s := range append(sessions, m.def) {
		if err := checkView(s.view()); err != nil {
			return err
		}
		if err := checkPartition(s.view().partition); err != nil {
			return err
		}
		s.mu.Lock()
		v := s.viewLocked()
		list := s.shownLocked(v)
		names, shown, began := s.knownNames, s.shown, s.prefix
		s.mu.Unlock()
		if got, want := s.textOf(shown, began, true, true), s.sections(shown, true, true); got != want {
			return fmt.Errorf("the text of the list is\n%s\ninstead of\n%s", got, want)
		}
		if err := checkSkills(v); err != nil {
			return err
		}
		for _, c := range v.catalogs {
			if i := slices.IndexFunc(c.tools, func(t *BridgeTool) bool { return !t.def.Apps.model }); i >= 0 {
				return fmt.Errorf("%s is not for the model, and in its catalog", c.tools[i].name)
			}
		}
		for _, known := range names {
			t, err := s.toolToCall(v, known.Name)
			if err == nil && (t.owner != known.owner || t.def.Server != known.Server || t.def.Own != known.Own) {
				return fmt.Errorf("%s was of %+v, and means %+v", known.Name, known.Subject, t.def.subject())
			}
		}
		for _, e := range remaining(list) {
			if e.tool != nil && v.isQuarantined(e.tool) {
				return fmt.Errorf("%s is held back, and shown", e.tool.name)
			}
			if e.tool == nil {
				continue
			}
			if t, err := s.toolToCall(v, e.tool.name); err == nil && !t.is(e.tool) {
				return fmt.Errorf("%s is shown as %+v, and means %+v", e.tool.name, e.tool.def.subject(), t.def.subject())
			}
		}
		if err := checkList(s, v, list); err != nil {
			return err
		}
		if err := checkRestored(m, s); err != nil {
			return err
		}
	}
	return nil
}

// checkSkills checks that each skill of a server is one that its server's catalog has now,
// that nothing forbids or holds back, and that has the name of no other.
func checkSkills(v *view) error {
	seen := make(map[string]bool)
	for _, sk := range v.mySkills().list {
		if seen[sk.Name] || v.skill(sk.Name) != sk {
			return fmt.Errorf("the skill %q is another, or there twice", sk.Name)
		}
		seen[sk.Name] = true
		if sk.served == nil {
			if err := checkSkillName(sk.Name); err != nil {
				return err
			}
			continue
		}
		e := sk.served.entry
		if e.Quarantined != nil || e.Barred != nil || !v.rights.Permit(e.Names) || !v.skillRights.Permit(e.Names) || checkSkillName(sk.Name) == nil {
			return fmt.Errorf("the skill %+v is offered: held %v, barred %v", e.Names, e.Quarantined, e.Barred)
		}
		i := slices.IndexFunc(v.catalogs, func(c *catalog) bool { return c.owner == sk.served.of })
		if i < 0 || v.catalogs[i].shelf.Find(e.Key()) != e || v.catalogs[i].prefixes.Server(sk.Name) != e.Names.Server {
			return fmt.Errorf("the skill %+v is of no catalog", e.Names)
		}
	}
	return nil
}

// checkList checks the limits of the list that a session may search beside.
func checkList(s *Session, v *view, list []listItem) error {
	if v.ended || s.Disclosure() == ByBridge || !mayUse(v.rights, SearchToolName) {
		return nil
	}
	all, of := listUse{}, make(map[origin]listUse)
	for _, e := range list {
		if e.slot == asTool {
			tokens := v.tenant.toolTokens(e.tool)
			u := of[e.tool.origin()]
			all, of[e.tool.origin()] = listUse{items: all.items + 1, tokens: all.tokens + tokens}, listUse{items: u.items + 1, tokens: u.tokens + tokens}
		}
	}
	l := v.policy.list
	if all.items > l.items || all.tokens > l.tokens {
		return fmt.Errorf("the list has %+v, the limits are %+v", all, l)
	}
	for from, u := range of {
		if u.items > l.itemsEach || u.tokens > l.tokensEach {
			return fmt.Errorf("the list has %+v of server %q, the limits are %+v", u, from.server, l)
		}
	}
	return nil
}

// A memory is what check has seen of a tenant.
type memory struct {
	names    map[string]rules.Subject // what each registered name means
	restored map[restoredState]bool   // the states that it has restored where nothing is, which gives the same each time
}

// A restoredState is a state of a tenant's sessions.
type restoredState struct {
	disclosure Disclosure
	sum        [sha256.Size]byte
}

var memories = struct {
	sync.Mutex
	of map[weak.Pointer[tenant]]*memory
}{of: make(map[weak.Pointer[tenant]]*memory)}

// recall calls f with the memory of s, which ends with s.
func recall(s *tenant, f func(*memory)) {
	memories.Lock()
	defer memories.Unlock()
	key := weak.Make(s)
	if memories.of[key] == nil {
		memories.of[key] = &memory{make(map[string]rules.Subject), make(map[restoredState]bool)}
		runtime.AddCleanup(s, func(key weak.Pointer[tenant]) {
			memories.Lock()
			defer memories.Unlock()
			delete(memories.of, key)
		}, key)
	}
	f(memories.of[key])
}

// checkNames returns an error if a name means another tool than it did before.
func checkNames(m *Manager) (err error) {
	recall(m.tenant, func(known *memory) {
		for _, t := range m.cur.Load().tools {
			if before, ok := known.names[t.name]; ok && !reflect.DeepEqual(before, t.def.subject()) {
				err = fmt.Errorf("%s means %+v, and before it meant %+v", t.name, t.def.subject(), before)
			}
			known.names[t.name] = t.def.subject()
		}
	})
	return err
}

// checkBounds returns what m keeps more of than its limits say, or nil: of what
// servers list, and of what they listed before.
func checkBounds(m *Manager) error {
	m.mu.Lock()
	attached, limits, all, counted := slices.Clone(m.attached), m.opts.Limits, 0, m.bytes
	sources := make([]source, len(m.sources))
	for i, src := range m.sources {
		sources[i] = *src
	}
	m.mu.Unlock()
	for _, src := range sources {
		size := 0
		for _, d := range src.listed {
			size += len(d.Raw)
		}
		size += resources.Size(src.resources)
		if size != src.bytes || size > limits.MaxListing || len(src.listed)+len(src.resources) > limits.MaxTools {
			return fmt.Errorf("server %q has %d tools of %d bytes, counted as %d", src.name, len(src.listed), size, src.bytes)
		}
		all += size
	}
	if all > limits.MaxCatalog || all != counted {
		return fmt.Errorf("the servers' tools have %d bytes, counted as %d", all, counted)
	}
	if gone := m.cur.Load().removed.count(); gone > maxRemovedTools {
		return fmt.Errorf("%d tools that have left are remembered", gone)
	}
	for _, s := range attached {
		for _, t := range s.view().inline {
			if n := s.registrar.copies(t.name); n > 100 { // as many goroutines may be at it
				return fmt.Errorf("%d copies of %s are remembered", n, t.name)
			}
		}
	}
	return nil
}

// checkSources returns which source of m is not in the next catalog as it is, or can't be
// found by its name, or nil.
func checkSources(m *Manager) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for i, src := range m.sources {
		has, want := m.perServer[i], m.newServerTools(src, nil)
		switch {
		case (has == nil) != (want == nil):
			return fmt.Errorf("server %q has %v, want %v", src.name, has, want)
		case has != nil:
			if has.server != src.name || !slices.Equal(has.defs, want.defs) || !slices.Equal(has.entries, want.entries) || !slices.Equal(has.changed, want.changed) ||
				!reflect.DeepEqual(has.problems, want.problems) || !reflect.DeepEqual(has.needs, want.needs) || has.declares != want.declares || has.alwaysLoaded != want.alwaysLoaded {
				return fmt.Errorf("server %q has %+v, want %+v", src.name, has, want)
			}
		}
		if slices.Contains(names, src.name) {
			continue // its name means the first
		}
		if names = append(names, src.name); m.sourceNamed(src.name) != src {
			return fmt.Errorf("server %q is not found", src.name)
		}
	}
	if len(m.named) != len(names) || len(m.perServer) != len(m.sources) {
		return fmt.Errorf("%d names and tools of %d for %d servers", len(m.named), len(m.perServer), len(m.sources))
	}
	return nil
}

// checkRestored returns how what a session has shown, and what it saves next,
// changes when it is saved and restored: in the same Manager, and in one that has
// none of its servers, skills and tools.
func checkRestored(m *Manager, s *Session) error {
	s.mu.Lock()
	v := s.viewLocked()
	list := s.shown
	state, next := s.stateLocked(v), s.shownLocked(v)
	s.mu.Unlock()
	if v.ended {
		return nil
	}
	data := state.JSON(s.tenant.opts.MaxState, s.tenant.parts)
	parsed, err := saved.Parse(data, s.tenant.opts.MaxState)
	if err != nil {
		return err
	}
	err = parsed.Whole(s.tenant.parts)
	for i := range parsed.Tools {
		err = errors.Join(err, parsed.Load(&parsed.Tools[i], s.tenant.parts))
	}
	if err != nil {
		return err
	}
	want := listBytes(s, list[:min(len(list), len(parsed.Shown))]) // a large state has not all
	places := map[string]*tenant{"here": s.tenant}
	tried, done, inParts := restoredState{s.asked.disclosure, sha256.Sum256(data)}, false, data
	recall(s.tenant, func(known *memory) { done = known.restored[tried] })
	if !done {
		elsewhere := NewManager(nil)
		defer func() { _ = elsewhere.Close() }()
		own := elsewhere
		if id := s.tenant.user.id; id != "" {
			if own, err = elsewhere.newUser(id, nil); err != nil {
				return err
			}
		}
		logger := own.opts.Logger
		own.opts = s.tenant.opts
		own.opts.Logger, own.opts.OnEvent, own.parts = logger, nil, s.tenant.parts
		if tried.sum[0]%2 == 0 && own.parts == nil {
			own.parts = saved.PartsOf(new(partMap), logger)
			inParts = state.JSON(s.tenant.opts.MaxState, own.parts)
		}
		places["elsewhere"] = own.tenant
	}
	for place, sc := range places {
		data := data
		if place == "elsewhere" {
			data = inParts
		}
		restored, _, err := sc.restore(s.rights, s.asked.skills, state.Intent, data, &SessionOptions{Disclosure: s.asked.disclosure})
		if err != nil {
			return err
		}
		restored.mu.Lock()
		if was, is := s.transcriptCopy(), restored.transcriptCopy(); len(parsed.Shown) == len(state.Shown) && (was.begun != is.begun || is.base > is.told || int(is.told) > len(restored.shown) || len(was.inserts) != len(is.inserts)) {
			restored.mu.Unlock()
			return fmt.Errorf("%s: the model was told %+v, and %+v is restored", place, was, is)
		}
		now := restored.viewLocked()
		list, again, after := restored.shown, restored.stateLocked(now), restored.shownLocked(now)
		restored.mu.Unlock()
		got := listBytes(restored, list)
		if want, got := listBytes(s, next), listBytes(restored, after); place == "here" && want != got && len(parsed.Shown) == len(state.Shown) && s.tenant.current(v.partition) && !now.ended {
			return fmt.Errorf("restored here, a session goes on with\n%s\ninstead of\n%s", got, want)
		}
		restored.Close()
		switch {
		case !s.tenant.current(v.partition) || now.ended:
			continue // something may have left or be held back by now
		case got != want:
			return fmt.Errorf("restored %s, a session shows\n%s\ninstead of\n%s", place, got, want)
		}
		if parsed.Full && !again.Full {
			return fmt.Errorf("restored %s, a session has forgotten that its list is full", place)
		}
		if text.JSON([]any{again.Tools, again.Shown, again.Active}) != text.JSON([]any{parsed.Tools, parsed.Shown, parsed.Active}) {
			return fmt.Errorf("restored %s, a session saves\n%s\ninstead of\n%s", place, text.JSON(again), text.JSON(parsed))
		}
	}
	recall(s.tenant, func(known *memory) { known.restored[tried] = true })
	return nil
}

// listBytes returns what a session sends of its list.
func listBytes(s *Session, list []listItem) string {
	var b strings.Builder
	b.WriteString(s.sections(list, true, true))
	for _, e := range list {
		switch {
		case e.slot == asMeta:
			b.WriteString("\n" + definitionText(metaTool{s, e.meta}))
		case e.isTool():
			b.WriteString("\n" + definitionText(e.tool))
			exported, err := exportTool(e.tool, provider.MCP, false)
			fmt.Fprint(&b, string(exported.JSON), err)
		}
	}
	return b.String()
}

func checkView(v *view) error {
	places := make(map[string]int)
	for _, list := range [][]*BridgeTool{v.inline, v.active} {
		for _, t := range list {
			places[t.name]++
			if !v.rights.Permit(t.def.subject()) {
				return fmt.Errorf("the session has %s and may not use it", t.name)
			}
		}
	}
	var all []*BridgeTool
	for t, st := range v.each() {
		switch there, _ := v.lookup(t.name); {
		case st == hidden:
			continue
		case there != t:
			return fmt.Errorf("%s is two tools", t.name)
		case st.Searchable() && !v.isActive(t.name):
			places[t.name]++
		}
		if places[t.name] != 1 {
			return fmt.Errorf("%s is in %d of inline, deferred and active", t.name, places[t.name])
		}
		all = append(all, t)
	}
	position := -1
	for _, t := range v.inline {
		next := slices.Index(all, t)
		if next <= position {
			return fmt.Errorf("inline tool %s is not in registration order", t.name)
		}
		position = next
	}
	parts := v.parts(func(_ *BridgeTool, st standing) bool { return st != hidden })
	found := make(map[string]int)
	for _, p := range parts {
		for doc := range p.indexed() {
			if p.keep(doc) {
				found[p.document(doc).name]++
			}
		}
	}
	for _, t := range all {
		if found[t.name] != 1 {
			return fmt.Errorf("%s is found %d times", t.name, found[t.name])
		}
	}
	for _, c := range v.catalogs {
		if err := checkCatalog(c); err != nil {
			return err
		}
	}
	return nil
}

func checkCatalog(c *catalog) error {
	for _, t := range c.tools {
		switch {
		case !text.IsSafeName(t.name):
			return fmt.Errorf("%q is no safe name", t.name)
		case c.tool(t.name) != t:
			return fmt.Errorf("%s is two tools", t.name)
		}
	}
	for i, t := range c.documents() {
		if x, ok := c.index().(*search.Index); ok && x.Document(i) != t.document(c.hints.of(t)) {
			return fmt.Errorf("document %d is not that of %s", i, t.name)
		}
	}
	for name := range c.quarantined {
		if c.tool(name) != nil {
			return fmt.Errorf("%s is held back, and in the catalog", name)
		}
	}
	for t, needs := range c.needs {
		for i, n := range append(slices.Clip(needs), t) {
			if c.tool(n.name) != n || slices.Contains(needs[:i], n) {
				return fmt.Errorf("%s needs %v", t.name, toolNames(needs))
			}
		}
	}
	if c.index().Len() != c.indexed() {
		return fmt.Errorf("the index has %d documents for %d tools", c.index().Len(), c.indexed())
	}
	switch x := c.index().(type) {
	case *search.Index:
		return x.Check()
	case *BM25Index:
		var texts []string
		for _, t := range c.documents() {
			text := t.def.Server + " " + t.def.Own + " " + t.def.Description
			if h := c.hints.of(t); h != nil {
				text += " " + h.Words()
			}
			texts = append(texts, text)
		}
		postings := func(x *BM25Index) string { return fmt.Sprint(reflect.ValueOf(x).Elem().FieldByName("postings")) }
		if len(texts) > 0 && postings(x) != postings(NewBM25Index(texts, nil)) {
			return fmt.Errorf("the index is not that of the %d deferred tools", len(texts))
		}
	}
	return nil
}

// checkRegistry returns how the registry differs from what the session offers,
// or nil. Nobody else may use them at the same time.
func checkRegistry(s *Session, r *ToolRegistry) error {
	var want, got []string
	offered := s.offeredTools()
	for _, t := range offered {
		want = append(want, t.Name())
	}
	for _, t := range r.List() {
		got = append(got, t.Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Errorf("the registry holds %v, the session offers %v", got, want)
	}
	if groups := groupsOf(offered); len(groups)+len(r.groups) > 0 && !reflect.DeepEqual(groups, r.groups) {
		return fmt.Errorf("the registry has the groups %v, want %v", r.groups, groups)
	}
	return nil
}

// newTestManager returns a started Manager. When the test ends, it is checked
// and closed, and must have left nothing in its registry.
func newTestManager(t *testing.T, opts *Options) (*Manager, *ToolRegistry) {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	r := NewRegistry()
	if o.Registry == nil {
		o.Registry = r
	}
	if o.Semantic != nil && o.Semantic.Timeout == 0 { // the default is short for a slow machine
		semantic := *o.Semantic
		semantic.Timeout = time.Minute
		o.Semantic = &semantic
	}
	m := NewManager(&o)
	t.Cleanup(func() {
		assert.NoError(t, check(m))
		if o.Registry == r {
			// A change that a server has just announced may not have arrived
			// yet.
			assert.EventuallyWithT(t, func(c *assert.CollectT) { assert.NoError(c, checkRegistry(m.def, r)) }, time.Minute, time.Millisecond)
		}
		assert.NoError(t, m.Close())
		assert.Empty(t, r.List())
		assert.Empty(t, r.groups)
		assert.Nil(t, r.activate)
	})
	require.NoError(t, m.Start(t.Context()))
	return m, r
}

// inProcess returns a real MCP server in this process with n tools named
// tool_000 and so on. mcp-go lists them in this order.
func inProcess(name string, n int) ServerConfig {
	return serving(name, mcptest.Chores(name, n)...)
}

// ofSessions returns a function for [Options.OnEvent] that drops what happens to servers,
// which happens at any time.
func ofSessions(tell func(Event)) func(Event) {
	return func(e Event) {
		if e.Session != nil {
			tell(e)
		}
	}
}

// serving returns a real MCP server in this process with the given tools.
func serving(name string, tools ...mcpserver.ServerTool) ServerConfig {
	return ServerConfig{Name: name, InProcess: mcptest.Server(name, tools...)}
}

// mcpServer returns the server that serving configured.
func mcpServer(cfg ServerConfig) *mcpserver.MCPServer { return cfg.InProcess.(*mcpserver.MCPServer) }

func toolNames[T Tool](tools []T) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name())
	}
	return names
}
