package mcphybrid

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/marks"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Mark is something in a tool's definition that looks as if it was meant to
// steer the model or to hide from people. It is for people to judge: some
// servers have honest reasons, and who wants to can avoid all marks.
type Mark struct {
	Kind  MarkKind
	Place string // JSON pointer into the tools/list element, such as /description; cut after 200 characters
	Text  string // what looks so: at most 80 characters of one line, hidden ones spelled as U+200B
}

// A MarkKind says what a [Mark] looks like.
type MarkKind string

const (
	MarkHidden      MarkKind = "hidden text"              // can't be seen, reorders text, or stands far off
	MarkEncoded     MarkKind = "encoded text"             // words in base64 or hexadecimal
	MarkLeak        MarkKind = "a leak"                   // keys asked for, or an image whose address carries data
	MarkInstruction MarkKind = "instruction to the model" // against the user, the host or other tools
	MarkForeign     MarkKind = "tool of another server"   // is named
)

var markKinds = [...]MarkKind{
	marks.Hidden: MarkHidden, marks.Encoded: MarkEncoded, marks.Leak: MarkLeak, marks.Instruction: MarkInstruction, marks.Foreign: MarkForeign,
}

// marksIn returns the marks of a tools/list element. foreign reports whether a
// word is the name of a tool of another server.
func marksIn(raw json.RawMessage, foreign func(word string) bool) (list []Mark) {
	for _, m := range marks.In(raw, foreign) {
		list = append(list, Mark{markKinds[m.Kind], m.Place, m.Text})
	}
	return list
}

// A TrustPolicy says what becomes of a tool whose server has changed its
// definition: its name, title, description, schemas or annotations. A server
// that looked harmless when a person approved it may do so later to steer the
// model.
type TrustPolicy string

const (
	TrustOff        TrustPolicy = "off"        // nothing
	TrustWarn       TrustPolicy = "warn"       // a [ChangedError] tells of it
	TrustQuarantine TrustPolicy = "quarantine" // also, the tool is held back until [Manager.Accept]
)

var trustPolicies = []TrustPolicy{TrustOff, TrustWarn, TrustQuarantine}

// A ChangedError reports, among [Manager.Problems], a tool that does not have
// the definition that was seen first, or accepted since.
type ChangedError struct {
	Server, Tool string          // the tool's own name
	Name         string          // registered
	Held         bool            // it is neither shown nor called, by [TrustQuarantine]
	Since        time.Time       // when the other definition was seen or accepted
	Was, Is      string          // hashes of the definitions
	Definition   json.RawMessage // its element of the tools/list result, not to be trusted

	def *definition
}

func (e *ChangedError) Error() string {
	line := fmt.Sprintf("mcphybrid: tool %q of server %q has changed since %s, from %.12s to %.12s",
		text.Line(e.Tool, text.MaxName), e.Server, e.Since.UTC().Format(time.RFC3339), e.Was, e.Is)
	if e.Was == "" {
		line = fmt.Sprintf("mcphybrid: tool %q of server %q is one more than can be remembered of a server, %.12s",
			text.Line(e.Tool, text.MaxName), e.Server, e.Is)
	}
	if e.Held {
		line += "; " + ErrQuarantined.Error()
	}
	return line
}

// Unwrap returns [ErrQuarantined] if the tool is held back.
func (e *ChangedError) Unwrap() error {
	if e.Held {
		return ErrQuarantined
	}
	return nil
}

// Marks returns what in the new definition looks as if it was meant to steer the
// model, as [Manager.Marks] does for tools of the catalog, but for names of
// other servers' tools.
func (e *ChangedError) Marks() []Mark {
	return marksIn(e.Definition, func(string) bool { return false })
}

// A trust remembers what the tools of servers are known to be.
type trust struct {
	policy TrustPolicy
	most   int   // tools of a server that are remembered
	store  Store // or nil
	log    *slog.Logger

	saving sync.Mutex // held while the store is used

	mu      sync.Mutex
	known   knownTools
	loaded  bool
	unsaved bool
}

// knownTools are definitions by server and by the tools' own names.
type knownTools map[string]map[string]*knownTool

// A knownTool is a definition as it was first seen, or accepted since. It is
// not changed.
type knownTool struct {
	Sum   string    `json:"sum"`  // SHA-256 of its bytes: if these are the same, they need not be read
	Hash  string    `json:"hash"` // CanonicalHash of them
	Since time.Time `json:"since"`

	def *definition // instead of Sum and Hash, until they are stored
}

func (k *knownTool) is(d *definition) bool {
	if k.def != nil {
		return k.def.sum == d.sum || k.def.canonical() == d.canonical()
	}
	return k.Sum == hex.EncodeToString(d.sum[:]) || k.Hash == d.canonical()
}

func (k *knownTool) hash() string {
	if k.def != nil {
		return k.def.canonical()
	}
	return k.Hash
}

// MarshalJSON reads the definition now that it is stored.
func (k *knownTool) MarshalJSON() ([]byte, error) {
	type plain knownTool
	p := plain(*k)
	if k.def != nil {
		p.Sum, p.Hash = hex.EncodeToString(k.def.sum[:]), k.def.canonical()
	}
	return json.Marshal(p)
}

// maxKnown is how many times [Options.MaxTools] tools of a server are
// remembered. None is forgotten for another, as a server could then have its
// tools forgotten to change them.
const maxKnown = 4

// newTrust returns what is known of tools: of a server at most maxKnown times
// maxTools.
func newTrust(policy TrustPolicy, store Store, maxTools int, log *slog.Logger) *trust {
	return &trust{policy: policy, most: maxKnown * maxTools, store: store, log: log, known: make(knownTools)}
}

// judge divides the tools that a server lists into those that may be used and,
// whether they may or not, those that have changed. What is seen for the first
// time is as it should be.
func (t *trust) judge(server string, listed []*definition) (usable []*definition, changed []*ChangedError) {
	if t.policy == TrustOff {
		return listed, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tools := t.known[server]
	if tools == nil {
		tools = make(map[string]*knownTool)
		t.known[server] = tools
	}
	held := make(map[*definition]bool)
	for _, d := range listed {
		k := tools[d.name]
		switch {
		case k == nil && len(tools) < t.most:
			tools[d.name] = &knownTool{def: d, Since: time.Now().UTC()}
			t.unsaved = true
			continue
		case k == nil:
			k = new(knownTool)
		case k.is(d):
			continue
		}
		held[d] = t.policy == TrustQuarantine
		changed = append(changed, &ChangedError{
			Server: server, Tool: d.name, Held: held[d],
			Since: k.Since, Was: k.hash(), Is: d.canonical(), Definition: d.raw, def: d,
		})
	}
	if len(changed) == 0 {
		return listed, nil
	}
	return slices.DeleteFunc(slices.Clone(listed), func(d *definition) bool { return held[d] }), changed
}

// accept makes d what the tool is known to be.
func (t *trust) accept(d *definition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tools := t.known[d.server]; tools != nil {
		tools[d.name] = &knownTool{def: d, Since: time.Now().UTC()}
		t.unsaved = true
	}
}

// A storedTools is what is stored.
type storedTools struct {
	Version int        `json:"version"`
	Servers knownTools `json:"servers"`
}

const trustVersion = 1

// load reads what was stored, the first time that it is called and until it
// succeeds. What cannot be read is an error only if tools would be trusted
// that are not known.
func (t *trust) load() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	if t.store == nil || t.policy == TrustOff || t.loaded {
		return nil
	}
	stored, err := readKnown(t.store.Load())
	if err != nil {
		err = fmt.Errorf("mcphybrid: what is known of tools could not be loaded: %w", err)
		if t.policy == TrustQuarantine {
			return err
		}
		t.log.Warn(err.Error())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.known, stored)
	t.loaded = true
	return nil
}

func readKnown(data []byte, err error) (knownTools, error) {
	if err != nil || data == nil {
		return nil, err
	}
	var stored storedTools
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, text.JSONError(data, err)
	}
	if stored.Version != trustVersion {
		return nil, fmt.Errorf("it is of version %d, not %d", stored.Version, trustVersion)
	}
	for server, tools := range stored.Servers {
		for name, k := range tools {
			if k == nil || k.Hash == "" {
				return nil, fmt.Errorf("tool %q of server %q has no hash", name, server)
			}
		}
		if tools == nil {
			delete(stored.Servers, server)
		}
	}
	return stored.Servers, nil
}

// save stores what is known of tools, if that has changed.
func (t *trust) save() {
	if t.store == nil {
		return
	}
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	due := t.unsaved && t.loaded
	stored := storedTools{trustVersion, make(knownTools, len(t.known))}
	if due {
		t.unsaved = false
		for server, tools := range t.known {
			stored.Servers[server] = maps.Clone(tools)
		}
	}
	t.mu.Unlock()
	if !due {
		return
	}
	data, err := json.Marshal(stored)
	if err == nil {
		err = t.store.Save(data)
	}
	if err != nil {
		t.log.Warn("mcphybrid: what is known of tools could not be stored", "error", err)
		t.mu.Lock()
		t.unsaved = true
		t.mu.Unlock()
	}
}
