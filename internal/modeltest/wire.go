package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

type object = map[string]any

// pieces returns a text in pieces so small that words, numbers and names are cut.
func pieces(text string) []string {
	var list []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(7, len(runes))
		list, runes = append(list, string(runes[:n])), runes[n:]
	}
	return list
}

// event returns a server-sent event, without a name if it is "".
func event(name string, data any) string {
	text, _ := json.Marshal(data) // maps of plain values always marshal
	if name == "" {
		return fmt.Sprintf("data: %s\n\n", text)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, text)
}

// canonical returns JSON with its members in the order of their names. Numbers keep their
// digits.
func canonical(text string) string {
	var v any
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	if in.Decode(&v) != nil {
		return text
	}
	if _, err := in.Token(); err != io.EOF {
		return text
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// rounded is canonical with numbers as floats have them.
func rounded(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// A part is one of a message's contents, in any of the protocols.
type part struct {
	Type     string
	Text     string
	ImageURL json.RawMessage `json:"image_url"` // a string, or an object with it as url
	Source   struct{ Data string }
	ToolName string `json:"tool_name"` // of a tool_reference
}

// image returns the image of a part in base64, or "".
func (p part) image() string {
	if p.Source.Data != "" {
		return p.Source.Data
	}
	var in struct{ URL string }
	if json.Unmarshal(p.ImageURL, &in.URL) != nil && json.Unmarshal(p.ImageURL, &in) != nil {
		return ""
	}
	_, data, _ := strings.Cut(in.URL, ";base64,")
	return data
}

// contents returns the text and the images of a content, which is a string or a list of
// parts.
func contents(raw json.RawMessage) (text string, images []string, err error) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil { // also if it is null
		return text, nil, nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", nil, err
	}
	for _, p := range parts {
		if p.Text == "" && strings.HasSuffix(p.Type, "text") { // text, input_text, output_text
			return "", nil, errors.New("a text is empty")
		}
		text += p.Text
		if image := p.image(); image != "" {
			images = append(images, image)
		}
	}
	return text, images, nil
}

// A talk collects turns from messages.
type talk struct {
	turns []Turn
	open  map[string]bool // ids of calls without a result
}

// user adds a message of the user. Behind results, it has what the results could not hold
// if there are images, and else what the host tells.
func (k *talk) user(text string, images []string) error {
	switch n := len(k.turns); {
	case len(k.open) > 0:
		return fmt.Errorf("calls without a result: %v", k.open)
	case n > 0 && k.turns[n-1].Results != nil && images != nil:
		k.turns[n-1].Images = append(k.turns[n-1].Images, images...)
	case n > 0 && k.turns[n-1].Results != nil:
		return k.tell(text)
	case n > 0 && k.turns[n-1].Told != "" && k.turns[n-1].User == "":
		k.turns[n-1].User, k.turns[n-1].Images = text, images
	default:
		k.turns = append(k.turns, Turn{User: text, Images: images})
	}
	return nil
}

// tell adds what the host says beside the user and the results.
func (k *talk) tell(text string) error {
	n := len(k.turns)
	if len(k.open) > 0 {
		return fmt.Errorf("calls without a result: %v", k.open)
	}
	if n == 0 || k.turns[n-1].User == "" && k.turns[n-1].Results == nil && k.turns[n-1].Told == "" {
		k.turns = append(k.turns, Turn{})
		n++
	}
	if last := &k.turns[n-1]; last.Told != "" && text != "" {
		last.Told += "\n" + text
	} else {
		last.Told += text
	}
	return nil
}

// model adds a part of the model's answer.
func (k *talk) model(text string, calls ...Call) {
	n := len(k.turns)
	if n == 0 || k.turns[n-1].User != "" || k.turns[n-1].Results != nil || k.turns[n-1].Told != "" {
		k.turns = append(k.turns, Turn{})
		n++
	}
	k.turns[n-1].Model += text
	for _, c := range calls {
		c.Arguments = canonical(c.Arguments)
		k.turns[n-1].Calls = append(k.turns[n-1].Calls, c)
		if k.open == nil {
			k.open = make(map[string]bool)
		}
		k.open[c.ID] = true
	}
}

// result adds the result of a call. If nothing else marks errors, "Error: " does.
func (k *talk) result(id, text string, images []string, isError, marked bool) error {
	if !k.open[id] {
		return fmt.Errorf("a result for %q, which is not asked for", id)
	}
	delete(k.open, id)
	n := len(k.turns)
	if k.turns[n-1].Results == nil {
		k.turns = append(k.turns, Turn{})
		n++
	}
	if !marked {
		text, isError = strings.CutPrefix(text, "Error: ")
	}
	last := &k.turns[n-1]
	last.Results = append(last.Results, Result{id, text, isError})
	last.Images = append(last.Images, images...)
	return nil
}

// unquote puts the texts in place of the JSON strings in which they were sent.
func unquote(turns []Turn) error {
	for _, t := range turns {
		for i := range t.Results {
			r := &t.Results[i]
			if err := json.Unmarshal([]byte(r.Text), &r.Text); err != nil {
				return fmt.Errorf("the result of %q: %w", r.ID, err)
			}
			r.Text, r.IsError = strings.CutPrefix(r.Text, "Error: ")
		}
	}
	return nil
}

func (k *talk) end() ([]Turn, error) {
	if len(k.open) > 0 {
		return nil, fmt.Errorf("calls without a result: %v", k.open)
	}
	return k.turns, nil
}
