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

// A Mark is suspicious text in a tool's definition: it may try to steer the model
// or to hide from people. A person must judge it. Some servers have honest
// reasons for such text, and an attacker can avoid every mark.
type Mark struct {
	Kind  MarkKind
	Place string // JSON pointer into the tools/list element, such as /description; at most 200 characters
	Text  string // the suspicious text: one line of at most 80 characters, invisible ones written like U+200B
}

// A MarkKind is the kind of a [Mark].
type MarkKind string

const (
	MarkHidden      MarkKind = "hidden text"              // invisible, reordering or far-off characters
	MarkEncoded     MarkKind = "encoded text"             // words in base64 or hexadecimal
	MarkLeak        MarkKind = "a leak"                   // a request for keys, or an image whose address carries data
	MarkInstruction MarkKind = "instruction to the model" // one against the user, the host or other tools
	MarkForeign     MarkKind = "tool of another server"   // the name of one
)

var markKinds = [...]MarkKind{
	marks.Hidden: MarkHidden, marks.Encoded: MarkEncoded, marks.Leak: MarkLeak, marks.Instruction: MarkInstruction, marks.Foreign: MarkForeign,
}

// marksIn returns the marks in a tools/list element. foreign reports whether a
// word is the name of another server's tool.
func marksIn(raw json.RawMessage, foreign func(word string) bool) (list []Mark) {
	for _, m := range marks.In(raw, foreign) {
		list = append(list, Mark{markKinds[m.Kind], m.Place, m.Text})
	}
	return list
}

// A TrustPolicy says what the Manager does when a server changes the definition
// of a tool: its title, description, schemas or annotations. A server that looked
// harmless when a person approved it may later change a definition to steer the
// model.
type TrustPolicy string

const (
	TrustOff        TrustPolicy = "off"        // ignore the change
	TrustWarn       TrustPolicy = "warn"       // report it as a [ChangedError]
	TrustQuarantine TrustPolicy = "quarantine" // report it and hold the tool back until [Manager.Accept]
)

var trustPolicies = []TrustPolicy{TrustOff, TrustWarn, TrustQuarantine}

// A ChangedError reports a tool whose definition differs from the one that was
// first seen, or last accepted. [Manager.Problems] returns it.
type ChangedError struct {
	Server, Tool string          // Tool is the tool's own name
	Name         string          // the registered name
	Held         bool            // [TrustQuarantine] holds it back: it can't be shown or called
	Since        time.Time       // when the known definition was first seen or accepted
	Was, Is      string          // hashes of the known and of the new definition
	Definition   json.RawMessage // the new tools/list element; don't trust its content

	def *definition
}

func (e *ChangedError) Error() string {
	line := fmt.Sprintf("mcphybrid: tool %q of server %q has changed since %s, from %.12s to %.12s",
		text.Line(e.Tool, text.MaxName), e.Server, e.Since.UTC().Format(time.RFC3339), e.Was, e.Is)
	if e.Was == "" {
		line = fmt.Sprintf("mcphybrid: tool %q of server %q exceeds the number of tools remembered for a server, hash %.12s",
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

// Marks returns the suspicious text in the new definition, like [Manager.Marks]
// but without the names of other servers' tools.
func (e *ChangedError) Marks() []Mark {
	return marksIn(e.Definition, func(string) bool { return false })
}

// A trust remembers the known definitions of the servers' tools.
type trust struct {
	policy TrustPolicy
	most   int   // largest number of tools remembered for a server
	store  Store // or nil
	log    *slog.Logger

	saving sync.Mutex // held while the store is used

	mu      sync.Mutex
	known   knownTools
	loaded  bool
	unsaved bool
}

// knownTools are the known definitions by server and by the tools' own names.
type knownTools map[string]map[string]*knownTool

// A knownTool is a definition as it was first seen or last accepted. It is never
// changed.
type knownTool struct {
	Sum   string    `json:"sum"`  // SHA-256 of its bytes; if equal, we skip computing the Hash
	Hash  string    `json:"hash"` // CanonicalHash of its bytes
	Since time.Time `json:"since"`

	def *definition // replaces Sum and Hash until they are stored
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

// MarshalJSON computes Sum and Hash, if need be.
func (k *knownTool) MarshalJSON() ([]byte, error) {
	type plain knownTool
	p := plain(*k)
	if k.def != nil {
		p.Sum, p.Hash = hex.EncodeToString(k.def.sum[:]), k.def.canonical()
	}
	return json.Marshal(p)
}

// maxKnown times [ServerLimits.MaxTools] is how many tools of a server we remember. We
// never forget one to make room: otherwise a server could make us forget a tool
// and then change it.
const maxKnown = 4

// newTrust returns a trust that remembers at most maxKnown*maxTools tools of each
// server.
func newTrust(policy TrustPolicy, store Store, maxTools int, log *slog.Logger) *trust {
	return &trust{policy: policy, most: maxKnown * maxTools, store: store, log: log, known: make(knownTools)}
}

// judge returns the tools among listed that may be used, and an error for each
// that has changed. It trusts and remembers a tool that it sees for the first
// time.
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

// accept makes d the known definition of its tool.
func (t *trust) accept(d *definition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tools := t.known[d.server]; tools != nil {
		tools[d.name] = &knownTool{def: d, Since: time.Now().UTC()}
		t.unsaved = true
	}
}

// A storedTools is the document in the store.
type storedTools struct {
	Version int        `json:"version"`
	Servers knownTools `json:"servers"`
}

const trustVersion = 1

// load reads the known tools from the store. After the first success it does
// nothing. A failed read is an error only under TrustQuarantine: otherwise it is
// logged.
func (t *trust) load() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	if t.store == nil || t.policy == TrustOff || t.loaded {
		return nil
	}
	stored, err := readKnown(t.store.Load())
	if err != nil {
		err = fmt.Errorf("mcphybrid: loading the known tools: %w", err)
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
		return nil, fmt.Errorf("the document has version %d, want %d", stored.Version, trustVersion)
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

// save stores the known tools if they have changed.
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
		t.log.Warn("mcphybrid: storing the known tools failed", "error", err)
		t.mu.Lock()
		t.unsaved = true
		t.mu.Unlock()
	}
}
