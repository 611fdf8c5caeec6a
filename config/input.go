package config

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An answer is what the user said to an input.
type answer struct {
	value string
	err   error
}

// unasked stands for a value until the user is asked for it. It may be in all places,
// such as a port.
const unasked = "1"

// input returns the value of an input, or without ask, what stands for it.
func (e *entry) input(id string, ask bool) string {
	in, err := e.describe(id)
	if err == nil && e.source.Input == nil {
		err = fmt.Errorf("the user must be asked for %q: set a function that does, or write the value in its place", text.Line(in.Description, 200))
	}
	if err == nil && ask {
		if _, ok := e.answers[id]; !ok {
			value, err := e.source.Input(in)
			e.answers[id] = answer{value, err}
		}
		err = e.answers[id].err
	}
	if err != nil {
		if in.ID == "" { // "inputs" does not have it
			id = plainWord(id)
		}
		e.problem(`"${input:%s}": %w`, id, err)
	}
	if !ask {
		return unasked
	}
	if in.Password {
		e.secret(e.answers[id].value)
	}
	return e.answers[id].value
}

// A prompt is an input in "inputs" of VS Code.
type prompt struct {
	ID, Type, Description, Default string
	Password                       bool
	Options                        []json.RawMessage
}

// describe returns the input with that ID.
func (e *entry) describe(id string) (Input, error) {
	var all []prompt
	if len(e.inputs) > 0 && json.Unmarshal(e.inputs, &all) != nil {
		return Input{}, errors.New(`"inputs" is not a list of inputs`)
	}
	for _, in := range all {
		if in.ID != id {
			continue
		}
		if in.Type != "promptString" && in.Type != "pickString" {
			return Input{ID: id}, fmt.Errorf("an input of type %q is not supported: want promptString or pickString", plainWord(in.Type))
		}
		known := Input{ID: id, Description: in.Description, Password: in.Password, Default: in.Default}
		for _, option := range in.Options {
			var choice string
			var labelled struct{ Value string }
			if json.Unmarshal(option, &choice) != nil && json.Unmarshal(option, &labelled) == nil {
				choice = labelled.Value
			}
			known.Choices = append(known.Choices, choice)
		}
		return known, nil
	}
	return Input{}, errors.New(`"inputs" does not have it`)
}
