package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// maxBreakpoints is how many breakpoints of its cache Anthropic takes in a request.
const maxBreakpoints = 4

// A block is a part of a request of Anthropic's that can have a breakpoint.
type block struct {
	text   json.RawMessage // without the breakpoint
	marks  int             // breakpoints, with those of the contents of a result
	spoken bool            // it stands in the messages
}

// blocks returns the blocks of a request in the order in which they are cached. The
// breakpoint that the request itself can have stands at the last one.
func blocks(body []byte) ([]block, error) {
	var in struct {
		Tools    []json.RawMessage
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Mark json.RawMessage `json:"cache_control"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var list []block
	add := func(raws []json.RawMessage, role string) error {
		for _, raw := range raws {
			text, marks, err := unmarked(raw)
			if err != nil {
				return err
			}
			if role != "" {
				text = slices.Concat(json.RawMessage(role), text)
			}
			list = append(list, block{text, marks, role != ""})
		}
		return nil
	}
	if err := add(in.Tools, ""); err != nil {
		return nil, err
	}
	if err := add(split(in.System), ""); err != nil {
		return nil, err
	}
	for _, m := range in.Messages {
		if err := add(split(asBlocks(m.Content)), m.Role+" "); err != nil {
			return nil, err
		}
	}
	if set, err := mark(in.Mark); err != nil {
		return nil, err
	} else if n := len(list); set && n > 0 && list[n-1].marks == 0 {
		list[n-1].marks = 1
	}
	return list, nil
}

// checkBreakpoints returns an error if a request has too many.
func checkBreakpoints(body []byte) error {
	list, err := blocks(body)
	if err != nil {
		return err
	}
	n := 0
	for _, b := range list {
		n += b.marks
	}
	if n > maxBreakpoints {
		return fmt.Errorf("there are %d blocks with cache_control, and the API takes %d", n, maxBreakpoints)
	}
	return nil
}

// asBlocks returns a content as a list: a string is short for one text.
func asBlocks(content json.RawMessage) json.RawMessage {
	if len(content) == 0 || content[0] != '"' {
		return content
	}
	return slices.Concat(json.RawMessage(`[{"type":"text","text":`), content, json.RawMessage(`}]`))
}

// split returns the elements of a list, or the only one if it is none.
func split(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) == nil { // also if it is null
		return list
	}
	return []json.RawMessage{raw}
}

// mark reports whether the value of cache_control sets a breakpoint.
func mark(raw json.RawMessage) (bool, error) {
	var in *struct{ Type, TTL string }
	if len(raw) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(raw, &in); err != nil || in == nil {
		return false, err
	}
	if in.Type != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, in.TTL) {
		return false, fmt.Errorf("cache_control is %s", raw)
	}
	return true, nil
}

// unmarked returns a tool, a block or a message without cache_control, and how often it was
// there. All else keeps its bytes and its order. It looks into contents, but not into
// schemas and arguments, which may have a property of that name.
func unmarked(raw json.RawMessage) (text json.RawMessage, marks int, err error) {
	if !bytes.Contains(raw, []byte(`"cache_control"`)) {
		return raw, 0, nil
	}
	return plain(raw, false)
}

// plain is unmarked. If asked, it also writes a content that is a string as a list.
func plain(raw json.RawMessage, spelled bool) (text json.RawMessage, marks int, err error) {
	in := json.NewDecoder(bytes.NewReader(raw))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return raw, 0, err
	}
	out := []byte{'{'}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return nil, 0, err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, 0, err
		}
		if key == "cache_control" {
			set, err := mark(value)
			if err != nil {
				return nil, 0, err
			}
			if set {
				marks++
			}
			continue
		}
		if spelled && key == "content" {
			value = asBlocks(value)
		}
		if list := split(value); key == "content" && value[0] == '[' {
			for i := range list {
				more := 0
				if list[i], more, err = unmarked(list[i]); err != nil {
					return nil, 0, err
				}
				marks += more
			}
			value = slices.Concat([]byte{'['}, bytes.Join(raws(list), []byte{','}), []byte{']'})
		}
		name, _ := json.Marshal(key)
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), marks, nil
}

func raws(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}
