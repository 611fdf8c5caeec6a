// Package trust remembers the definitions of servers' tools as they were first
// seen or last accepted, and tells which have changed. It keeps hashes, in memory
// and in a store that several processes may share.
package trust

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/document"
	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// MaxServers is how many servers a [Memory] remembers.
const MaxServers = 10_000

// A Definition is one tool as its server listed it.
type Definition struct {
	Name string        // the tool's own
	Sum  [32]byte      // SHA-256 of its bytes
	Hash func() string // equal for definitions that say the same
}

// A Verdict says how a definition compares to the known one.
type Verdict struct {
	Finding Finding
	Since   time.Time // when the known definition was first seen or accepted; zero unless it has changed
	Was     string    // its hash; empty unless it has changed
}

// A Finding is the result of a comparison.
type Finding uint8

const (
	Known   Finding = iota // it is the known definition, or is known from now on
	Changed                // it differs from the known definition
	Added                  // it is new and waits for [Memory.Accept]
	Beyond                 // it is new, and the limit of remembered tools is reached
)

// A Caution says for which tools a [Memory] waits until they are accepted.
type Caution uint8

const (
	Never   Caution = iota // new tools are known at once
	Suspect                // those that a server adds while one of its tools is changed
	Always                 // those that a server adds after its first list
)

// A Memory remembers definitions. It may be used concurrently.
type Memory struct {
	caution Caution
	most    int // tools of each server
	names   *names.Book
	store   document.Store // or nil

	loading sync.Mutex // held by Load
	saving  lazy.Task

	mu      sync.Mutex
	servers map[string]*server
	unsaved bool
	loaded  bool
	claims  int // number of our claims at the last save
}

// A server is what is remembered of one.
type server struct {
	tools   map[string]*tool // by own name
	changed int              // tools with changed set
	fresh   []string         // names of the tools with def set

	// said has the values of Changed that were found here. They count before
	// those of other processes: true as long as the server is here and does not
	// list the known definition again, false until it is saved.
	said map[string]bool
}

// A tool is a definition as it was first seen or last accepted. It is never
// changed.
type tool struct {
	Sum      string    `json:"sum"`  // SHA-256 of its bytes; if equal, we skip computing the Hash
	Hash     string    `json:"hash"` // of what it says
	Since    time.Time `json:"since"`
	Accepted bool      `json:"accepted,omitempty"` // by a person
	Changed  bool      `json:"changed,omitempty"`  // when it was last listed, it was another

	def *Definition // replaces Sum and Hash while it is in the server's list
}

// New returns a Memory of at most so many tools of each server. It stores the
// prefixes of book beside them. store may be nil.
func New(caution Caution, most int, book *names.Book, store document.Store) *Memory {
	return &Memory{caution: caution, most: most, names: book, store: store, servers: make(map[string]*server)}
}

func (t *tool) is(d *Definition) bool {
	if t.def != nil {
		return t.def.Sum == d.Sum || t.def.Hash() == d.Hash()
	}
	return t.Sum == hex.EncodeToString(d.Sum[:]) || t.Hash == d.Hash()
}

func (t *tool) hash() string {
	if t.def != nil {
		return t.def.Hash()
	}
	return t.Hash
}

// settled returns t with hashes in place of the definition.
func (t tool) settled() *tool {
	if t.def != nil {
		t.Sum, t.Hash, t.def = hex.EncodeToString(t.def.Sum[:]), t.def.Hash(), nil
	}
	return &t
}

// MarshalJSON computes Sum and Hash, if need be.
func (t *tool) MarshalJSON() ([]byte, error) {
	type plain tool
	return json.Marshal((*plain)(t.settled()))
}

// Judge compares what a server listed with what is known. The verdicts are in the
// order of listed. It remembers tools that are new, unless they have to wait.
func (m *Memory) Judge(name string, listed []*Definition) []Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	verdicts := make([]Verdict, len(listed))
	s, before := m.servers[name]
	if !before {
		s = &server{tools: make(map[string]*tool)}
		if len(m.servers) < MaxServers {
			m.servers[name] = s
		}
	}
	for i, d := range listed {
		if t := s.tools[d.Name]; t != nil {
			same := t.is(d)
			if !same {
				verdicts[i] = Verdict{Changed, t.Since, t.hash()}
			}
			m.setChanged(s, d.Name, !same)
		}
	}
	wait := before && (m.caution == Always || m.caution == Suspect && s.changed > 0)
	for i, d := range listed {
		switch {
		case s.tools[d.Name] != nil:
		case len(s.tools) >= m.most || m.servers[name] == nil:
			verdicts[i].Finding = Beyond
		case wait:
			verdicts[i].Finding = Added
		default:
			m.set(s, d.Name, tool{def: d, Since: time.Now().UTC()})
		}
	}
	s.settle(listed)
	return verdicts
}

// Left says that the server is gone. What was known of it stays known, by hashes.
func (m *Memory) Left(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.servers[name]; s != nil {
		s.settle(nil)
		s.said = nil
	}
}

// Accept makes d the known definition of its tool. It returns false if there is no
// room to remember it.
func (m *Memory) Accept(name string, d *Definition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[name]
	if s == nil || s.tools[d.Name] == nil && len(s.tools) >= m.most {
		return false // nothing is known of it: Judge goes on to refuse it
	}
	m.setChanged(s, d.Name, false)
	m.set(s, d.Name, tool{def: d, Since: time.Now().UTC(), Accepted: true})
	return true
}

func (m *Memory) set(s *server, name string, t tool) {
	s.tools[name] = &t
	if t.def != nil {
		s.fresh = append(s.fresh, name)
	}
	m.unsaved = true
}

// setChanged records whether the server lists the tool with another definition.
func (m *Memory) setChanged(s *server, name string, changed bool) {
	t := s.tools[name]
	if t == nil || t.Changed == changed {
		return
	}
	s.mark(name, changed)
	if s.said == nil {
		s.said = make(map[string]bool)
	}
	s.said[name] = changed
	m.unsaved = true
}

func (s *server) mark(name string, changed bool) {
	next := *s.tools[name]
	next.Changed = changed
	s.tools[name] = &next
	if changed {
		s.changed++
	} else {
		s.changed--
	}
}

// settle drops the definitions that are not in listed: their hashes are enough.
func (s *server) settle(listed []*Definition) {
	in := make(map[*Definition]bool, len(listed))
	for _, d := range listed {
		in[d] = true
	}
	s.fresh = slices.DeleteFunc(s.fresh, func(name string) bool {
		t := s.tools[name]
		if t.def != nil && !in[t.def] {
			s.tools[name] = t.settled()
			return true
		}
		return t.def == nil
	})
}

// A history is what is in the store.
type history struct {
	Version int                         `json:"version"`
	Names   []names.Claim               `json:"names,omitempty"`
	Servers map[string]map[string]*tool `json:"servers"`
}

const version = 1

// Load adds what is in the store. After the first success it does nothing. After
// an error nothing has changed. Concurrent callers wait for one of them, so the
// store must not call Load.
func (m *Memory) Load() error {
	if m.store == nil || m.isLoaded() {
		return nil
	}
	m.loading.Lock()
	defer m.loading.Unlock()
	if m.isLoaded() {
		return nil
	}
	_, _, err := m.read()
	return err
}

// Refresh adds what other processes have stored since, and reports what Save reports.
// After an error nothing has changed.
func (m *Memory) Refresh() (changed bool, err error) {
	if m.store != nil {
		_, changed, err = m.read()
	}
	return changed, err
}

func (m *Memory) isLoaded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loaded
}

// read adds what is in the store. It returns the claims there and reports whether
// a tool has been added or replaced.
func (m *Memory) read() (stored []names.Claim, changed bool, err error) {
	doc, err := readDocument(m.store.Load())
	if err != nil {
		return nil, false, fmt.Errorf("loading the known tools: %w", err)
	}
	m.names.Restore(doc.Names)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded = true
	for name, tools := range doc.Servers {
		changed = m.merge(name, tools) || changed
	}
	return doc.Names, changed, nil
}

// merge adds what another process knows of a server. It reports whether a tool was added,
// or one of ours replaced.
func (m *Memory) merge(name string, tools map[string]*tool) (replaced bool) {
	s := m.servers[name]
	if s == nil {
		if len(m.servers) >= MaxServers {
			return false
		}
		s = &server{tools: make(map[string]*tool)}
		m.servers[name] = s
	}
	for own, theirs := range tools {
		ours := s.tools[own]
		if ours != nil && !theirs.before(ours) {
			if _, said := s.said[own]; !said && theirs.Changed != ours.Changed && theirs.Since.Equal(ours.Since) && theirs.Hash == ours.hash() {
				s.mark(own, theirs.Changed)
			}
			continue
		}
		delete(s.said, own)
		replaced = replaced || ours == nil || ours.hash() != theirs.Hash
		if ours != nil && ours.Changed {
			s.changed--
		}
		if theirs.Changed {
			s.changed++
		}
		s.tools[own] = theirs
	}
	s.fresh = slices.DeleteFunc(s.fresh, func(own string) bool { return s.tools[own].def == nil })
	return replaced
}

// before reports whether t counts and other does not, where two processes know
// different definitions: what a person accepted last, else what was seen first.
func (t *tool) before(other *tool) bool {
	if t.Accepted != other.Accepted {
		return t.Accepted
	}
	if t.Accepted {
		return t.Since.After(other.Since)
	}
	return t.Since.Before(other.Since)
}

func readDocument(data []byte, err error) (history, error) {
	var doc history
	if err != nil || data == nil {
		return doc, err
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return doc, text.JSONError(data, err)
	}
	if doc.Version != version {
		return doc, fmt.Errorf("the document has version %d, want %d", doc.Version, version)
	}
	for server, tools := range doc.Servers {
		for name, t := range tools {
			if t == nil || t.Hash == "" {
				return doc, fmt.Errorf("tool %q of server %q has no hash", name, server)
			}
		}
	}
	return doc, nil
}

// Save stores what is known, if that has changed, together with what other
// processes have stored meanwhile. It reports whether they know a tool that is not known
// here, or by another definition that counts instead: then all lists must be judged again.
//
// If the store can't be read, Save writes nothing: it would overwrite the history. If
// another call of Save is under way, that one does the work and this one returns at
// once.
func (m *Memory) Save() (changed bool, err error) {
	if m.store != nil {
		m.saving.Do(func() {
			replaced, failed := m.save()
			changed, err = changed || replaced, failed
		})
	}
	return changed, err
}

func (m *Memory) save() (changed bool, err error) {
	claims := m.names.Claims()
	m.mu.Lock()
	due := m.unsaved || len(claims) != m.claims
	m.mu.Unlock()
	if !due {
		return false, nil
	}
	unlock, err := document.LockShared(m.store) // or what others store now is lost
	if err != nil {
		return false, fmt.Errorf("storing the known tools: %w", err)
	}
	defer unlock()
	stored, changed, err := m.read()
	if err != nil {
		return false, err
	}
	doc := history{Version: version, Servers: make(map[string]map[string]*tool), Names: names.Merge(stored, claims)}
	m.mu.Lock()
	m.unsaved, m.claims = false, len(claims)
	for name, s := range m.servers {
		doc.Servers[name] = maps.Clone(s.tools)
	}
	m.mu.Unlock()
	data, err := json.Marshal(doc)
	if err == nil {
		err = m.store.Save(data)
	}
	if err != nil {
		m.mu.Lock()
		m.unsaved = true
		m.mu.Unlock()
		return changed, fmt.Errorf("storing the known tools: %w", err)
	}
	m.stored(doc)
	return changed, nil
}

// stored notes that doc is in the store.
func (m *Memory) stored(doc history) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, tools := range doc.Servers {
		s := m.servers[name]
		maps.DeleteFunc(s.said, func(own string, changed bool) bool { return !changed && s.tools[own] == tools[own] })
	}
}
