package mcpopenai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// Responses is a conversation over the responses API, with the tools of a session. Each
// request has the whole conversation, so that nothing of it need be stored at OpenAI. It may
// not be used concurrently.
type Responses struct {
	// Params are those of each request: the model and whatever else the host sets. The
	// session's sections stand behind Instructions, which should not change within a
	// conversation, and its tools behind Tools. Every call of
	// a function or a custom tool goes to the session, so the host's own functions go into the
	// Manager, with [mcphybrid.Manager.AddTools].
	Params responses.ResponseNewParams

	// Input is the conversation as it is sent, item by item, to be stored with
	// [mcphybrid.Session.Save]. It has what the session adds too: items with tools and
	// messages of the developer.
	Input []json.RawMessage

	// OnEvent, if not nil, gets the events of each answer as they arrive. Then answers are
	// streamed.
	OnEvent func(responses.ResponseStreamEventUnion)

	// Call makes each call of the model. It is [mcphybrid.Session.Call] unless the host puts
	// another one there, which may show or change calls and pass them on. It runs in several
	// goroutines at once.
	Call CallFunc

	// MaxRequests is how many requests a Run makes at most. If zero, defaults to
	// [DefaultMaxRequests]; if negative, there is no limit.
	MaxRequests int

	client *openai.Client
	tools  toolset
}

// NewResponses returns a conversation with the tools of s. If s is ByProvider, these have
// OpenAI's tool_search, whose searches the session answers.
func NewResponses(client *openai.Client, s *mcphybrid.Session, params responses.ResponseNewParams) *Responses {
	return &Responses{Params: params, Call: s.Call, client: client, tools: toolset{s, provider.OpenAIResponses}}
}

// Run adds items to the conversation and makes the model's calls until it answers without
// any. It returns that answer.
//
// If ctx ends, the conversation is as it was before Run. After another error it has what
// was said so far: Run without items goes on.
func (r *Responses) Run(ctx context.Context, items ...responses.ResponseInputItemUnionParam) (answer *responses.Response, err error) {
	var at run
	begun := r.Input
	if r.Input, err = added(begun, items); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			r.Input = begun
			at.takeBack(r.tools)
		}
	}()
	r.tools.session.NextTurn()
	for n := 0; ; n++ {
		if err := within(n, r.MaxRequests); err != nil {
			return nil, err
		}
		if answer, err = r.ask(ctx, &at); err != nil {
			return nil, err
		}
		var calls []call
		var types []string          // of the items with their results
		var found []json.RawMessage // the answers to searches
		for _, item := range answer.Output {
			if err := r.append(json.RawMessage(item.RawJSON())); err != nil { // an answer is an input too
				return nil, err
			}
			switch item.Type {
			case "function_call":
				c := item.AsFunctionCall()
				calls, types = append(calls, call{c.CallID, c.Name, c.Arguments}), append(types, "function_call_output")
			case "tool_search_call":
				if item.Execution == string(responses.ResponseToolSearchCallExecutionServer) {
					continue // its answer is an item of the answer
				}
				tools, err := r.tools.session.AnswerToolSearch(ctx, json.RawMessage(item.RawJSON()))
				if err != nil {
					return nil, err
				}
				found = append(found, tools)
			case "custom_tool_call":
				c := item.AsCustomToolCall()
				calls, types = append(calls, call{c.CallID, c.Name, c.Input}), append(types, "custom_tool_call_output")
			}
		}
		if len(calls)+len(found) == 0 {
			return answer, nil
		}
		for _, tools := range found {
			if err := r.append(tools); err != nil {
				return nil, err
			}
		}
		results, err := r.tools.results(ctx, calls, r.Call)
		if err != nil {
			return nil, err
		}
		for i, result := range results {
			output, err := json.Marshal(map[string]any{"type": types[i], "call_id": calls[i].id, "output": result.JSON})
			if err != nil {
				return nil, err
			}
			r.Input = append(r.Input, output)
		}
	}
}

// added returns a conversation with more items.
func added(input []json.RawMessage, items []responses.ResponseInputItemUnionParam) ([]json.RawMessage, error) {
	input = input[:len(input):len(input)]
	for _, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		input = append(input, raw)
	}
	return input, nil
}

// append adds an item to the conversation, as it will be when it was stored: without spaces,
// and with "<" escaped.
func (r *Responses) append(item json.RawMessage) error {
	raw, err := json.Marshal(item)
	if err == nil {
		r.Input = append(r.Input, raw)
	}
	return err
}

// ask sends the conversation, with what is new in it.
func (r *Responses) ask(ctx context.Context, at *run) (*responses.Response, error) {
	turn, err := at.next(r.tools, r.Params.Model)
	if err != nil {
		return nil, err
	}
	for _, item := range turn.Append {
		if err := r.append(item); err != nil {
			return nil, err
		}
	}
	params := r.Params
	params.Tools = slices.Clip(params.Tools) // the host's
	for _, e := range turn.Tools {
		params.Tools = append(params.Tools, param.Override[responses.ToolUnionParam](e.JSON))
	}
	if turn.System != "" {
		params.Instructions = openai.String(r.Params.Instructions.Value + turn.System)
	}
	params.Input.OfInputItemList = make(responses.ResponseInputParam, len(r.Input))
	for i, item := range r.Input {
		params.Input.OfInputItemList[i] = param.Override[responses.ResponseInputItemUnionParam](item)
	}
	var answer *responses.Response
	if r.OnEvent == nil {
		answer, err = r.client.Responses.New(ctx, params)
	} else {
		answer, err = r.stream(ctx, params)
	}
	if err == nil {
		r.tools.count(answer.Usage.RawJSON())
	}
	if err == nil && answer.Status != responses.ResponseStatusCompleted {
		err = fmt.Errorf("mcpopenai: the answer is %s: %s", answer.Status, answer.IncompleteDetails.Reason+answer.Error.Message)
	}
	return answer, err
}

func (r *Responses) stream(ctx context.Context, params responses.ResponseNewParams) (answer *responses.Response, err error) {
	stream := r.client.Responses.NewStreaming(ctx, params)
	defer stream.Close()
	for stream.Next() {
		event := stream.Current()
		r.OnEvent(event)
		switch event.Type {
		case "response.completed", "response.incomplete", "response.failed":
			answer = &event.Response
		case "error":
			return nil, fmt.Errorf("mcpopenai: %s: %s", event.Code, event.Message)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("mcpopenai: the model's answer broke off")
	}
	return answer, nil
}
