// Package saved has the JSON form of a conversation: what a model was shown, the
// definitions of the tools in it, and what is active. It keeps the form within a
// limit of bytes, and it trusts nothing that it reads.
package saved

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// The versions of the form: whole, and in parts. Who reads one must not misread it: what an older
// reader would take for something else, or leave out, needs a new number.
const (
	version      = 4
	versionParts = 5
	oldest       = 2 // has fewer kinds of items
)

// The versions that can be written.
const (
	Newest = versionParts
	Oldest = version // all versions that read Newest read it, and stores of sessions keep it as it is
)

// ErrNewer means that a state has a version that came later than this code.
var ErrNewer = errors.New("a newer version of the library has saved it")

// beforePrefix stands before the prefix, which is the last member. No string has it: there,
// quotes are escaped.
const beforePrefix = `,"began":`

// maxEntries is how many entries each list of a [State] may have.
const maxEntries = 1 << 16

// A State is a saved conversation.
type State struct {
	Version int          `json:"version"`
	Catalog string       `json:"catalog"` // a fingerprint, for people
	User    string       `json:"user,omitempty"`
	Lists   int          `json:"lists"`            // number of access lists on its tools
	Skills  int          `json:"skills,omitempty"` // number of access lists on its skills
	Turn    int          `json:"turn"`
	Intent  string       `json:"intent,omitempty"`
	Tools   list[Tool]   `json:"tools,omitempty"`  // that Shown and Active refer to, those of Shown first, in its order
	Shown   list[Item]   `json:"shown,omitempty"`  // in the order in which the model was shown them
	Active  list[Active] `json:"active,omitempty"` // in activation order
	Results int          `json:"results,omitempty"`
	Paged   bool         `json:"paged,omitempty"`
	Full    bool         `json:"full,omitempty"`
	Refused *Refusal     `json:"refused,omitempty"`
	Told    *Told        `json:"told,omitempty"` // nil if the conversation was not begun turn by turn
	Cut     string       `json:"cut,omitempty"`  // keys of the texts of cut results, as Texts returned them; empty without parts

	// A whole state has its prefix in Tools and Shown, and PrefixLen says how much of them that
	// is. A stored one has it apart, as Prefix or in parts under PrefixKey: [State.Whole] puts
	// it back. PrefixKey is "" if nothing is apart.
	PrefixKey   string    `json:"opening,omitempty"`
	PrefixTools int       `json:"first,omitempty"` // how many tools it has; places count them
	Gone        list[int] `json:"gone,omitempty"`  // places of those that had left

	// Prefix is nil if it is in parts. It is the last member: see [Parse].
	Prefix *Prefix `json:"began,omitempty"`

	// Texts puts the texts of cut results and says under which keys, or is nil.
	Texts func(put func(key string, last time.Time, text *string) (string, time.Time)) string `json:"-"`

	PrefixLen PrefixLen `json:"-"`
	unread    []byte    // what was parsed, if it has a prefix that was not read; else nil
	left      int       // how many bytes the parts may have
}

// A Tool is one version of a tool.
type Tool struct {
	rules.Subject
	OfUser bool `json:"user,omitempty"` // the server is one of the user's own
	Gone   bool `json:"gone,omitempty"` // it was shown, and then left the catalog

	// Definition is the element of tools/list, each byte of it. It is nil if
	// the tool was not shown, or if Part is its key.
	Definition Bytes  `json:"definition,omitempty"`
	Part       string `json:"part,omitempty"`
	Sum        *Sum   `json:"-"` // of Definition, or nil if nobody has computed it
}

// A Sum is the SHA-256 of a definition.
type Sum = [sha256.Size]byte

// An Item is one item that a model was shown. The kinds and what they have are up
// to the caller.
type Item struct {
	Kind    string        `json:"kind"`
	Tool    int           `json:"tool,omitempty"` // place in Tools, from 1; 0 if the item has none
	Line    int           `json:"line,omitempty"`
	Meta    string        `json:"meta,omitempty"`
	Servers list[*Server] `json:"servers,omitempty"` // none is nil
	Skills  *Skills       `json:"skills,omitempty"`
}

// A Server is a server as a model was told of it.
type Server struct {
	Server string        `json:"server"`
	Tools  int           `json:"tools"`           // deferred, or not listed
	About  string        `json:"about,omitempty"` // words from their names
	Gist   string        `json:"gist,omitempty"`  // of the server's instructions
	Own    string        `json:"own,omitempty"`   // the same of the user's server of that name, if the system has one too
	Tool   rules.Subject `json:"tool"`            // one of them
}

// Same reports whether o says the same.
func (s *Server) Same(o *Server) bool {
	if s == o {
		return true
	}
	t, u := s.Tool, o.Tool
	return s.Server == o.Server && s.Tools == o.Tools && s.About == o.About && s.Gist == o.Gist && s.Own == o.Own &&
		t.Name == u.Name && t.Server == u.Server && t.Own == u.Own && t.Wanted == u.Wanted
}

// Skills are skills as a model was told of them.
type Skills struct {
	Listed list[Skill] `json:"listed,omitempty"`
	Count  int         `json:"count,omitempty"`
	More   bool        `json:"more,omitempty"`
}

// A Skill is a skill as it was listed.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Server      string `json:"server,omitempty"` // that has it, if it is not the host's
	URI         string `json:"uri,omitempty"`    // of its SKILL.md there
}

// A Told says what of the items the conversation has.
type Told struct {
	By       string `json:"by"`              // how the model gets what is not listed
	Begun    int    `json:"begun"`           // the first items stand before the messages
	Items    int    `json:"items,omitempty"` // these and further ones were told
	NoBridge bool   `json:"bare,omitempty"`  // there is no tool that finds and calls others
	Adds     bool   `json:"adds,omitempty"`  // the conversation adds tools
	Loads    bool   `json:"loads,omitempty"` // the model loads tools by searches that the host answers
	Why      int    `json:"why,omitempty"`   // a number of the caller's

	Inserts list[Insert] `json:"inserts,omitempty"` // in the order of the conversation
}

// An Insert says where in the host's conversation the model was told of items.
type Insert struct {
	Items int `json:"items"` // so many items were told then
	At    int `json:"at"`    // behind so many messages of the host's
}

// An Active is an active tool.
type Active struct {
	Tool int `json:"tool"` // place in Tools, from 1
	Used int `json:"used"` // turn of the last use
}

// A Refusal is the last call that was rejected for its arguments.
type Refusal struct {
	Sum   string `json:"sum"`   // of the tool's name and the arguments
	Times int    `json:"times"` // in a row
}

// JSON returns s as a JSON object that has at most limit bytes together with what it
// has in parts, which may be nil. If s does not fit, the items that were shown last are
// left out, then the tools that were activated last. What else there is must fit.
//
// It has the version [Newest], or [Oldest] if it has no prefix and no parts.
func (s *State) JSON(limit int, parts *Parts) json.RawMessage {
	s.Version = version
	if max(len(s.Shown), len(s.Active), len(s.Tools)) <= maxEntries {
		if parts != nil {
			if data := s.inParts(limit, parts); data != nil {
				return data
			}
		}
		if data := s.withPrefix(); data != nil && len(data) <= limit {
			return data
		}
		if data := text.RawJSON(s); len(data) <= limit {
			return data
		}
	}
	active := sort.Search(min(len(s.Active), maxEntries/2), func(n int) bool {
		p := s.first(0, n+1)
		return len(text.JSON(p)) > limit
	})
	p := s.first(0, active)
	p = s.first(s.fitting(limit-len(text.JSON(p))), active)
	return text.RawJSON(p)
}

// fitting returns how many of the items fit into that many bytes, with their tools
// and with the names of the two lists.
func (s *State) fitting(left int) int {
	left -= len(`"tools":[],"shown":[],`)
	known := make(map[int]bool)
	for i, e := range s.Shown {
		left -= len(text.JSON(e)) + 1
		if e.Tool > 0 && !known[e.Tool] {
			known[e.Tool] = true
			left -= len(text.JSON(s.Tools[e.Tool-1])) + 1
		}
		if left < 0 || i == maxEntries/2 { // the other half is for the active tools
			return i
		}
	}
	return len(s.Shown)
}

// first returns s with only the first items and active tools, and the tools to
// which these refer.
func (s *State) first(shown, active int) *State {
	p := *s
	p.Tools, p.Shown, p.Active = nil, nil, nil
	place := make(map[int]int)
	refer := func(tool int, defined bool) int {
		if tool > 0 && place[tool] == 0 {
			t := s.Tools[tool-1]
			if !defined {
				t.Definition = nil
			}
			p.Tools = append(p.Tools, t)
			place[tool] = len(p.Tools)
		}
		return place[tool]
	}
	for _, e := range s.Shown[:shown] {
		e.Tool = refer(e.Tool, true)
		p.Shown = append(p.Shown, e)
	}
	for _, a := range s.Active[:active] {
		a.Tool = refer(a.Tool, false)
		p.Active = append(p.Active, a)
	}
	return &p
}

// Parse reads what [State.JSON] wrote, from a source that may not be it, but for the
// prefix: see [State.Whole]. It fails if data is malformed or of another version, or
// if something in it refers to a tool that it does not have. The tools that it returns
// have names that are safe for providers.
//
// What stores a state may write the same JSON in another way. So Parse fails if data
// has more than limit bytes without spaces and escapes, or more than four times
// limit with them.
func Parse(data []byte, limit int) (*State, error) {
	n := len(data)
	if n/4 > limit {
		return nil, fmt.Errorf("it has %d bytes, more than four times the limit of %d", n, limit)
	}
	head, _, found := bytes.Cut(data, []byte(beforePrefix))
	if !found || n > limit {
		n = size(data)
	}
	if n > limit {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", n, limit)
	}
	s := State{unread: data, left: limit - n}
	if !found || json.Unmarshal(append(bytes.Clone(head), '}'), &s) != nil || s.Version != versionParts || s.PrefixKey == "" {
		s = State{left: limit - n} // what stores a state may sort the members
		if err := json.Unmarshal(data, &s); err != nil {
			if v := versionOf(data); v > Newest { // whose members may be others
				return nil, newer(v)
			}
			return nil, text.JSONError(data, err)
		}
	}
	switch {
	case s.Version > Newest:
		return nil, newer(s.Version)
	case s.Version < oldest:
		return nil, fmt.Errorf("version %d, want %d to %d", s.Version, oldest, Newest)
	}
	if s.PrefixTools < 0 || s.PrefixTools > maxEntries || s.PrefixKey == "" && s.PrefixTools > 0 {
		return nil, fmt.Errorf("its prefix %q has %d tools", text.Line(s.PrefixKey, text.MaxName), s.PrefixTools)
	}
	for _, i := range s.Gone {
		if i < 1 || i > s.PrefixTools {
			return nil, fmt.Errorf("tool %d of %d of its prefix is gone", i, s.PrefixTools)
		}
	}
	if err := checkTools(s.Tools); err != nil {
		return nil, err
	}
	tools := s.PrefixTools + len(s.Tools)
	if err := checkItems(s.Shown, tools); err != nil {
		return nil, err
	}
	for i, a := range s.Active {
		if a.Tool < 1 || a.Tool > tools {
			return nil, fmt.Errorf("active tool %d refers to tool %d of %d", i+1, a.Tool, tools)
		}
	}
	return &s, nil
}

// versionOf returns the version of a state that can't be read, or 0.
func versionOf(data []byte) int {
	var s struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &s) != nil {
		return 0
	}
	return s.Version
}

func newer(version int) error {
	return fmt.Errorf("%w: it has version %d, want %d to %d", ErrNewer, version, oldest, Newest)
}

// Fits returns an error if a session with so many access lists, lists of skills and
// with that intent has fewer than the one that was saved, or no intent where that one
// had one: rules by intent may hide tools.
func (s *State) Fits(lists, skills int, intent string) error {
	const hint = "pass the same options, and restore a child with its parent's RestoreChild"
	switch {
	case s.Lists > lists:
		return fmt.Errorf("the saved session has more access lists than the new one, %d instead of %d: %s", s.Lists, lists, hint)
	case s.Skills > skills:
		return fmt.Errorf("the saved session has more lists of skills than the new one, %d instead of %d: %s", s.Skills, skills, hint)
	case s.Intent != "" && intent == "":
		return fmt.Errorf("the saved session had the intent %q: set SessionOptions.Intent to that of the new one", text.Line(s.Intent, text.MaxName))
	}
	return nil
}

// checkTools returns an error for the first tool without usable names.
func checkTools(tools []Tool) error {
	for i, t := range tools {
		if !text.IsSafeName(t.Name) || t.Server == "" || t.Own == "" {
			return fmt.Errorf("tool %d has no usable name, server and own name: %q, %q, %q", i+1,
				text.Line(t.Name, text.MaxName), text.Line(t.Server, text.MaxName), text.Line(t.Own, text.MaxName))
		}
	}
	return nil
}

// checkItems returns an error for the first item that refers to none of the tools.
func checkItems(items []Item, tools int) error {
	for i, e := range items {
		if e.Tool < 0 || e.Tool > tools {
			return fmt.Errorf("item %d refers to tool %d of %d", i+1, e.Tool, tools)
		}
		if slices.Contains(e.Servers, nil) {
			return fmt.Errorf("item %d has a server that is null", i+1)
		}
	}
	return nil
}

// size returns how many bytes a JSON text has without spaces, with each character
// in place of its escape. That is never more than [State.JSON] writes.
func size(data []byte) (n int) {
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			quoted = !quoted
			n++
		case !quoted:
			if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				n++
			}
		case c != '\\' || i+1 == len(data):
			n++
		case data[i+1] == 'u' && i+5 < len(data):
			r, _ := strconv.ParseUint(string(data[i+2:i+6]), 16, 16) // json.Unmarshal refuses what is malformed
			if n += 2; !utf16.IsSurrogate(rune(r)) {
				n += utf8.RuneLen(rune(r)) - 2
			}
			i += 5
		default:
			n += 2
			if i++; data[i] == '/' {
				n--
			}
		}
	}
	return n
}

// A list is read up to maxEntries: a short text could else become a long list of
// large values.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(data []byte) error {
	switch {
	case text.IsNull(data):
		return nil
	case data[0] != '[':
		return fmt.Errorf("a list is missing: %s", text.Line(string(data[:min(len(data), text.MaxName)]), text.MaxName))
	case !fewEntries(data):
		return fmt.Errorf("a list has more than %d entries", maxEntries)
	}
	if err := json.Unmarshal(data, (*[]T)(l)); err != nil {
		return text.JSONError(data, err)
	}
	return nil
}

// fewEntries reports whether a JSON array has at most maxEntries elements.
func fewEntries(array []byte) bool {
	entries, depth, quoted := 1, 0, false
	for i := 0; i < len(array); i++ {
		switch c := array[i]; {
		case c == '\\': // within a string
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			entries++
		}
	}
	return entries <= maxEntries
}

// Bytes are written as a string, or if they are no valid UTF-8, as an array of one
// string in base 64: a JSON text as a value would be reformatted by what stores it.
type Bytes []byte

func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return text.Quote(string(b)), nil
	}
	return json.Marshal([][]byte{b})
}

func (b *Bytes) UnmarshalJSON(data []byte) error {
	var s string
	var encoded [1][]byte
	if err := json.Unmarshal(data, &s); err == nil {
		*b = Bytes(s)
		return nil
	}
	if json.Unmarshal(data, &encoded) != nil {
		return errors.New("a definition is neither a string nor an array of one in base 64")
	}
	*b = encoded[0]
	return nil
}
