package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
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
		`{"type":"object","properties":{` + strings.Join(many[1:], ",") + `}}`: "",
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
		"http://127.0.0.1.evil.com": false, "https://example.com/a b": false, "https://example.com/~": true, "https://example.com/!": true,
		"https://example.com/" + strings.Repeat("x", 2048-20): true, "https://example.com/" + strings.Repeat("x", 2049-20): false,
	} {
		assert.Equal(t, ok, checkPage(address) == nil, address)
	}
}

// An answer that does not fit does not go out, and the log says why.
func TestAnswers(t *testing.T) {
	accept := mcp.ElicitationResponseActionAccept
	for name, test := range map[string]struct {
		answer, want *mcp.ElicitationResult
		logged       string
	}{
		"fits": {elicited(accept, map[string]any{"n": 5}), elicited(accept, map[string]any{"n": 5.0}), ""},
		"a struct": {elicited(accept, struct {
			N int `json:"n"`
		}{5}), elicited(accept, map[string]any{"n": 5.0}), ""},
		"wrong type":     {elicited(accept, map[string]any{"n": "5"}), nil, "its answer does not fit the requestedSchema: /n: "},
		"missing":        {elicited(accept, nil), nil, "its answer does not fit the requestedSchema: it is missing"},
		"no object":      {elicited(accept, []int{5}), nil, "its answer does not fit the requestedSchema: it is an array"},
		"too large":      {elicited(accept, json.RawMessage(`{"n":1e999}`)), nil, "cannot unmarshal number 1e999"},
		"no JSON":        {elicited(accept, func() {}), nil, "json: unsupported type"},
		"unknown action": {elicited("maybe", map[string]any{"n": 5}), nil, "its answer has the unknown action"},
		"none":           {nil, nil, "it returned neither an answer nor an error"},
		"cancel":         {elicited(mcp.ElicitationResponseActionCancel, 5), elicited(mcp.ElicitationResponseActionCancel, nil), ""},
		"decline":        {elicited(mcp.ElicitationResponseActionDecline, 5), elicited(mcp.ElicitationResponseActionDecline, nil), ""},
	} {
		log := new(mcptest.Log)
		d := newDesk(t, ask.Hooks{Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			return test.answer, nil
		}}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
		r, err := d.Elicit(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}})
		assert.NoError(t, err, name)
		if test.want == nil {
			test.want = elicited(mcp.ElicitationResponseActionCancel, nil)
		}
		assert.Equal(t, test.want, r, name)
		if test.logged == "" {
			assert.Empty(t, log.String(), name)
		} else {
			assert.Contains(t, log.String(), test.logged, name)
		}
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

// A client says that it can do what it has hooks for, and nothing else.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	h := ask.Hooks{
		Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			return nil, nil
		},
		Sample: func(context.Context, ask.Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return nil, nil
		},
		Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return nil, nil },
	}
	for want, hooks := range map[string]ask.Hooks{
		`{"elicitation":{"form":{},"url":{}},"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}}}}}`: {Elicit: h.Elicit},
		`{"sampling":{},"tasks":{"cancel":{},"requests":{"sampling":{"createMessage":{}}}}}`:                  {Sample: h.Sample},
		`{"roots":{}}`: {Roots: h.Roots},
	} {
		raw, err := json.Marshal(newDesk(t, hooks, nil).Capabilities())
		assert.NoError(t, err)
		assert.JSONEq(t, want, string(raw))
	}
	assert.Equal(t, mcp.ClientCapabilities{}, (*Broker)(nil).Capabilities())
}

// A user who declines has declined, as one has whom nobody asks.
func TestElicitIsDeclined(t *testing.T) {
	t.Parallel()
	form := mcp.ElicitationRequest{Params: mcp.ElicitationParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}}
	d := newDesk(t, ask.Hooks{Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
		return nil, ask.ErrDeclined
	}}, nil)
	r, err := d.Elicit(t.Context(), form)
	assert.NoError(t, err)
	assert.Equal(t, elicited(mcp.ElicitationResponseActionDecline, nil), r)
	d = newDesk(t, names("a"), func(c *Config) { c.Hooks.Elicit = nil })
	r, err = d.Elicit(t.Context(), form)
	assert.NoError(t, err)
	assert.Equal(t, elicited(mcp.ElicitationResponseActionDecline, nil), r)
}

// A question may have so many bytes, and not one more.
func TestElicitAsksWithinItsLimit(t *testing.T) {
	t.Parallel()
	asked := 0
	d := newDesk(t, ask.Hooks{Elicit: func(context.Context, ask.Asker, mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
		asked++
		return nil, ask.ErrDeclined
	}}, nil)
	raw := json.RawMessage(`{"type":"object","properties":{}}`)
	size := func(message string) int {
		b, err := json.Marshal(mcp.ElicitationParams{Message: message, RequestedSchema: raw})
		assert.NoError(t, err)
		return len(b)
	}
	for n := d.cfg.MaxBytes - size("x") - 1; ; n++ {
		message := strings.Repeat("x", n)
		_, err := d.Elicit(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: message, RequestedSchema: raw}})
		if size(message) <= d.cfg.MaxBytes {
			assert.NoError(t, err)
			continue
		}
		assert.Error(t, err)
		break
	}
	assert.Positive(t, asked)
}

// All pages must be opened, one after the other.
func TestOpen(t *testing.T) {
	t.Parallel()
	pages := []mcp.ElicitationParams{{URL: "https://example.com/1"}, {URL: "https://example.com/2"}}
	for refused, want := range map[string][]string{"": {"https://example.com/1", "https://example.com/2"}, "https://example.com/1": {"https://example.com/1"}} {
		var asked []string
		d := newDesk(t, ask.Hooks{Elicit: func(_ context.Context, _ ask.Asker, p mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
			assert.Equal(t, mcp.ElicitationModeURL, p.Mode)
			if asked = append(asked, p.URL); p.URL == refused {
				return elicited(mcp.ElicitationResponseActionDecline, nil), nil
			}
			return elicited(mcp.ElicitationResponseActionAccept, nil), nil
		}}, nil)
		assert.Equal(t, refused == "", d.Open(t.Context(), pages))
		assert.Equal(t, want, asked)
		assert.False(t, d.Open(t.Context(), nil), "there is nothing to open")
		assert.False(t, d.Open(t.Context(), []mcp.ElicitationParams{{URL: "http://example.com"}}), "nobody is asked")
	}
	assert.False(t, (*Broker)(nil).Open(t.Context(), pages))
}

// A message must have a content that we know; the role of an answer is the assistant's if
// the host gives it none.
func TestSamples(t *testing.T) {
	t.Parallel()
	answer := &mcp.CreateMessageResult{SamplingMessage: mcp.SamplingMessage{Content: mcp.NewTextContent("yes")}}
	d := newDesk(t, ask.Hooks{Sample: func(context.Context, ask.Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return answer, nil
	}}, nil)
	sample := func(content any) (*mcp.CreateMessageResult, error) {
		return d.CreateMessage(t.Context(), mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{
			{Role: mcp.RoleUser, Content: mcp.NewTextContent("?")}, {Role: mcp.RoleUser, Content: content},
		}}})
	}
	got, err := sample(mcp.NewTextContent("?"))
	assert.NoError(t, err)
	assert.Equal(t, mcp.RoleAssistant, got.Role)
	assert.Empty(t, answer.Role, "the host's answer stays")
	answer.Role = mcp.RoleUser
	got, err = sample(mcp.NewTextContent("?"))
	assert.NoError(t, err)
	assert.Equal(t, mcp.RoleUser, got.Role)
	_, err = sample(map[string]any{"type": "unknown"})
	assert.ErrorContains(t, err, "message 1: ")
	_, err = sample(strings.Repeat("x", d.cfg.MaxBytes))
	assert.ErrorContains(t, err, "bytes")
	for _, answer = range []*mcp.CreateMessageResult{nil, {}} {
		_, err = sample(mcp.NewTextContent("?"))
		assert.Error(t, err)
	}
}

// Roots that are declined are none, and an error stays one.
func TestRootsAreNone(t *testing.T) {
	t.Parallel()
	var fails error
	d := newDesk(t, ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return nil, fails }}, nil)
	for _, fails = range []error{nil, ask.ErrDeclined} {
		got, err := d.ListRoots(t.Context(), mcp.ListRootsRequest{})
		assert.NoError(t, err)
		assert.Equal(t, []mcp.Root{}, got.Roots)
	}
	fails = fmt.Errorf("broken")
	_, err := d.ListRoots(t.Context(), mcp.ListRootsRequest{})
	assert.Error(t, err)
	for name, hooks := range map[string]ask.Hooks{
		"there is no hook": {Elicit: ask.Decline().Elicit},
		"it says some, and declines": {Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///home"}}, ask.ErrDeclined
		}},
	} {
		got, err := newDesk(t, hooks, nil).ListRoots(t.Context(), mcp.ListRootsRequest{})
		assert.NoError(t, err, name)
		assert.Equal(t, []mcp.Root{}, got.Roots, name)
	}
}

// Without a broker or a caller nothing is asked, and nothing fails.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	var none *Broker
	ctx, end := none.Begin(t.Context(), "tool")
	assert.Equal(t, t.Context(), ctx)
	end(true)
	none.Close()
	none.Withdraw(mcp.JSONRPCNotification{})
	assert.Nil(t, New(Config{}))
	assert.Nil(t, NewCaller("ada", ask.Hooks{}, ask.Hooks{}))
	var nobody *Caller
	nobody.End()
	assert.Equal(t, ask.Hooks{}, nobody.Hooks())
	assert.Equal(t, t.Context(), WithCaller(t.Context(), nobody))
	told := NewCaller("ada", ask.Hooks{}, names("a"))
	assert.NotNil(t, told, "servers are told of a hook")
	assert.Nil(t, told.Hooks().Roots)
	told.End()
	c := NewCaller("ada", names("a"), ask.Hooks{})
	assert.NotNil(t, c.Hooks().Roots)
	c.End()
}
