package mcphybrid

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/request"
	"github.com/mcphybrid/mcphybrid/provider"
)

// A Turn is what the next request to the model needs of a session. Each request begins
// with all bytes of the one before, but for Anthropic's cache breakpoints: what came since
// is appended to the conversation, and never put into the system prompt or, but with
// [ByActivation], the list of tools, until [Session.Compact].
type Turn struct {
	// System is the text behind the host's system prompt: the sections as they were at
	// the beginning. It begins with a blank line, or is "".
	System string

	// Tools are the tools as they were at the beginning. With [ByActivation] alone, those
	// that came since stand at the end.
	Tools []provider.Tool

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
	Added   []provider.Tool
	Removed []string

	// Waiting has the registered names of tools that came after the beginning and that
	// the model can neither see nor find: they are not in the list of tools, no tool there
	// can call them, and none can be added to the conversation. They are there after the
	// next [Session.Compact]. An [EventWaiting] tells of each once, and after a restore again.
	Waiting []string

	// Betas are what Anthropic wants to read in the header anthropic-beta, or nil.
	Betas []string

	// Disclosure is how the model gets the tools that are not inline, and Why says why
	// this way was chosen, in words for people.
	Disclosure Disclosure
	Why        string

	// Place is the place of this Turn in the conversation, and Before the one of the Turn
	// before it, maybe in another process: see [Session.TakeBack]. Places from before a restore that
	// reported changes do not hold.
	Place  int
	Before int

	// Inserts are given by [Session.TurnAt] alone, in place of Append: all that was ever
	// appended, in the order of the conversation.
	Inserts []Insert

	form  *request.Form
	first int // how many of Tools were there at the beginning
}

// An Insert is what one Turn appended to a conversation. Several may stand at one place, in
// their order. Where the provider refuses that, one Insert has what several Turns appended.
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
// message, and where the request before ended, if that is 20 blocks back or more. A message
// with that mark is a copy. The API takes four marks: each in a message of the host's takes
// the place of one of these. Messages of the role system stand behind those of the user,
// before an answer or at the end, and those that meet there are one: it refuses all else.
// For Bedrock, messages of one role that follow each other are one.
func (t Turn) Body(system string, messages []json.RawMessage) map[string]any {
	return t.form.Body(system+t.System, t.Tools, t.first, messages)
}

// Turn returns what the next request to a model needs. Call it once before each request,
// after you appended the message of the user or the results of tools. It has nothing to do
// with [Session.NextTurn], which counts messages of the user. model is the name of
// the model as the provider has it, or "" if the host does not know it: then the session
// uses nothing that only some models take.
//
// The first Turn of an [Automatic] session chooses its disclosure by the format and the
// model, and fixes the system prompt and the list of tools. A conversation may go on in
// another process: see [Session.Save].
//
// If the request fails, send the same one again, without another Turn. Or keep what was
// appended and go on: if the user writes before there is an answer, [Turn.Body] puts what
// stands before that message behind it, where Anthropic takes it. A host that does not use
// Body does so itself, or drops what it appended and calls [Session.TakeBack] with
// [Turn.Before].
//
// Turn fails if the format is unknown, if the format or the model can't do what the
// session's disclosure needs, if the provider can't take a tool's name, or if there are more
// tools than it accepts. Then nothing was told. A conversation in which tools are added can't
// go on with an older model that takes none there: the host calls [Session.Compact] first.
func (s *Session) Turn(f provider.Format, model string) (Turn, error) {
	return s.nextRequest(f, model, atEnd)
}

// TurnAt is [Session.Turn] for a host whose runtime keeps the conversation, so that nothing
// can be appended to it for good: the host puts [Turn.Inserts] into each request. messages
// is how many messages the conversation has now, without any of these. If it has fewer
// than before, the session takes back what was inserted behind them, and tells it again.
// What comes while the conversation does not grow, as a window of fixed length, stands behind
// what was inserted last.
func (s *Session) TurnAt(f provider.Format, model string, messages int) (Turn, error) {
	return s.nextRequest(f, model, max(0, min(messages, math.MaxInt32)))
}

// atEnd stands for the end of a conversation that the host keeps.
const atEnd = -1

func (s *Session) nextRequest(f provider.Format, model string, at int) (Turn, error) {
	form, err := request.FormOf(f)
	if err != nil {
		return Turn{}, fmt.Errorf("mcphybrid: %w", err)
	}
	list, taken, err := s.takeTurn(form, model, at)
	if err != nil {
		return Turn{}, fmt.Errorf("mcphybrid: %w", err)
	}
	turn, err := s.writeTurn(form, list, taken)
	if err != nil {
		s.untell(taken)
		s.syncRegistry()
		return Turn{}, fmt.Errorf("mcphybrid: %w", err)
	}
	if taken.first {
		s.syncRegistry()
		s.emit(Event{Kind: EventBegin, Disclosure: turn.Disclosure, Why: turn.Why})
	}
	if fresh := s.noteWaiting(taken); fresh != nil {
		s.emit(Event{Kind: EventWaiting, Tools: fresh})
	}
	return turn, nil
}

// noteWaiting notes the names that wait now, and returns those that did not at the Turn before.
func (s *Session) noteWaiting(taken takenTurn) (fresh []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transcript != taken.turns || slices.Equal(s.transcript.waiting, taken.waiting) { // after Compact nothing waits
		return nil
	}
	waited := make(map[string]bool, len(s.transcript.waiting))
	for _, name := range s.transcript.waiting {
		waited[name] = true
	}
	for _, name := range taken.waiting {
		if !waited[name] {
			fresh = append(fresh, name)
		}
	}
	s.transcript.waiting = slices.Clone(taken.waiting) // the host has the other
	return fresh
}

// A takenTurn is what one Turn takes of a session's list, for writeTurn.
type takenTurn struct {
	base, from int // the items of the beginning, and those that were told before
	prefix     *promptPrefix
	disclosure Disclosure
	why        disclosureReason
	adds       bool
	loads      bool
	first      bool
	waiting    []string
	inserts    []insert // earlier ones
	at         int      // where this one is, or atEnd

	turns     *transcript // of the session, at that time
	was       []listItem  // before a first Turn, as are wasPrefix and wasFull
	wasPrefix *promptPrefix
	wasFull   bool
}

// takeTurn begins the conversation if it has not begun, and takes all that the model was
// not told yet.
func (s *Session) takeTurn(form *request.Form, model string, at int) ([]listItem, takenTurn, error) {
	complete := s.mayOmitBridge(form, model) && s.tenant.manager.allListed()
	s.mu.Lock()
	defer s.mu.Unlock()
	first, was, wasPrefix, wasFull := !s.transcriptCopy().begun, s.shown, s.prefix, s.full
	v := s.viewLocked() // the only one: the Manager may be closed at any moment
	if v.ended {
		return nil, takenTurn{}, ErrClosed
	}
	if first {
		if err := s.fixDisclosure(v, form, model, complete); err != nil {
			return nil, takenTurn{}, err
		}
	}
	d := s.Disclosure()
	if err := checkDisclosure(form, model, d, s.transcriptCopy().adds); err != nil {
		return nil, takenTurn{}, fmt.Errorf("%w: Compact begins anew", err)
	}
	if s.transcript.loads && !form.Searches() {
		return nil, takenTurn{}, fmt.Errorf("the format %s has no tool_search, with which the conversation began", form.Format())
	}
	s.transcript.form = form
	if at != atEnd {
		s.transcript.goBack(at)
	}
	if !first {
		s.forgetUntold()
	}
	v = s.viewOf(v.partition)
	list := s.updateShown(v)
	if first {
		s.transcript.begun, s.transcript.base, s.transcript.told = true, int32(len(list)), int32(len(list))
		if was != nil { // it may lack inline tools, which are not added any more
			s.refit(v.partition)
		}
	}
	taken := takenTurn{
		turns: s.transcript, was: was, wasPrefix: wasPrefix, wasFull: wasFull, at: at, inserts: s.transcript.inserts,
		base: int(s.transcript.base), from: min(int(s.transcript.told), len(list)), prefix: s.prefix, disclosure: d, why: s.transcript.why,
		adds: s.transcript.adds, loads: s.transcript.loads, first: first,
	}
	if taken.prefix != nil && len(taken.prefix.items) > taken.base { // only in a forged state
		taken.prefix = nil
	}
	if s.transcript.told = int32(len(list)); at != atEnd && taken.from < len(list) {
		s.transcript.inserts = append(slices.Clip(s.transcript.inserts), insert{s.transcript.told, int32(at)})
	}
	if s.transcript.fixed(d) && !(s.metas[metaSearch] && s.metas[metaCall]) {
		taken.waiting = v.missing(list)
	}
	return list, taken, nil
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

// writeTurn writes what was taken. The caller holds no lock: it calls the host's counter
// of tokens.
func (s *Session) writeTurn(form *request.Form, list []listItem, taken takenTurn) (Turn, error) {
	base, news := list[:taken.base], list[taken.from:]
	turn := Turn{
		System: s.textOf(base, taken.prefix, true, true), Waiting: taken.waiting,
		Disclosure: taken.disclosure, Why: taken.why.String(), Place: len(list), Before: taken.from, form: form,
	}
	var err error
	if turn.Tools, err = s.export(base, form, taken.loads); err != nil {
		return Turn{}, err
	}
	turn.first = len(turn.Tools)
	if !taken.adds { // with ByActivation there are some
		added, err := s.export(list[taken.base:], form, taken.loads)
		if err != nil {
			return Turn{}, err
		}
		turn.Tools = append(turn.Tools, added...)
	} else if turn.Added, err = s.export(remaining(news), form, taken.loads); err != nil {
		return Turn{}, err
	}
	if err := checkLength(form, turn.Tools); err != nil {
		return Turn{}, err
	}
	if taken.adds {
		turn.Betas = form.Betas()
		turn.Removed = takenBack(news, form)
	}
	turn.News = form.Text(s.newsOf(news), taken.adds)
	if taken.at == atEnd {
		turn.Append = form.Messages(request.News{Text: turn.News, Added: turn.Added, Removed: turn.Removed}, taken.adds)
		return turn, nil
	}
	from := taken.base
	for _, in := range append(slices.Clip(taken.inserts), insert{int32(len(list)), int32(taken.at)}) {
		items := list[from:max(from, int(in.told))]
		from += len(items)
		added, err := s.export(remaining(items), form, taken.loads)
		if err != nil {
			return Turn{}, err
		}
		n := request.News{Text: form.Text(s.newsOf(items), taken.adds)}
		if taken.adds {
			n.Added, n.Removed = added, takenBack(items, form)
		}
		messages, last := form.Messages(n, taken.adds), len(turn.Inserts)-1
		switch {
		case messages == nil:
		case last >= 0 && turn.Inserts[last].At == int(in.at) && form.Joins(taken.adds):
			to := &turn.Inserts[last]
			to.News = strings.Trim(to.News+"\n\n"+n.Text, "\n")
			to.Messages = request.Join(append(to.Messages, messages...))
		default:
			turn.Inserts = append(turn.Inserts, Insert{int(in.at), from - len(items), n.Text, messages})
		}
	}
	return turn, nil
}

// newsOf returns the text of items that came after the beginning, or "".
func (s *Session) newsOf(items []listItem) string {
	to := sectionText{heading: textMoreToolsHeading}
	s.write(&to, items, true, true)
	return to.text
}

// NextTurn tells the session that a new turn of the conversation begins. The
// host decides what a turn is, for example one message of the user. If the host
// never calls NextTurn, no active tool grows old: see [ActiveOptions.Turns].
func (s *Session) NextTurn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.userTurn < math.MaxInt { // a saved session may be there already
		s.userTurn++
	}
}
