// Package trust remembers the definitions of servers' tools as they were first
// seen or last accepted, and tells which have changed. It keeps hashes, in memory
// and in a store that several processes may share.
package trust

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/lazy"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/store"
)

// MaxServers is how many servers a [Memory] remembers.
const MaxServers = 10_000

// A Definition is what a server listed: a tool, a resource, a template, a prompt, a skill, or
// its instructions.
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
	By      string    // the milder policy under which an Added one is known, or ""
}

// A Finding is the result of a comparison.
type Finding uint8

const (
	Known   Finding = iota // it is the known definition, or is known from now on
	Changed                // it differs from the known definition
	Added                  // it is new, or only processes of milder policies know it, and waits for [Memory.Accept]
	Beyond                 // it is new, and the limit of remembered tools is reached
)

// A Caution says for which tools a [Memory] waits until they are accepted.
type Caution uint8

const (
	Never   Caution = iota // new tools are known at once
	Suspect                // those that a server adds while one of its tools is changed
	Always                 // those that a server adds after its first list
)

// The names of policies, by their caution, in the store.
var policies = [...]string{Never: "warn", Suspect: "quarantine", Always: "approve"}

// A Memory remembers definitions. It may be used concurrently.
type Memory struct {
	caution Caution
	most    int // tools of each server
	names   *names.Book
	store   store.Document // or nil

	loading sync.Mutex // held by Load
	saving  lazy.Task

	mu      sync.Mutex
	servers map[string]*server
	unsaved bool
	failed  error // of the last save
	loaded  bool
	claims  int // number of our claims at the last save
}

// A server is what is remembered of one.
type server struct {
	tools   map[string]*tool // by own name
	changed int              // tools with changed set
	fresh   []string         // names of the tools with def set
	met     bool             // the store has had it, or has it from us

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
	Former   []string  `json:"former,omitempty"`   // hashes of what was known before, the last first; at most maxFormer

	// Late is set if nobody has accepted it and it was not in the server's first list, as
	// one of the processes has that. It waits where it would have had to, whoever knows it.
	Late bool   `json:"late,omitempty"`
	By   string `json:"by,omitempty"` // the policy of who saw it first, unless that was Always or a person accepted it

	def  *Definition // replaces Sum and Hash while it is in the server's list
	mine bool        // accepted here, and not yet stored
}

// New returns a Memory of at most so many tools of each server. It stores the
// prefixes of book beside them. doc may be nil.
func New(caution Caution, most int, book *names.Book, doc store.Document) *Memory {
	return &Memory{caution: caution, most: most, names: book, store: doc, servers: make(map[string]*server)}
}

// waits reports whether a tool that is remembered has to wait all the same where new ones do.
func (m *Memory) waits(t *tool) bool {
	return t.Late && (m.caution == Always || m.caution == Suspect && t.By == policies[Never])
}

func (t *tool) is(d *Definition) bool {
	if t.def != nil {
		return t.def.Sum == d.Sum || t.def.Hash() == d.Hash()
	}
	return t.Sum == hex.EncodeToString(d.Sum[:]) || t.Hash == d.Hash()
}

func (t *tool) sum() string {
	if t.def != nil {
		return hex.EncodeToString(t.def.Sum[:])
	}
	return t.Sum
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
		t.Sum, t.Hash, t.def = t.sum(), t.hash(), nil
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
			m.unsaved = true // also if the list is empty: what comes later is not the first
		}
	}
	for i, d := range listed {
		if t := s.tools[d.Name]; t != nil {
			same := t.is(d)
			if !same {
				verdicts[i] = Verdict{Finding: Changed, Since: t.Since, Was: t.hash()}
			}
			m.setChanged(s, d.Name, !same)
		}
	}
	wait := before && (m.caution == Always || m.caution == Suspect && s.changed > 0)
	for i, d := range listed {
		switch t := s.tools[d.Name]; {
		case t != nil && wait && m.waits(t):
			verdicts[i] = Verdict{Finding: Added, By: t.By}
		case t != nil:
		case len(s.tools) >= m.most || m.servers[name] == nil:
			verdicts[i].Finding = Beyond
		case wait:
			verdicts[i].Finding = Added
		default:
			seen := tool{def: d, Since: time.Now().UTC(), Late: before}
			if m.caution != Always {
				seen.By = policies[m.caution]
			}
			m.set(s, d.Name, seen)
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
	m.set(s, d.Name, tool{def: d, Since: time.Now().UTC(), Accepted: true, mine: true}.after(s.tools[d.Name]))
	return true
}

// maxFormer is how many former definitions of a tool are remembered: a conversation that
// began with one of them may go on. Few outlive as many acceptances.
const maxFormer = 8

// after returns t, accepted after before, which may be nil: a clock may be wrong, but who
// accepts now is the last.
func (t tool) after(before *tool) tool {
	if before == nil {
		return t
	}
	if before.Accepted && !t.Since.After(before.Since) {
		t.Since = before.Since.Add(1)
	}
	return t.replacing(before)
}

// replacing returns t, which remembers what before knew.
func (t tool) replacing(before *tool) tool {
	if len(before.Former) == 0 && t.sum() == before.sum() {
		return t // no hash need be computed
	}
	former := slices.Clone(t.Former)
	for _, hash := range append([]string{before.hash()}, before.Former...) {
		if len(former) < maxFormer && hash != t.hash() && !slices.Contains(former, hash) {
			former = append(former, hash)
		}
	}
	t.Former = former
	return t
}

// Knew reports whether a definition of a server is the known one, or was.
func (m *Memory) Knew(name string, d *Definition) bool {
	t := m.known(name, d.Name) // computing a hash can take long: not under the lock
	return t != nil && !(m.caution == Always && t.Late) && (t.is(d) || slices.Contains(t.Former, d.Hash()))
}

// known returns what is known of a tool of a server, or nil.
func (m *Memory) known(name, own string) *tool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.servers[name]; s != nil {
		return s.tools[own]
	}
	return nil
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
