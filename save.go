package mcphybrid

import (
	"encoding/json"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/saved"
)

// internal/saved has the form of a state, and restore.go the way back.

// save returns the saved form of t, or nil if there was no Turn.
func (t transcript) save(d Disclosure) *saved.Told {
	if !t.begun {
		return nil
	}
	told := &saved.Told{By: d.String(), Begun: int(t.base), Items: int(t.told), NoBridge: t.noBridge, Adds: t.adds, Loads: t.loads, Why: int(t.why)}
	for _, p := range t.inserts {
		told.Inserts = append(told.Inserts, saved.Insert{Items: int(p.told), At: int(p.at)})
	}
	return told
}

// A savedForm is the name that items of one place and section have in a saved
// state.
type savedForm struct {
	kind    string
	slot    slot
	section section
	tool    bool // the items have a tool
}

// savedName is the kind of a tool that the model knows only by name.
const savedName = "name"

var savedForms = []savedForm{
	{"tool", asTool, plainTool, true},
	{"inline", asTool, inlineLines, true},
	{"active", asTool, noSection, true},
	{"deferred", asDeferred, noSection, true},
	{"summary", notListed, summaryLines, true},
	{"guide", notListed, guideText, false},
	{"example", notListed, exampleText, true},
	{savedName, notListed, noSection, true},
	{"search", asMeta, searchText, false},
	{"meta", asMeta, noSection, false},
	{"servers", notListed, searchText, false},
	{"removed", asRemoved, noSection, true},
	{"callable", notListed, callableText, false},
	{"called", notListed, activeText, true},
	{"inline counts", notListed, inlineLines, false},
	{"summary counts", notListed, summaryLines, false},
	{"skills", notListed, skillText, false},
}

// A saver makes the saved form of a session.
type saver struct {
	state  saved.State
	places map[*BridgeTool]int // in state.Tools, from 1
	named  map[string]int      // the same by registered name, of the newest version
	isGone func(*BridgeTool) bool
}

// save appends a list that begins with o, unless that is nil.
func (w *saver) save(list []listItem, o *promptPrefix) {
	w.places, w.named = make(map[*BridgeTool]int, len(list)), make(map[string]int, len(list))
	w.state.Shown = slices.Grow(w.state.Shown, len(list))
	for i, e := range list {
		w.item(e)
		if o != nil && i+1 == len(o.items) {
			w.state.PrefixLen = saved.PrefixLen{Items: i + 1, Tools: len(w.state.Tools), Of: &o.key}
		}
	}
}

// tool returns the place of t in the list of tools. What a session was restored with and
// what a server has listed since is one tool if it is the same.
func (w *saver) tool(t *BridgeTool, definition json.RawMessage) int {
	if w.places[t] == 0 {
		tool, place := saved.Tool{Subject: t.def.subject(), OfUser: t.owner.user != "", Definition: saved.Bytes(definition), Sum: &t.def.Trusted.Sum}, w.named[t.name]
		if place == 0 || !w.state.Tools[place-1].Same(&tool) {
			w.state.Tools = append(w.state.Tools, tool)
			place = len(w.state.Tools)
		}
		w.places[t], w.named[t.name] = place, place
	}
	return w.places[t]
}

// item appends an item; restorer.item is its inverse.
func (w *saver) item(e listItem) {
	i := slices.IndexFunc(savedForms, func(f savedForm) bool {
		return f.slot == e.slot && f.section == e.section && f.tool == (e.tool != nil)
	})
	item := saved.Item{Kind: savedForms[i].kind, Line: int(e.line)}
	if e.tool != nil {
		item.Tool = w.tool(e.tool, e.tool.def.Raw)
		w.state.Tools[item.Tool-1].Gone = w.isGone(e.tool)
	}
	if e.isMeta() {
		item.Meta = e.meta.name()
	}
	if e.mentions != nil {
		item.Servers = []*saved.Server(e.mentions.servers)
		if e.mentions.skills != nil {
			item.Skills = e.mentions.skills.save()
		}
	}
	w.state.Shown = append(w.state.Shown, item)
}

// Save returns the session's state as a JSON object, to be restored with
// [Manager.RestoreSession]. It has the active tools, the turn, and all that it
// takes to show the model the same again: the items in their order, and the
// definitions of their tools. It has no figures, and no cut results without StateParts.
//
// It takes about as many bytes as the tools and sections in a request do: 70 KB
// for 60 published tools, 1.4 KB for each tool with [ByProvider]. With
// [Options.StateParts], what many states have in common is kept there, once, and the
// state refers to it: it takes 1 to 2 KB with five active tools. Cut results can then be
// read on wherever the session is restored. Save may have to wait for the store, and if that
// fails, the state has all itself, but not these.
//
// Together with its parts, a state has at most [Options.MaxState] bytes, if that is
// enough for the intent and the user's id. What was shown last is left out of a larger
// one, and is shown again, at the end, where the session is restored.
//
// While processes of an older version restore states too, see [Options.StateVersion].
func (s *Session) Save() json.RawMessage {
	s.mu.Lock()
	v := s.viewLocked()
	state := s.stateLocked(v)
	parts := s.tenant.parts
	if s.tenant.opts.StateVersion < saved.Newest { // which has nothing apart
		state.PrefixLen, parts = saved.PrefixLen{}, nil
	}
	s.mu.Unlock()
	for _, c := range v.catalogs {
		state.Catalog += c.fingerprint()
	}
	return state.JSON(s.tenant.opts.MaxState, parts)
}

// stateLocked returns the saved form of the session. The caller holds mu.
func (s *Session) stateLocked(v *view) *saved.State {
	w := saver{state: saved.State{
		User: s.tenant.user.id, Lists: len(s.rights), Skills: len(s.asked.skills), Turn: s.userTurn, Intent: s.intent,
		Results: s.pages.last, Paged: s.pages.offered, Texts: s.pages.kept.Saved, Full: s.full, Refused: s.refused, Told: s.transcriptCopy().save(s.Disclosure()),
	}}
	w.isGone = func(t *BridgeTool) bool {
		return !v.ended && !isThere(t, v.catalogs) && !s.restored.isAway(t, v.catalogs)
	}
	w.save(s.shown, s.prefix)
	for _, t := range s.knownNames {
		w.state.Tools = append(w.state.Tools, saved.Tool{Subject: t.Subject, OfUser: t.owner.user != ""})
		w.state.Shown = append(w.state.Shown, saved.Item{Kind: savedName, Tool: len(w.state.Tools)})
	}
	active := v.active
	if v.ended && !s.closed {
		active = s.active // the tools that were active when the Manager was closed
	}
	for _, t := range s.inOrder(active, s.unavailable) {
		place := w.named[t.name]
		if place == 0 {
			place = w.tool(t, nil)
		}
		w.state.Active = append(w.state.Active, saved.Active{Tool: place, Used: s.lastUsed[t.name].turn})
	}
	return &w.state
}
