package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/stretchr/testify/assert"
)

// A form is what the protocol permits, or nobody is asked.
func TestForms(t *testing.T) {
	many := make([]string, maxFields+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":{"type":"string"}`, i)
	}
	for schema, want := range map[string]string{
		`{"type":"object","properties":{}}`: "",
		`{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]},"b":{"type":"array","items":{"anyOf":[{"const":"x"}]}},"c":{"type":"array","items":{"type":"string","enum":["x"]}},"d":{"type":"integer"}},"required":["a"]}`: "",
		`{"properties":{}}`:                      "is not that of an object",
		`{"type":["object"]}`:                    "is not that of an object",
		`null`:                                   "is not that of an object",
		`5`:                                      "is not that of an object",
		`{"type":"object","properties":[]}`:      "is not that of an object",
		`{"type":"object","properties":{"a":5}}`: `has a field "a" that is not an object`,
		`{"type":"object","properties":{"c":{},"b":{},"a":{},"d":{}}}`:                                           `has a field "a" that is not flat`,
		`{"type":"object","properties":{"a":{}}}`:                                                                `has a field "a" that is not flat`,
		`{"type":"object","properties":{"a":{"type":"object"}}}`:                                                 `has a field "a" that is not flat`,
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                                                  `has a field "a" that is not flat`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array"}}}}`:                         `has a field "a" that is not flat`,
		`{"type":"object","properties":{"a\n\u202eb":{"type":["string"]}}}`:                                      `has a field "a b" that is not flat`,
		`{"type":"object","properties":{` + strings.Join(many, ",") + `}}`:                                       "has 101 fields, more than the limit of 100",
		`{"type":"object","properties":{"a":{"type":"string","minLength":"long"}}}`:                              "the requestedSchema is not valid",
		`{"type":"object","properties":{"a":{"type":"string","$ref":"file:///etc/passwd"}}}`:                     "the requestedSchema is not valid",
		`{"type":"object","allOf":` + strings.Repeat(`[{"allOf":`, 300) + `[]` + strings.Repeat(`}]`, 300) + `}`: "the requestedSchema is not valid",
	} {
		asked := false
		d := newDesk(t, ask.Hooks{Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			asked = true
			return elicited(mcp.ElicitationResponseActionDecline, "dropped"), nil
		}}, func(c *Config) { c.MaxBytes = 10_000 })
		r, err := d.Elicit(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{RequestedSchema: json.RawMessage(schema)}})
		assert.Equal(t, want == "", asked, schema)
		if want != "" {
			assert.ErrorContains(t, err, want, schema)
		} else if assert.NoError(t, err, schema) {
			assert.Equal(t, elicited(mcp.ElicitationResponseActionDecline, nil), r)
		}
	}
}

// A page leads where it seems to lead, and a browser opens nothing else by it.
func TestPages(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://example.com/a?b=c#d": true, "http://localhost:8080/x": true, "http://127.0.0.1/": true, "http://[::1]/": true,
		"http://example.com": false, "javascript:alert(1)": false, "file:///etc/passwd": false, "data:text/html,x": false,
		"https://bank.com@evil.com/": false, "https:///x": false, "//example.com": false, "": false, "https://exa mple.com": false,
		"https://ex\u0430mple.com": false, "https://example.com/\u202e": false, "https://example.com/\n": false, "ssh://example.com": false,
		"http://127.0.0.1.evil.com": false, "https://example.com/" + strings.Repeat("x", maxURL): false,
	} {
		assert.Equal(t, ok, checkPage(address) == nil, address)
	}
}

// An answer that does not fit does not go out.
func TestAnswers(t *testing.T) {
	accept := mcp.ElicitationResponseActionAccept
	for name, test := range map[string]struct {
		answer, want *mcp.ElicitationResult
	}{
		"fits": {elicited(accept, map[string]any{"n": 5}), elicited(accept, map[string]any{"n": 5.0})},
		"a struct": {elicited(accept, struct {
			N int `json:"n"`
		}{5}), elicited(accept, map[string]any{"n": 5.0})},
		"wrong type":     {elicited(accept, map[string]any{"n": "5"}), nil},
		"missing":        {elicited(accept, nil), nil},
		"no object":      {elicited(accept, []int{5}), nil},
		"no JSON":        {elicited(accept, func() {}), nil},
		"unknown action": {elicited("maybe", map[string]any{"n": 5}), nil},
		"none":           {nil, nil},
		"cancel":         {elicited(mcp.ElicitationResponseActionCancel, 5), elicited(mcp.ElicitationResponseActionCancel, nil)},
	} {
		d := newDesk(t, ask.Hooks{Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			return test.answer, nil
		}}, nil)
		r, err := d.Elicit(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}})
		assert.NoError(t, err, name)
		if test.want == nil {
			test.want = elicited(mcp.ElicitationResponseActionCancel, nil)
		}
		assert.Equal(t, test.want, r, name)
	}
}

// Tools for the model are passed on by a host that says it heeds them.
func TestSampleTools(t *testing.T) {
	for _, heeded := range []bool{false, true} {
		var got []mcp.Tool
		d := newDesk(t, ask.Hooks{Sample: func(_ context.Context, _ ask.Asker, p mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			got = p.Tools
			return &mcp.CreateMessageResult{SamplingMessage: mcp.SamplingMessage{Content: mcp.NewTextContent("yes")}, Model: "m"}, nil
		}}, func(c *Config) { c.SampleTools = heeded })
		assert.Equal(t, heeded, d.Capabilities().Sampling.Tools != nil)
		_, err := d.CreateMessage(t.Context(), mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{
			Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("?")}}, Tools: []mcp.Tool{mcp.NewTool("look")},
		}})
		assert.Equal(t, heeded, err == nil)
		assert.Equal(t, heeded, len(got) == 1)
	}
}
