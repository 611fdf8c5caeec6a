package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
)

// stateVersion is that of the form in which sessions are saved.
const stateVersion = 1

// A savedSession is what is saved of a session.
type savedSession struct {
	Version int          `json:"version"`
	Catalog string       `json:"catalog"` // fingerprint
	Turn    int          `json:"turn"`
	Shown   []savedShown `json:"shown,omitempty"`
	Active  []savedTool  `json:"active,omitempty"`  // in activation order
	Results int          `json:"results,omitempty"` // that were cut so far
	Refused *refusal     `json:"refused,omitempty"`
}

// A savedShown has one member.
type savedShown struct {
	Inline   string       `json:"inline,omitempty"`
	Active   string       `json:"active,omitempty"`
	Deferred string       `json:"deferred,omitempty"`
	Meta     string       `json:"meta,omitempty"`
	Servers  *searchOffer `json:"servers,omitempty"` // also that of the search tool, together with Meta
}

type savedTool struct {
	Tool string `json:"tool"`
	Used int    `json:"used"` // turn
}

// Save returns the session's state as a JSON object of some kilobytes: which
// tools are active, what the model was shown and in which order, and the
// turns; no definitions, and no results that are kept to be read on. See
// [Manager.RestoreSession].
func (s *Session) Save() json.RawMessage {
	s.mu.Lock()
	v := s.viewLocked()
	state := savedSession{Version: stateVersion, Turn: s.turn, Results: s.pages.last}
	if s.refused.Times > 0 {
		r := s.refused
		state.Refused = &r
	}
	for _, e := range s.shown {
		var saved savedShown
		switch e.kind {
		case shownInline:
			saved.Inline = e.tool.name
		case shownActive:
			saved.Active = e.tool.name
		case shownDeferred:
			saved.Deferred = e.tool.name
		case shownMeta:
			saved.Meta, saved.Servers = metaNames[e.meta], e.offer
		case shownServers:
			saved.Servers = e.offer
		}
		state.Shown = append(state.Shown, saved)
	}
	for _, t := range v.active {
		state.Active = append(state.Active, savedTool{t.name, s.used[t.name]})
	}
	s.mu.Unlock()
	state.Catalog = v.fingerprint()
	return json.RawMessage(jsonText(state))
}

// RestoreSession returns a session in the state that [Session.Save] returned,
// in this process or another one. Options are those of the saved session, as
// they are not part of the state.
//
// Over an equal catalog the session goes on as the saved one would, to the
// byte. Of another catalog, it keeps what is there, in the same order, and gone
// has the registered names of tools that it was shown or had active and that
// are not there or not permitted any more; of a tool that has changed, the
// model is shown the new definition. The session is nil if state was not
// returned by Save or by a version of it that is not known here.
func (m *Manager) RestoreSession(state json.RawMessage, opts *SessionOptions) (s *Session, gone []string, err error) {
	var saved savedSession
	if err := json.Unmarshal(state, &saved); err != nil {
		return nil, nil, fmt.Errorf("mcphybrid: the state of the session: %w", describeJSONError(state, err))
	}
	if saved.Version != stateVersion {
		return nil, nil, fmt.Errorf("mcphybrid: the state of the session has version %d, want %d", saved.Version, stateVersion)
	}
	s = m.NewSession(opts)
	v := s.view()
	missing := make(map[string]bool)
	lookup := func(name string) *BridgeTool {
		if e, ok := v.lookup(name); ok {
			return e.tool
		}
		if !missing[name] {
			missing[name] = true
			gone = append(gone, name)
		}
		return nil
	}
	var list []shown
	for _, e := range saved.Shown {
		switch {
		case e.Inline != "":
			list = appendShown(list, shownInline, lookup(e.Inline))
		case e.Active != "":
			list = appendShown(list, shownActive, lookup(e.Active))
		case e.Deferred != "":
			list = appendShown(list, shownDeferred, lookup(e.Deferred))
		case e.Meta != "":
			for kind := range metaKinds {
				if metaNames[kind] == e.Meta && s.rights.mayUse(e.Meta) {
					if kind == metaSearch && e.Servers == nil {
						e.Servers = new(searchOffer)
					}
					list = append(list, shown{kind: shownMeta, meta: kind, offer: e.Servers})
				}
			}
		case e.Servers != nil:
			list = append(list, shown{kind: shownServers, offer: e.Servers})
		}
	}
	var active []string
	used := make(map[string]int)
	for _, t := range saved.Active {
		if lookup(t.Tool) != nil {
			active = append(active, t.Tool)
			used[t.Tool] = t.Used
		}
	}
	s.activate(active)
	s.mu.Lock()
	s.turn, s.pages.last = saved.Turn, saved.Results
	s.setShown(list)
	if saved.Refused != nil {
		s.refused = *saved.Refused
	}
	for _, t := range s.active {
		s.used[t.name] = used[t.name]
	}
	s.usage.activations = 0
	s.mu.Unlock()
	if s.registrar != nil {
		s.registrar.sync()
	}
	return s, gone, nil
}

func appendShown(list []shown, kind shownKind, t *BridgeTool) []shown {
	if t == nil {
		return list
	}
	return append(list, shown{kind: kind, tool: t})
}

// fingerprint tells catalogs apart: equal ones have the same, in any process.
func (c *catalog) fingerprint() string {
	c.print.once.Do(func() {
		h := sha256.New()
		for _, t := range c.tools {
			fmt.Fprintf(h, "%s %t %x\n", t.name, c.byName[t.name].inline, t.def.sum)
		}
		c.print.text = hex.EncodeToString(h.Sum(nil)[:8])
	})
	return c.print.text
}

// A fingerprint is computed once.
type fingerprint struct {
	once sync.Once
	text string
}
