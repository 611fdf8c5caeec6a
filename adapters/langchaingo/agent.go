package langchaingo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/tmc/langchaingo/llms"
)

// DefaultMaxRequests is the default of [Agent.MaxRequests].
const DefaultMaxRequests = 50

// An Agent has a model converse with the tools of a session. It keeps no messages. Its
// methods may be called concurrently, but a session belongs to one conversation.
type Agent struct {
	Session *mcphybrid.Session
	Model   llms.Model

	// Options are for each request. Tools among them are replaced: a host's own
	// functions go into the Manager, with [mcphybrid.Manager.AddTools].
	Options []llms.CallOption

	// MaxRequests is the largest number of requests of one Run, and so bounds its cost. If
	// zero, defaults to [DefaultMaxRequests]; if negative, there is no limit.
	MaxRequests int

	// Images says how the model takes images.
	Images Images
}

// Run sends messages, makes the calls of the model's answer and sends their results,
// until the model answers without a call. It returns messages and all that followed. The
// answer is the last one. messages is not changed.
//
// If Run fails, it returns what there was until then. That can be sent again: each
// call in it has its result. The calls that ran when ctx ended are not in it.
func (a Agent) Run(ctx context.Context, messages []llms.MessageContent) ([]llms.MessageContent, error) {
	messages = slices.Clone(messages)
	limit := cmp.Or(a.MaxRequests, DefaultMaxRequests)
	for n := 0; limit < 0 || n < limit; n++ {
		sent, tools, err := Request(a.Session, messages)
		if err != nil {
			return messages, err
		}
		opts := append(slices.Clone(a.Options), llms.WithTools(tools))
		res, err := a.Model.GenerateContent(ctx, sent, opts...)
		if err != nil {
			return messages, err
		}
		if len(res.Choices) == 0 {
			return messages, errEmpty
		}
		answer, err := Answer(ctx, a.Session, res.Choices[0], a.Images)
		if err != nil {
			return messages, err
		}
		messages = append(messages, answer...)
		if len(res.Choices[0].ToolCalls) == 0 {
			return messages, nil
		}
	}
	return messages, fmt.Errorf("langchaingo: the model has not come to an end in %d requests", limit)
}
