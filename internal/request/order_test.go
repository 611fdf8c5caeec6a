package request

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInOrder(t *testing.T) {
	t.Parallel()
	const (
		user  = `{"role":"user","content":"Hi"}`
		reply = `{"role":"assistant","content":"A \"system\" message"}`
		one   = `{"role":"system","content":[{"type":"text","text":"1"}]}`
		two   = `{"content":"2","role":"system"}`
		both  = `{"content":[{"type":"text","text":"1"},{"text":"2","type":"text"}],"role":"system"}`
		other = `{"role":"system","content":"3","clear_at":"never"}`
	)
	for name, c := range map[string][2][]string{
		"none":                  {},
		"in order":              {{user, one, reply, user, two}, {user, one, reply, user, two}},
		"a request failed":      {{user, one, user, reply, user}, {user, user, one, reply, user}},
		"two failed":            {{reply, user, one, user, two, user}, {reply, user, user, user, both}},
		"two in a row":          {{user, one, two, reply}, {user, both, reply}},
		"with other members":    {{user, one, other, user}, {user, user, one, other}},
		"what is not a message": {{`{"role":"system"`, `7`, one}, {`{"role":"system"`, `7`, one}},
	} {
		var messages []json.RawMessage
		for _, m := range c[0] {
			messages = append(messages, json.RawMessage(m))
		}
		var got []string
		for _, m := range inOrder(messages) {
			got = append(got, string(m))
		}
		assert.Equal(t, strings.Join(c[1], "\n"), strings.Join(got, "\n"), name)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	const one, two = `{"role":"system","content":[{"type":"text","text":"1"}]}`, `{"role":"system","content":"2"}`
	const both = `{"content":[{"type":"text","text":"1"},{"text":"2","type":"text"}],"role":"system"}`
	for _, test := range []struct{ give, want []string }{
		{nil, nil}, {[]string{two}, []string{two}}, {[]string{one, two}, []string{both}},
		{[]string{one, `{"role":"system","content":5}`}, nil}, {[]string{one, `{"role":"system"}`}, nil}, {[]string{one, `{"name":"x","content":"2"}`}, nil}, {[]string{one, `{"role":"system","extra":[]}`}, nil}, {[]string{one, `[]`}, nil},
	} {
		var messages, want []json.RawMessage
		for _, m := range test.give {
			messages = append(messages, json.RawMessage(m))
		}
		for _, m := range test.want {
			want = append(want, json.RawMessage(m))
		}
		if want == nil {
			want = messages
		}
		assert.Equal(t, want, Join(messages), test.give)
	}
}
