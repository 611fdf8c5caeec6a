package eino

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"
	"github.com/mcphybrid/mcphybrid/provider"
	orderedmap "github.com/wk8/go-ordered-map/v2"
)

// infoOf returns a tool as Eino has it. It is new each time, because models of Eino
// change what they get: they sort the required parameters.
func infoOf(t provider.Tool) (*schema.ToolInfo, error) {
	s, err := schemaOf(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("eino: tool %q: %w", t.Name, err)
	}
	return &schema.ToolInfo{Name: t.Name, Desc: t.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(s)}, nil
}

// schemaOf returns a schema in Eino's type. That type has no place for some keywords,
// such as the definitions of draft 7, and drops them. What would not stay as it is goes
// into Extras, whose JSON is sent unchanged.
func schemaOf(raw json.RawMessage) (*jsonschema.Schema, error) {
	var s jsonschema.Schema
	if json.Unmarshal(raw, &s) == nil {
		if again, err := json.Marshal(&s); err == nil && equal(raw, again) {
			return &s, nil
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	s = jsonschema.Schema{Extras: make(map[string]any)}
	for name, value := range members {
		typed := false
		switch name { // so that models of Eino that read schemas find the parameters
		case "type":
			typed = json.Unmarshal(value, &s.Type) == nil
		case "properties":
			s.Properties = propertiesOf(value)
			typed = s.Properties != nil
		}
		if !typed {
			s.Extras[name] = value
		}
	}
	return &s, nil
}

// propertiesOf returns properties in their order, or nil if one is not a schema.
func propertiesOf(raw json.RawMessage) *orderedmap.OrderedMap[string, *jsonschema.Schema] {
	all := orderedmap.New[string, json.RawMessage]()
	if json.Unmarshal(raw, all) != nil {
		return nil
	}
	properties := orderedmap.New[string, *jsonschema.Schema]()
	for p := all.Oldest(); p != nil; p = p.Next() {
		s, err := schemaOf(p.Value)
		if err != nil {
			return nil
		}
		properties.Set(p.Key, s)
	}
	return properties
}

// equal reports whether a and b are the same JSON but for the order of members.
func equal(a, b []byte) bool {
	var x, y any
	for _, side := range []struct {
		raw []byte
		v   *any
	}{{a, &x}, {b, &y}} {
		d := json.NewDecoder(bytes.NewReader(side.raw))
		d.UseNumber()
		if d.Decode(side.v) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}
