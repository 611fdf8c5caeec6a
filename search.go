package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// SearchToolName is the name of the meta tool by which the model finds
// deferred tools.
const SearchToolName = "mcp_tool_search"

// maxQueryBytes bounds a query; a model writes a few words.
const maxQueryBytes = 4 << 10

// A Hit is one tool found by [Session.Search].
type Hit struct {
	Tool  *BridgeTool
	Score float64 // above 0, comparable only with others of the same search
}

// Search returns the deferred tools that best match query, best first; tools
// of equal score are in registration order. Only tools that the session may
// use and has not active are considered. It returns at most n of them, at most
// [Options.SearchLimit], and nil if none matches; with n <= 0 it returns up to
// [Options.SearchResults]. Search activates nothing.
func (s *Session) Search(query string, n int) []Hit {
	v := s.view()
	if n <= 0 {
		n = s.m.opts.SearchResults
	}
	active := v.activeSet()
	matches := v.index.Search(query, min(n, s.m.opts.SearchLimit), func(doc int) bool {
		t := v.deferred[doc]
		return !active[t] && v.sees(t)
	})
	var hits []Hit
	for _, m := range matches {
		hits = append(hits, Hit{v.deferred[m.Doc], m.Score})
	}
	return hits
}

// A searchTool is the meta tool of one session.
type searchTool struct {
	s *Session
}

func (t *searchTool) Name() string        { return SearchToolName }
func (t *searchTool) Description() string { return searchToolDescription }
func (t *searchTool) InputSchema() json.RawMessage {
	return searchToolSchema(t.s.m.opts.SearchResults, t.s.m.opts.SearchLimit)
}

func (t *searchTool) fresh() Tool {
	c := *t
	return &c
}

// Call searches, activates what it finds and answers with it.
func (t *searchTool) Call(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	query, n, err := parseSearchArguments(args, t.s.m.opts.SearchResults)
	if err != nil {
		return mcp.NewToolResultError(textBadSearch(err)), nil
	}
	hits := t.s.Search(query, max(n, 1))
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Tool.name
	}
	found := t.s.activate(names)
	answer := searchAnswer{Tools: make([]foundTool, len(found)), Count: len(found)}
	for i, f := range found {
		answer.Tools[i] = foundTool{
			Name:         f.name,
			OriginalName: cleanLine(f.def.name, t.s.m.opts.MaxDescription),
			Server:       f.def.server,
			Description:  cleanLine(f.def.description, t.s.m.opts.MaxDescription),
		}
	}
	answer.Message = textNothingFound
	if len(found) > 0 {
		answer.Message = textActivated
	}
	return mcp.NewToolResultText(answer.String()), nil
}

// A searchAnswer is what the model gets from a search.
type searchAnswer struct {
	Tools   []foundTool `json:"tools"`
	Count   int         `json:"count"`
	Message string      `json:"message"`
}

type foundTool struct {
	Name         string `json:"name"`
	OriginalName string `json:"original_name"`
	Server       string `json:"server"`
	Description  string `json:"description"`
}

func (a searchAnswer) String() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // for a model, not a browser
	_ = enc.Encode(a)        // strings and numbers always marshal
	return strings.TrimSuffix(b.String(), "\n")
}

// parseSearchArguments returns the query and how many results are asked for,
// standard if that is not said. A number of results that is no integer is
// rounded down, and may be any.
func parseSearchArguments(args json.RawMessage, standard int) (query string, n int, err error) {
	var in struct {
		Query      *string  `json:"query"`
		MaxResults *float64 `json:"max_results"`
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", 0, describeJSONError(args, err)
	}
	switch {
	case in.Query == nil || strings.TrimSpace(*in.Query) == "":
		return "", 0, errors.New(`"query" is missing or empty`)
	case len(*in.Query) > maxQueryBytes:
		return "", 0, fmt.Errorf(`"query" has %d bytes, more than the limit of %d`, len(*in.Query), maxQueryBytes)
	case in.MaxResults == nil:
		return *in.Query, standard, nil
	}
	// Within what fits an int, so that the conversion is defined.
	return *in.Query, int(math.Max(math.MinInt32, math.Min(math.MaxInt32, *in.MaxResults))), nil
}
