package mcphybrid

import (
	"cmp"
	"context"
	"fmt"
)

// SelectFor activates the tools that message, such as the user's, most likely
// needs, and what these need, and returns them: [JustInTimeOptions.Results], or
// without [Options.JustInTime] [RankingOptions.Results]. A host calls it before
// it calls the model, and again with what [search.FindDirectives] finds in the
// model's answer. It finds by meaning within ctx and the timeout, and otherwise
// by words. Like every activation it appends to what was sent.
func (s *Session) SelectFor(ctx context.Context, message string) []*BridgeTool {
	n := s.tenant.opts.Search.Results
	if s.tenant.opts.JustInTime != nil {
		n = s.tenant.opts.JustInTime.Results
	}
	var names []string
	for _, h := range s.Find(ctx, message, SearchOptions{Limit: n, DeferredOnly: true}).Hits {
		names = append(names, h.Tool.name)
	}
	selected, _ := s.activate(names)
	return selected
}

// JustInTimeOptions have tools selected for each message of the user before the
// model is called: see [Session.SelectFor].
type JustInTimeOptions struct {
	// Threshold is the largest number of tools that are all inline. Of more,
	// only the pins are. It takes the place of [InlineOptions.Max].
	//
	// If zero, 15. If negative, none but the pins
	// are inline.
	Threshold int

	// Results is how many tools are selected for a message. If zero, 3.
	Results int
}

// defaultJustInTime is that of the published design.
const defaultJustInTime = 15

func (o *JustInTimeOptions) setDefaults() {
	o.Threshold = max(cmp.Or(o.Threshold, defaultJustInTime), 0)
	o.Results = cmp.Or(o.Results, 3)
	if o.Results < 0 {
		panic(fmt.Sprintf("mcphybrid: JustInTimeOptions.Results is %d, must not be negative", o.Results))
	}
}
