package mcphybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/request"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// AnswerToolSearch answers a search of an OpenAI model. With [provider.OpenAIResponses] and
// [ByProvider], the tools of a [Turn] have tool_search, and no deferred tool is among them.
// A search of the model is an item tool_search_call of the response. AnswerToolSearch
// returns the item tool_search_output, which has the definitions of the tools found:
//
//	input = append(input, item) // each item of the response
//	if item.Type == "tool_search_call" {
//		found, err := sess.AnswerToolSearch(ctx, item)
//		// …
//		input = append(input, found) // as the results of other calls
//	}
//
// The definitions are grouped into a namespace for each server. A function_call then has
// the namespace beside the name. The name is the registered one, for [Session.Call]. Send the
// item back as it is: the API refuses it without its namespace.
//
// The tools found are active. A search that is malformed or finds nothing is answered with
// no tools. AnswerToolSearch fails if item is no search for the host, or if the session
// does not have tool_search.
func (s *Session) AnswerToolSearch(ctx context.Context, item json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Type, Execution string
		CallID          json.RawMessage `json:"call_id"`
		Arguments       json.RawMessage
	}
	if err := json.Unmarshal(item, &in); err != nil {
		return nil, fmt.Errorf("mcphybrid: the item is not JSON: %w", err)
	}
	v := s.view()
	switch {
	case in.Type != "tool_search_call":
		return nil, fmt.Errorf("mcphybrid: the item has the type %q, want tool_search_call", text.Line(in.Type, text.MaxName))
	case in.Execution == "server":
		return nil, fmt.Errorf("mcphybrid: the provider has answered this search itself")
	case !v.loads && !v.ended:
		return nil, fmt.Errorf("mcphybrid: the session has no tool_search: it is not by provider, or has had no Turn for OpenAI's responses")
	}
	var inString string // as the arguments of other calls
	if json.Unmarshal(in.Arguments, &inString) == nil && inString != "" {
		in.Arguments = json.RawMessage(inString)
	}
	answer := request.Found(in.CallID, s.loadFound(ctx, v, bytes.TrimSpace(in.Arguments)))
	s.countAnswer(string(answer))
	return answer, nil
}

// loadFound searches, activates what it finds, and returns it for the model.
func (s *Session) loadFound(ctx context.Context, v *view, args json.RawMessage) (list []request.Namespace) {
	start := time.Now()
	query, n, err := parseSearchArguments(args, s.tenant.opts.Search.Results, true)
	if err != nil || !v.offers(metaSearch) {
		return nil
	}
	var names []string
	for _, h := range v.andNeeded(v.search(ctx, query, SearchOptions{Limit: max(n, 1)}, s.mayFind(v)).Hits, s.tenant.opts.Search.Limit) {
		if _, err := exportOnce(h.Tool, request.OpenAIResponses, request.Deferred); err == nil {
			names = append(names, h.Tool.name)
		}
	}
	found, _ := s.activate(names)
	s.noteLoaded(found) // first: naming them updates the list, and they are not to be added to it
	s.nameKnown(found)
	subjects := make(map[string]string)
	for _, o := range v.searchableServers().servers {
		subjects[o.Server] = o.About
	}
	at := make(map[string]int) // where its namespace is in list
	for _, t := range found {
		e, err := exportOnce(t, request.OpenAIResponses, request.Deferred)
		if err != nil { // it has changed meanwhile
			continue
		}
		name := v.of(t.owner).prefixes.Prefix(t.name)
		i, ok := at[name]
		if !ok {
			i, at[name] = len(list), len(list)
			list = append(list, request.Namespace{Name: name, Description: textNamespace(t.def.Server, subjects[t.def.Server])})
		}
		list[i].Tools = append(list[i].Tools, s.allowCallers(e, t, request.OpenAIResponses).JSON)
	}
	s.countSearch(len(found))
	s.emit(Event{Kind: EventSearch, Query: query, Tools: namesOf(found), Took: time.Since(start)})
	return list
}

// noteLoaded notes that the conversation has tools by the answer to a search, so that no
// Turn adds them once more.
func (s *Session) noteLoaded(tools []*BridgeTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := make(map[string]bool)
	for _, e := range remaining(s.shown) {
		if e.isTool() {
			listed[e.tool.name] = true
		}
	}
	var fresh []listItem
	for _, t := range tools {
		if !listed[t.name] {
			fresh = append(fresh, listItem{slot: asDeferred, tool: t})
		}
	}
	if fresh != nil {
		s.setShown(slices.Concat(s.shown, fresh), s.prefix)
	}
}
