package mcphybrid

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"weak"

	"github.com/mcphybrid/mcphybrid/internal/provider"
	"github.com/mcphybrid/mcphybrid/internal/words"
)

// A Turn is what the next request to the model needs of a session. Each request begins
// with all bytes of the one before: what came since is appended to the conversation, and
// never put into the system prompt or the list of tools, until [Session.Compact].
type Turn struct {
	// System is the text behind the host's system prompt: the sections as they were at
	// the beginning. It begins with a blank line, or is "".
	System string

	// Tools are the tools as they were at the beginning. With [ByActivation] alone, those
	// that came since stand at the end.
	Tools []ExportedTool

	// Append are the messages that the host appends to its conversation now, before it
	// sends the request: elements of the member that has the messages in the format of
	// the Turn. Each is given once; a host that takes messages back calls
	// [Session.TakeBack]. Append is nil if nothing is new.
	Append []json.RawMessage

	// News, Added and Removed are what Append says, for runtimes with message types of
	// their own: the text of its message, or ""; the tools that are offered from here on;
	// and the names of tools that are not offered any more. Where the message has the
	// user's role, the text says that the user did not write it. Added and Removed are nil
	// unless the conversation can add tools.
	News    string
	Added   []ExportedTool
	Removed []string

	// Waiting has the registered names of tools that came after the beginning and that
	// the model can neither see nor find, since the list of tools has neither them nor a
	// tool that calls others. They are there after the next [Session.Compact]. It is nil
	// unless no tool was deferred at the beginning.
	Waiting []string

	// Betas are what Anthropic wants to read in the header anthropic-beta, or nil.
	Betas []string

	// Disclosure is how the model gets the tools that are not inline, and Why says why
	// this way was chosen, in words for people.
	Disclosure Disclosure
	Why        string

	// Place is the place of this Turn in the conversation, and Before the one of the Turn
	// before it, maybe in another process: see [Session.TakeBack].
	Place  int
	Before int

	// Inserts are given by [Session.TurnAt] alone, in place of Append: all that was ever
	// appended, in the order of the conversation.
	Inserts []Insert

	form  *provider.Form
	first int // how many of Tools were there at the beginning
}

// An Insert is what one Turn appended to a conversation.
type Insert struct {
	At       int               // how many messages of the host's stand before it
	Before   int               // the place of the Turn before it: see [Session.TakeBack]
	News     string            // as in a Turn
	Messages []json.RawMessage // as Append in a Turn
}

// Body returns the members of a request body, by the names of the Turn's format: the
// system prompt, which is the host's followed by System, the tools, and the conversation,
// to which Append was appended. The host adds the others, such as the model. For Anthropic
// there are marks of what to cache, behind the tools, the system prompt and the last
// message.
func (t Turn) Body(system string, messages []json.RawMessage) map[string]any {
	tools := make([]provider.Tool, len(t.Tools))
	for i, e := range t.Tools {
		tools[i] = provider.Tool(e)
	}
	return t.form.Body(system+t.System, tools, t.first, messages)
}

// turns is what a session has told its model by [Session.Turn].
type turns struct {
	form *provider.Form
	base int32 // how many of the items shown are the beginning
	told int32 // how many items the conversation has, those of the beginning included

	inserts []insert // of the Turns that had news, if the host keeps the conversation elsewhere

	begun bool // there was a Turn since the last Compact: the beginning is fixed
	bare  bool // ByBridge without tools that search and call: nothing was deferred
	adds  bool // the conversation can add tools
	loads bool // the model loads tools by searches that the host answers: see AnswerToolSearch
	why   reason
}

// told returns what the model was told by Turn. The caller holds mu.
func (s *Session) told() turns {
	if s.turns == nil {
		return turns{}
	}
	return *s.turns
}

// An insert is where in the host's conversation the model was told of items, up to told.
type insert struct{ told, at int32 }

// A reason is why a disclosure was chosen.
type reason uint8

const (
	asAsked reason = iota
	takesTools
	mayNotSearch
	mayNotCall
	nothingDeferred
	noModelNamed
	takesNoTools
)

var reasons = [...]string{
	"the host asked for it", "this model takes tools inside the conversation", "the session may not search, so no tool is deferred",
	"the session may not use the call tool", "no tool is deferred", "the model is not named, and not all take tools inside the conversation",
	"the model does not take tools inside the conversation",
}

func (r reason) String() string { return reasons[r] }

// fixed reports whether neither the list of tools nor the conversation can have more tools.
func (t turns) fixed(d Disclosure) bool {
	return t.begun && (d == ByBridge || d == ByProvider && !t.adds)
}

// removes reports whether the conversation can take tools back.
func (t turns) removes() bool { return t.begun && t.adds && t.form != nil && t.form.Removes() }

// Turn returns what the next request to a model needs. Call it once for each request, when
// the conversation ends with a message of the user or with results. model is the name of
// the model as the provider has it, or "" if the host does not know it: then the session
// uses nothing that only some models take.
//
// The first Turn of an [Automatic] session chooses its disclosure by the format and the
// model, and fixes the system prompt and the list of tools. A conversation may go on in
// another process: see [Session.Save].
//
// If the request fails, send the same one again, without another Turn. If the host drops
// what it appended, it calls [Session.TakeBack] with [Turn.Before].
//
// Turn fails if the format is unknown or can't do what the session's disclosure needs, if
// the provider can't take a tool's name, or if there are more tools than it accepts. Then
// nothing was told.
func (s *Session) Turn(f Format, model string) (Turn, error) {
	return s.nextRequest(f, model, appends)
}

// TurnAt is [Session.Turn] for a host whose runtime keeps the conversation, so that nothing
// can be appended to it for good: the host puts [Turn.Inserts] into each request. messages
// is how many messages the conversation has now, without any of these. If it has fewer
// than before, the session takes back what was inserted behind them, and tells it again.
// What comes while the conversation does not grow is told when it has.
func (s *Session) TurnAt(f Format, model string, messages int) (Turn, error) {
	return s.nextRequest(f, model, max(0, min(messages, math.MaxInt32)))
}

// appends stands for the end of a conversation that the host keeps.
const appends = -1

func (s *Session) nextRequest(f Format, model string, at int) (Turn, error) {
	form, err := provider.Named(string(f))
	if err != nil {
		return Turn{}, fmt.Errorf("mcphybrid: %w", err)
	}
	list, said, err := s.takeTurn(form, model, at)
	if err != nil {
		return Turn{}, fmt.Errorf("mcphybrid: %w", err)
	}
	turn, err := s.writeTurn(form, list, said)
	if err != nil {
		s.untell(said)
		return Turn{}, fmt.Errorf("mcphybrid: %w", err)
	}
	if said.first {
		s.tell(Event{Kind: EventBegin, Disclosure: turn.Disclosure, Why: turn.Why})
	}
	return turn, nil
}

// A telling is what one Turn tells of a session's list.
type telling struct {
	base, from int // the items of the beginning, and those that were told before
	prefix     *promptPrefix
	disclosure Disclosure
	why        reason
	adds       bool
	loads      bool
	first      bool
	waiting    []string
	inserts    []insert // earlier ones
	at         int      // where this one is, or appends

	turns     *turns     // of the session, at that time
	was       []listItem // before a first Turn, as the following
	wasPrefix *promptPrefix
	wasFull   bool
}

// takeTurn begins the conversation if it has not begun, and takes all that the model was
// not told yet.
func (s *Session) takeTurn(form *provider.Form, model string, at int) ([]listItem, telling, error) {
	complete := true
	if s.mayBeginBare() {
		complete = len(s.scope.manager.known().Missing) == 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first, was, wasPrefix, wasFull := !s.told().begun, s.shown, s.prefix, s.full
	if s.viewLocked().ended {
		return nil, telling{}, ErrClosed
	}
	if first {
		if err := s.begin(form, model, complete); err != nil {
			return nil, telling{}, err
		}
	}
	d := s.Disclosure()
	if err := takes(form, d, s.told().adds); err != nil {
		return nil, telling{}, err
	}
	if s.turns.loads && !form.Searches() {
		return nil, telling{}, fmt.Errorf("the format %s has no tool_search, with which the conversation began", form.Name())
	}
	s.turns.form = form
	v := s.viewLocked()
	list := s.updateShown(v)
	if first {
		s.turns.begun, s.turns.base, s.turns.told = true, int32(len(list)), int32(len(list))
	}
	if at != appends {
		s.turns.goBack(at)
		if n := len(s.turns.inserts); n > 0 && int(s.turns.inserts[n-1].at) == at { // Anthropic refuses two in a row
			list = list[:s.turns.told]
		}
	}
	said := telling{
		turns: s.turns, was: was, wasPrefix: wasPrefix, wasFull: wasFull, at: at, inserts: s.turns.inserts,
		base: int(s.turns.base), from: min(int(s.turns.told), len(list)), prefix: s.prefix, disclosure: d, why: s.turns.why,
		adds: s.turns.adds, loads: s.turns.loads, first: first,
	}
	if said.prefix != nil && len(said.prefix.items) > said.base { // only in a forged state
		said.prefix = nil
	}
	if s.turns.told = int32(len(list)); at != appends && said.from < len(list) {
		s.turns.inserts = append(slices.Clip(s.turns.inserts), insert{s.turns.told, int32(at)})
	}
	if s.turns.fixed(d) && !(s.metas[metaSearch] && s.metas[metaCall]) {
		said.waiting = v.missing(list)
	}
	return list, said, nil
}

// missing returns the registered names of the tools that the session sees and that are not in
// a list.
func (v *view) missing(list []listItem) (names []string) {
	listed := make(map[string]bool)
	for _, e := range list {
		if e.isTool() {
			listed[e.tool.name] = true
		}
	}
	for t, st := range v.each() {
		if st != hidden && !listed[t.name] {
			names = append(names, t.name)
		}
	}
	return names
}

// mayBeginBare reports whether the first Turn may do without a tool that calls others.
func (s *Session) mayBeginBare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.told().begun && s.asked.disclosure == Automatic && !s.viewLocked().searchMode()
}

// takes returns an error unless the form can do what a disclosure needs.
func takes(form *provider.Form, d Disclosure, adds bool) error {
	switch {
	case d == ByAddition && !(adds && form.CanAdd()):
		return fmt.Errorf("the format %s has no tools inside a conversation, which a session by addition needs", form.Name())
	case d == ByProvider && !form.CanDefer():
		return fmt.Errorf("the format %s can't defer tools, which a session by provider needs", form.Name())
	}
	return nil
}

// begin chooses the disclosure and fixes it. What was shown before stays, if the model can
// go on with it. complete is set if all servers have listed their tools. The caller holds
// mu.
func (s *Session) begin(form *provider.Form, model string, complete bool) error {
	d, why := s.asked.disclosure, asAsked
	bare := false
	if d == Automatic {
		v := s.viewLocked()
		d, bare, why = v.choose(form, model, complete)
	}
	loads := d == ByProvider && form.Searches()
	adds := d == ByAddition || d == ByProvider && form.Adds(model) || loads // models with tool_search take tools
	if err := takes(form, d, adds); err != nil {
		return err
	}
	s.disclosure.Store(int32(d))
	s.turns = &turns{bare: bare, adds: adds, loads: loads, form: form, why: why}
	if d == ByBridge && s.asked.disclosure == Automatic || loads { // what was shown has other tools of ours
		s.setShown(nil)
		s.full, s.overflow, s.seen = false, nil, weak.Pointer[partition]{}
	}
	return nil
}

// choose returns the disclosure that costs least over a whole conversation among those
// that work with a format and a model. BENCHMARKS has the figures.
func (v *view) choose(form *provider.Form, model string, complete bool) (d Disclosure, bare bool, why reason) {
	searches := mayUse(v.rights, SearchToolName)
	switch {
	case form.Adds(model):
		return ByAddition, false, takesTools
	case !searches:
		return ByBridge, true, mayNotSearch
	case !mayUse(v.rights, CallToolName):
		return ByActivation, false, mayNotCall
	case !v.searchMode() && complete:
		return ByBridge, true, nothingDeferred
	case model == "" && form.CanAdd():
		return ByBridge, false, noModelNamed
	}
	return ByBridge, false, takesNoTools
}

// writeTurn writes what was taken. The caller holds no lock: it calls the host's counter
// of tokens.
func (s *Session) writeTurn(form *provider.Form, list []listItem, said telling) (Turn, error) {
	base, news := list[:said.base], list[said.from:]
	turn := Turn{
		System: s.textOf(base, said.prefix, true, true), Waiting: said.waiting,
		Disclosure: said.disclosure, Why: said.why.String(), Place: len(list), Before: said.from, form: form,
	}
	var err error
	if turn.Tools, err = s.export(base, form, said.loads); err != nil {
		return Turn{}, err
	}
	turn.first = len(turn.Tools)
	if !said.adds { // with ByActivation there are some
		added, err := s.export(list[said.base:], form, said.loads)
		if err != nil {
			return Turn{}, err
		}
		turn.Tools = append(turn.Tools, added...)
	} else if turn.Added, err = s.export(remaining(news), form, said.loads); err != nil {
		return Turn{}, err
	}
	if err := checkLength(form, turn.Tools); err != nil {
		return Turn{}, err
	}
	if said.adds {
		turn.Betas = form.Betas()
		turn.Removed = takenBack(news, form)
	}
	turn.News = form.Text(s.newsOf(news), said.adds)
	if said.at == appends {
		turn.Append = form.Messages(provider.News{Text: turn.News, Added: toolsOf(turn.Added), Removed: turn.Removed}, said.adds)
		return turn, nil
	}
	from := said.base
	for _, in := range append(slices.Clip(said.inserts), insert{int32(len(list)), int32(said.at)}) {
		items := list[from:max(from, int(in.told))]
		from += len(items)
		added, err := s.export(remaining(items), form, said.loads)
		if err != nil {
			return Turn{}, err
		}
		n := provider.News{Text: form.Text(s.newsOf(items), said.adds)}
		if said.adds {
			n.Added, n.Removed = toolsOf(added), takenBack(items, form)
		}
		if messages := form.Messages(n, said.adds); messages != nil {
			turn.Inserts = append(turn.Inserts, Insert{int(in.at), from - len(items), n.Text, messages})
		}
	}
	return turn, nil
}

// takenBack returns the names of the tools that items take back, if the provider can. A tool
// that the same items offer was never told of.
func takenBack(items []listItem, form *provider.Form) (names []string) {
	for i, e := range items {
		offered := func(before listItem) bool { return before.isTool() && before.tool == e.tool }
		if e.slot == asRemoved && form.Removes() && !slices.ContainsFunc(items[:i], offered) {
			names = append(names, e.tool.name)
		}
	}
	return names
}

func toolsOf(exported []ExportedTool) []provider.Tool {
	var list []provider.Tool
	for _, e := range exported {
		list = append(list, provider.Tool(e))
	}
	return list
}

// untell has the next Turn tell the same again.
func (s *Session) untell(said telling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns != said.turns || s.closed {
		return // another Turn failed too, or Compact was called
	}
	s.turns.told, s.turns.inserts = min(s.turns.told, int32(said.from)), said.inserts
	if said.first {
		s.turns = nil
		s.disclosure.Store(int32(s.asked.disclosure))
		s.setShown(said.was)
		s.prefix, s.full, s.seen = said.wasPrefix, said.wasFull, weak.Pointer[partition]{}
	}
}

// newsOf returns the text of items that came after the beginning, or "".
func (s *Session) newsOf(items []listItem) string {
	to := sectionText{heading: words.MoreToolsHeading}
	s.write(&to, items, true, true)
	return to.text
}

// TakeBack tells the session that the host has taken messages back: of the conversation,
// what was there up to the Turn with that [Turn.Place] is left. The next Turn gives again
// what was appended since. A conversation without any Turn's messages has the place 0.
func (s *Session) TakeBack(place int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns == nil {
		return
	}
	t := s.turns
	t.told = max(t.base, min(t.told, int32(max(0, min(place, math.MaxInt32)))))
	for n := len(t.inserts); n > 0 && t.inserts[n-1].told > t.told; n-- {
		t.inserts = t.inserts[: n-1 : n-1]
	}
}

// goBack forgets what was inserted behind more messages than there are.
func (t *turns) goBack(messages int) {
	n := len(t.inserts)
	for n > 0 && int(t.inserts[n-1].at) > messages {
		n--
	}
	if n == len(t.inserts) {
		return
	}
	t.inserts, t.told = slices.Clip(t.inserts[:n]), t.base
	if n > 0 {
		t.told = t.inserts[n-1].told
	}
}

// remaining returns list without the tools that it takes back. A tool may be offered
// again behind the place where it was.
func remaining(list []listItem) []listItem {
	last := make(map[*BridgeTool]int) // where it was taken back
	for i, e := range list {
		if e.slot == asRemoved {
			last[e.tool] = i
		}
	}
	if len(last) == 0 {
		return list
	}
	var left []listItem
	for i, e := range list {
		if at, ok := last[e.tool]; e.slot != asRemoved && !(ok && i < at && e.isTool()) {
			left = append(left, e)
		}
	}
	return left
}
