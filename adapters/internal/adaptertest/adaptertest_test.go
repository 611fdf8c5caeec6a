package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
)

type object = map[string]any

// plain is a host without a runtime: chat completions by hand.
type plain struct {
	url      string
	session  *mcphybrid.Session
	forgets  bool
	messages []any
	spoils   func(body object) // makes a mistake
}

func (p *plain) Run(ctx context.Context, message string) (answer string, err error) {
	begun := slices.Clone(p.messages)
	defer func() {
		if err != nil && (p.forgets || ctx.Err() != nil) {
			p.messages = begun
		}
	}()
	if message != "" {
		p.messages = append(p.messages, object{"role": "user", "content": message})
	}
	for {
		reply, err := p.ask(ctx)
		if err != nil {
			return "", err
		}
		p.messages = append(p.messages, reply)
		calls, _ := reply["tool_calls"].([]any)
		if calls == nil {
			return reply["content"].(string), nil
		}
		var media []any
		for _, c := range calls {
			c := c.(object)
			f := c["function"].(object)
			res, _ := p.session.Call(ctx, f["name"].(string), f["arguments"])
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			e, err := provider.ExportResult(res, provider.OpenAIChat)
			if err != nil {
				return "", err
			}
			p.messages = append(p.messages, object{"role": "tool", "tool_call_id": c["id"], "content": e.JSON})
			for _, part := range e.Media {
				media = append(media, part)
			}
		}
		if media != nil {
			p.messages = append(p.messages, object{"role": "user", "content": media})
		}
	}
}

func (p *plain) ask(ctx context.Context) (object, error) {
	tools, err := p.session.Export(provider.OpenAIChat)
	if err != nil {
		return nil, err
	}
	list := []json.RawMessage{}
	for _, t := range tools {
		list = append(list, t.JSON)
	}
	system := object{"role": "system", "content": System + p.session.PromptSections(mcphybrid.PromptFull)}
	in := object{"model": "m", "tools": list, "messages": append([]any{system}, p.messages...)}
	if p.spoils != nil {
		p.spoils(in)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(string(data))
	}
	var out struct{ Choices []struct{ Message object } }
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	return out.Choices[0].Message, nil
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Runtime{"goes on": {}, "forgets": {Forgets: true}, "by bridge": {Disclosure: mcphybrid.ByBridge}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, Runtime{
				Sequential: true, Forgets: r.Forgets, Disclosure: r.Disclosure,
				Begin: func(_ *testing.T, url string, s *mcphybrid.Session, before Host) Host {
					p := &plain{url: url, session: s, forgets: r.Forgets}
					if before != nil {
						p.messages = before.(*plain).messages
					}
					return p
				},
			})
		})
	}
}

// Each mistake of a host is found.
func TestMistakes(t *testing.T) {
	t.Parallel()
	last := func(list []any, n int) object { return list[len(list)-n].(object) }
	for want, spoil := range map[string]func(in object, n int){
		"step 2: the system prompt is not what it was": func(in object, n int) {
			if n == 2 {
				in["messages"].([]any)[0].(object)["content"] = System
			}
		},
		"step 1: the system prompt is": func(in object, _ int) { in["messages"].([]any)[0].(object)["content"] = System },
		"step 4: of 3, a tool is gone": func(in object, n int) {
			if n == 4 {
				in["tools"] = in["tools"].([]json.RawMessage)[:2]
			}
		},
		"step 4: the list of tools has grown by": func(in object, _ int) {
			in["tools"] = in["tools"].([]json.RawMessage)[:3]
		},
		"step 2: tool 1 is not what it was": func(in object, n int) {
			if n == 2 {
				slices.Reverse(in["tools"].([]json.RawMessage))
			}
		},
		"step 3: message 1 is not what it was": func(in object, n int) {
			if n == 3 {
				in["messages"].([]any)[1] = object{"role": "user", "content": "Hello."}
			}
		},
		"step 2: calls without a result": func(in object, n int) {
			if n == 2 {
				in["messages"] = in["messages"].([]any)[:3]
			}
		},
		"step 7: result 1 is marked as an error: false, want true": func(in object, n int) {
			if n == 7 {
				last(in["messages"].([]any), 1)["content"] = "/value is a string, but must be a number"
			}
		},
		"step 12: there are the images []": func(in object, n int) {
			if n == 12 {
				messages := in["messages"].([]any)
				in["messages"] = messages[:len(messages)-1]
			}
		},
		`step 14: result 1 is for "call_13_2", want "call_13_1"`: func(in object, n int) {
			if n == 14 {
				messages := in["messages"].([]any)
				i := len(messages) - 3
				messages[i], messages[i+1] = messages[i+1], messages[i]
			}
		},
		"step 1: stream is true, want false": func(in object, _ int) { in["stream"] = true },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			d := newDesk(true)
			r := Runtime{Sequential: true}
			s := newScript(r)
			n := 0
			p := &plain{url: serve(t, s), session: d.manager(t).NewSession(r.options()), spoils: func(in object) {
				n++
				spoil(in, n)
			}}
			for _, st := range s.Steps {
				if st.Broken || s.Wrong() != nil {
					break
				}
				if st.User != "" {
					_, _ = p.Run(t.Context(), st.User)
				}
			}
			assert.ErrorContains(t, s.Wrong(), want)
		})
	}
}
