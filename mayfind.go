package mcphybrid

// What the model asks for by a search, and which tools that may find.

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// mayFind returns a function that reports whether the model's search may find a tool: a deferred
// one. With ByBridge, it also finds inline tools that came after the model was sent its list. What a
// search of OpenAI's has loaded can be loaded again: the host may have taken the answer out of
// the conversation. With ByProvider, once nothing can be added, it finds only tools that the
// model was sent.
func (s *Session) mayFind(v *view) func(*BridgeTool, standing) bool {
	may := v.deferredTools()
	if v.disclosure != ByBridge && !v.loads && !v.fixed {
		return may
	}
	s.mu.Lock()
	list := s.shown
	s.mu.Unlock()
	told := make(map[string]bool)
	for _, e := range list {
		if e.isTool() && !(v.loads && e.slot == asDeferred) {
			told[e.tool.name] = true
		}
	}
	if v.loads {
		return func(t *BridgeTool, st standing) bool { return st.Searchable() && !told[t.name] }
	}
	if v.disclosure != ByBridge { // the model has no way to others
		return func(t *BridgeTool, st standing) bool { return may(t, st) && told[t.name] }
	}
	return func(t *BridgeTool, st standing) bool { return may(t, st) || st == inline && !told[t.name] }
}

// parseSearchArguments returns the query and the number of results, which is
// standard if args have none. The number may be any, even negative. A fraction is
// cut off.
func parseSearchArguments(args json.RawMessage, standard int, required bool) (query string, n int, err error) {
	var in struct {
		Query      string   `json:"query"`
		MaxResults *float64 `json:"max_results"`
	}
	err = schema.Members(args, &in, "query", func() bool { return required && strings.TrimSpace(in.Query) == "" })
	switch {
	case err != nil:
		return "", 0, err
	case len(in.Query) > maxQueryBytes:
		return "", 0, fmt.Errorf(`"query" has %d bytes, more than the limit of %d`, len(in.Query), maxQueryBytes)
	case in.MaxResults == nil:
		return in.Query, standard, nil
	}
	// Keep the number within an int, so that the conversion is defined.
	return in.Query, int(math.Max(math.MinInt32, math.Min(math.MaxInt32, *in.MaxResults))), nil
}
