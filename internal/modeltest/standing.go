package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A Standing is how a tool stands with the model.
type Standing int

const (
	Unknown  Standing = iota // it is nowhere in the request
	Deferred                 // its definition is withheld until a search loads it
	Offered                  // it is in the list, or was added or loaded
	Removed                  // a message has removed it
)

// String returns it as one word.
func (s Standing) String() string {
	return [...]string{Unknown: "unknown", Deferred: "deferred", Offered: "offered", Removed: "removed"}[s]
}

// A stock follows the tools through a conversation.
type stock struct {
	tools    []json.RawMessage
	standing map[string]Standing
	removed  []string
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// A definition is what a judge reads of a tool's, in any of the protocols.
type definition struct {
	Type, Name string
	Function   struct{ Name string }
	Deferred   bool `json:"defer_loading"`
	Tools      []definition
}

// title returns the tool's name, or its type if it needs no name.
func (d definition) title() string {
	switch {
	case d.Name != "":
		return d.Name
	case d.Function.Name != "":
		return d.Function.Name
	default:
		return d.Type
	}
}

// list takes the tools of a request's list.
func (s *stock) list(tools []json.RawMessage) error {
	for _, raw := range tools {
		if err := s.take(raw, false); err != nil {
			return err
		}
	}
	return nil
}

// take adds a tool. Loaded, it is offered even if its definition is marked as deferred.
func (s *stock) take(raw json.RawMessage, loaded bool) error {
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the tool %s: %w", raw, err)
	}
	if d.title() == "" {
		return errors.New("a tool has neither a name nor a type")
	}
	s.tools = append(s.tools, raw)
	if d.Type != "namespace" {
		s.stand("", d, loaded)
	}
	for _, inner := range d.Tools { // those of a namespace
		s.stand(d.Name, inner, loaded)
	}
	return nil
}

func (s *stock) stand(namespace string, d definition, loaded bool) {
	if s.standing == nil {
		s.standing = make(map[string]Standing)
	}
	name := fullName(namespace, d.title())
	switch {
	case loaded || !d.Deferred:
		s.standing[name] = Offered
	case s.standing[name] != Offered:
		s.standing[name] = Deferred
	}
}

// change sets how a tool stands that the request must have.
func (s *stock) change(name string, to Standing) error {
	if s.standing[name] == Unknown {
		return fmt.Errorf("there is no tool %q that could be %s", name, to)
	}
	s.standing[name] = to
	if to == Removed {
		s.removed = append(s.removed, name)
	}
	return nil
}

// into puts what the stock has into a request.
func (s *stock) into(r *Request) {
	r.Tools, r.Removed, r.Standing = s.tools, s.removed, s.standing
}
