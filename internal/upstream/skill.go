package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

var errNoSkills = errors.New("the server has no skills")

// Skill returns the skill whose SKILL.md has that URI, as an element of a list of skills. It may
// be one that the server does not list. The request is made as Call makes that of a repeatable
// tool.
func (s *Server) Skill(ctx context.Context, bar Precheck, uri string) (json.RawMessage, error) {
	q := &skillQuery{uri: uri}
	_, err := s.request(ctx, "", true, bar, func(ctx context.Context, c *conn) (any, error) {
		if !c.has(Skills) {
			return nil, errNoSkills
		}
		return c.client.Complete(context.WithValue(ctx, skillQueryKey{}, q), mcp.CompleteRequest{})
	})
	if err != nil {
		return nil, err
	}
	return q.skill, nil
}

// A skillQuery asks for one skill. mcp-go has no such request: it makes one for a completion,
// and gets an empty one.
type skillQuery struct {
	uri   string
	skill json.RawMessage // the answer
}

type skillQueryKey struct{}

// ask returns the request. r is one for a completion.
func (q *skillQuery) ask(r transport.JSONRPCRequest) transport.JSONRPCRequest {
	uri, _ := json.Marshal(q.uri)
	params := map[string]json.RawMessage{"uri": uri}
	if has, _ := r.Params.(map[string]json.RawMessage); has["_meta"] != nil {
		params["_meta"] = has["_meta"]
	}
	r.Method, r.Params = "skills/get", params
	if r.Header != nil {
		r.Header = r.Header.Clone()
	} else {
		r.Header = make(http.Header)
	}
	r.Header.Set(mcp.HeaderMethod, r.Method)
	return r
}

// take keeps the skill of a result, and returns an empty completion in its place.
func (q *skillQuery) take(result json.RawMessage) (json.RawMessage, error) {
	var has struct {
		Skill json.RawMessage `json:"skill"`
	}
	if err := json.Unmarshal(result, &has); err != nil || len(has.Skill) == 0 {
		return nil, errors.New(`skills/get result: there is no "skill"`)
	}
	q.skill = has.Skill
	return json.RawMessage(`{"resultType":"complete","completion":{"values":[]}}`), nil
}
