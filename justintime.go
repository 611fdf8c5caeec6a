package mcphybrid

import "context"

// SelectFor activates the tools that message, such as the user's, most likely
// needs, and what these need, and returns them: [JustInTimeOptions.Results], or
// without [Options.JustInTime] [RankingOptions.Results]. A host calls it before
// it calls the model, and again with what [search.FindDirectives] finds in the
// model's answer. It finds by meaning within ctx and the timeout, and otherwise
// by words. Like every activation it appends to what was sent.
func (s *Session) SelectFor(ctx context.Context, message string) []*BridgeTool {
	n := s.scope.opts.Search.Results
	if s.scope.opts.JustInTime != nil {
		n = s.scope.opts.JustInTime.Results
	}
	var names []string
	for _, h := range s.Find(ctx, message, SearchOptions{Limit: n}).Hits {
		names = append(names, h.Tool.name)
	}
	selected, _ := s.activate(names)
	return selected
}
