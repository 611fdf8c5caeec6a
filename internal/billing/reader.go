package billing

import (
	"encoding/json"
	"fmt"

	"github.com/mcphybrid/mcphybrid/provider"
)

// A Reader makes blocks of requests. It reads and counts each distinct part once, so that a
// conversation costs little more than its last request. Its methods must not be called
// concurrently.
type Reader struct {
	count func(string) int
	read  map[element][]part
	ids   map[part]Block
}

// An element is one of a list in a request.
type element struct {
	format     provider.Format
	list, json string
}

// A part is what becomes a block, or nothing.
type part struct {
	kind  Kind
	text  string // as the model reads it, as far as is known
	frame int    // tokens that the provider puts around it
	name  string // of the tool that it defines

	// hidden is whether the model does not read the part until a search found it: found is a
	// part that stands for the hidden definition of that name.
	hidden, found bool
}

// NewReader returns a Reader that counts tokens by count.
func NewReader(count func(text string) int) *Reader {
	return &Reader{count, make(map[element][]part), make(map[part]Block)}
}

// ReadJSON reads the JSON of a request.
func (r *Reader) ReadJSON(format provider.Format, body []byte) (Request, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	values := make(map[string]any, len(members))
	for name, value := range members {
		values[name] = value
	}
	return r.Read(format, values)
}

// Read reads the members of a request, which are what [json.Marshal] takes. A list that is a
// []json.RawMessage is read without a copy.
//
// Definitions that the provider hides from the model are not in the request that is returned,
// but stand behind the search that found them.
func (r *Reader) Read(format provider.Format, body map[string]any) (Request, error) {
	lists, ok := formats[format]
	if !ok {
		return nil, fmt.Errorf("there is no format %q", string(format))
	}
	var parts []part
	for _, l := range lists {
		elements, err := elements(body[l.member])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.member, err)
		}
		for i, raw := range elements {
			read, known := r.read[element{format, l.member, string(raw)}]
			if !known {
				if read, err = l.parts(raw); err != nil {
					return nil, fmt.Errorf("%s/%d: %w", l.member, i, err)
				}
				r.read[element{format, l.member, string(raw)}] = read
			}
			parts = append(parts, read...)
		}
	}
	q := make(Request, 0, len(parts))
	var hidden map[string]part
	for _, p := range parts {
		switch {
		case p.hidden:
		case p.found:
			if hidden == nil {
				hidden = hiddenIn(parts)
			}
			if definition, ok := hidden[p.name]; ok {
				definition.hidden, definition.kind = false, Message
				q = append(q, r.block(definition))
			}
		default:
			q = append(q, r.block(p))
		}
	}
	return q, nil
}

func hiddenIn(parts []part) map[string]part {
	hidden := make(map[string]part)
	for _, p := range parts {
		if p.hidden {
			hidden[p.name] = p
		}
	}
	return hidden
}

func (r *Reader) block(p part) Block {
	b, known := r.ids[p]
	if !known {
		b = Block{ID: len(r.ids), Tokens: r.count(p.text) + p.frame, Kind: p.kind, Name: p.name}
		r.ids[p] = b
	}
	return b
}

// elements returns a list's elements. A value that is no list is its only one.
func elements(value any) ([]json.RawMessage, error) {
	switch value := value.(type) {
	case nil:
		return nil, nil
	case []json.RawMessage:
		return value, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if raw[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	var list []json.RawMessage
	return list, json.Unmarshal(raw, &list)
}
