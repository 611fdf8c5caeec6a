package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A spoken server in this process keeps the messages that it gets.
type spoken struct {
	config.InProcessServer
	mu   sync.Mutex
	said []json.RawMessage
}

func (s *spoken) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	s.mu.Lock()
	s.said = append(s.said, message)
	s.mu.Unlock()
	return s.InProcessServer.HandleMessage(ctx, message)
}

// last returns the last message.
func (s *spoken) last() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[len(s.said)-1]
}

// A skill comes by its URI as the server has it, listed or not, and what bars it comes before
// the request.
func TestSkillByURI(t *testing.T) {
	t.Parallel()
	skilled := mcptest.NewSkilled("s", mcptest.Echo("a", ""))
	skilled.Hides("cook", "Boil water.", "")
	s := &spoken{InProcessServer: skilled}
	srv := started(t, config.Server{Name: "s", InProcess: s, Protocol: mcp.ProtocolVersion20260728}, config.Limits{})
	raw, err := srv.Skill(t.Context(), nil, "skill://cook/SKILL.md")
	require.NoError(t, err)
	assert.JSONEq(t, skilled.Hidden[0], string(raw))
	var asked struct {
		Method string
		Params struct {
			URI  string
			Meta map[string]any `json:"_meta"`
			Ref  any
		}
	}
	require.NoError(t, json.Unmarshal(s.last(), &asked))
	assert.Equal(t, "skills/get", asked.Method)
	assert.Equal(t, "skill://cook/SKILL.md", asked.Params.URI)
	assert.Contains(t, asked.Params.Meta, mcp.MetaKeyClientCapabilities, "as with each request of that protocol")
	assert.Nil(t, asked.Params.Ref, "which is of a completion")

	_, err = srv.Skill(t.Context(), nil, "skill://dance/SKILL.md")
	assert.ErrorContains(t, err, "No skill is served at skill://dance/SKILL.md")
	barred := errors.New("barred")
	_, err = srv.Skill(t.Context(), func() error { return barred }, "skill://cook/SKILL.md")
	assert.ErrorIs(t, err, barred)
	assert.Equal(t, []string{"skill://cook/SKILL.md", "skill://dance/SKILL.md"}, skilled.Gets)

	plain := started(t, inProcess("p", mcptest.Echo("a", "")), config.Limits{})
	_, err = plain.Skill(t.Context(), nil, "skill://cook/SKILL.md")
	assert.ErrorIs(t, err, errNoSkills)
}

// Over HTTP, the header says which method it is.
func TestSkillOverHTTP(t *testing.T) {
	t.Parallel()
	s := both()
	s.discovered = discovers(newVersions, `{"tools":{},"extensions":{"`+skillsExtension+`":{}}}`)
	s.results["skills/list"] = `{"resultType":"complete","skills":[]}`
	s.results["skills/get"] = `{"resultType":"complete","skill":{"uri":"skill://a/SKILL.md"}}`
	headers := make(chan string, 9)
	srv := started(t, config.Server{Name: "web", URL: mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Get(mcp.HeaderMethod)
		s.ServeHTTP(w, r)
	}), "127.0.0.1:0")}, config.Limits{})
	for len(headers) > 0 {
		<-headers
	}
	raw, err := srv.Skill(t.Context(), nil, "skill://a/SKILL.md")
	require.NoError(t, err)
	assert.JSONEq(t, `{"uri":"skill://a/SKILL.md"}`, string(raw))
	assert.Equal(t, "skills/get", <-headers)
	assert.Equal(t, 1, s.times("skills/get 2026-07-28"))
	assert.True(t, srv.last().Skilled)
}

// The request of mcp-go stays as it is, and so do its headers.
func TestSkillQueryAsks(t *testing.T) {
	t.Parallel()
	q := &skillQuery{uri: `skill://"a"`}
	header := http.Header{mcp.HeaderMethod: {"completion/complete"}, "X": {"y"}}
	params := map[string]json.RawMessage{"ref": json.RawMessage(`{}`), "_meta": json.RawMessage(`{"a":1}`)}
	r := q.ask(transport.JSONRPCRequest{Method: "completion/complete", Params: params, Header: header})
	assert.Equal(t, "skills/get", r.Method)
	assert.Equal(t, map[string]json.RawMessage{"uri": json.RawMessage(`"skill://\"a\""`), "_meta": json.RawMessage(`{"a":1}`)}, r.Params)
	assert.Equal(t, []string{"skills/get", "y"}, []string{r.Header.Get(mcp.HeaderMethod), r.Header.Get("X")})
	assert.Equal(t, "completion/complete", header.Get(mcp.HeaderMethod))
	assert.Len(t, params, 2)
	r = q.ask(transport.JSONRPCRequest{Params: map[string]json.RawMessage{}})
	assert.Equal(t, map[string]json.RawMessage{"uri": json.RawMessage(`"skill://\"a\""`)}, r.Params)
	assert.Equal(t, http.Header{mcp.HeaderMethod: {"skills/get"}}, r.Header)
	assert.NotContains(t, q.ask(transport.JSONRPCRequest{Params: mcp.CompleteParams{}}).Params, "_meta")
}

// A result without a skill is an error, and mcp-go gets an empty completion for one with it.
func TestSkillQueryTakes(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{`{"skill":{"a":1}}`: `{"a":1}`, `{"skill":null}`: "null", `{}`: "", `{"skill"`: "", `[]`: ""} {
		q := new(skillQuery)
		instead, err := q.take(json.RawMessage(result))
		if want == "" {
			assert.EqualError(t, err, `skills/get result: there is no "skill"`, result)
			continue
		}
		require.NoError(t, err, result)
		assert.Equal(t, want, string(q.skill))
		assert.NoError(t, json.Unmarshal(instead, new(mcp.CompleteResult)))
	}
}
