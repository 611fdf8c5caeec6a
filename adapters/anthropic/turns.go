package mcpanthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// turns does what the SDK's runner can't do by itself between two requests: it makes calls
// of any name, since the runner knows only those that it was made with, and it has what a
// search activates in the very next request.
type turns struct {
	session *mcphybrid.Session
	params  *anthropic.BetaToolRunnerParams // of the runner, which sends them
	runner  runner
	system  []anthropic.BetaTextBlockParam // the host's
	marks   bool                           // the host has marked nothing that is to be cached
	told    []int                          // which messages of params are the session's, in order
	marked  *marked                        // the message of params with a mark; nil if there is none
	heard   heard
}

// A CallFunc makes a call of the model. args is JSON as the model wrote it. The result is for
// the model, even if there is an error, and must not be nil.
type CallFunc func(ctx context.Context, name string, args any) (*mcp.CallToolResult, error)

// A runner is one of the SDK's.
type runner interface {
	LastMessage() *anthropic.BetaMessage
	IterationCount() int
}

// heard has the arguments of the message that is streamed, as the model wrote them. Of
// those that are not JSON the SDK makes {}.
type heard struct {
	ids  map[int64]string // of blocks, by index
	args map[string][]byte
}

func newHeard() heard { return heard{make(map[int64]string), make(map[string][]byte)} }

func (h *heard) hear(event anthropic.BetaRawMessageStreamEventUnion) {
	switch event.Type {
	case "message_start":
		*h = newHeard()
	case "content_block_start":
		h.ids[event.Index] = event.ContentBlock.ID
	case "content_block_delta":
		if more := event.Delta.PartialJSON; more != "" {
			id := h.ids[event.Index]
			h.args[id] = append(h.args[id], more...)
		}
	}
}

func begin(s *mcphybrid.Session, params *anthropic.BetaToolRunnerParams, r runner) turns {
	s.NextTurn()
	return turns{
		session: s, params: params, runner: r, system: params.System, marks: !marks(params),
		heard: newHeard(),
	}
}

// next makes the calls of the last message by run and prepares the next request, if the
// runner will send one.
func (t *turns) next(ctx context.Context, run CallFunc) error {
	last := t.runner.LastMessage()
	calls := t.unanswered()
	switch {
	case last != nil && (last.StopReason != anthropic.BetaStopReasonToolUse || calls == nil):
		return nil // the run is over, or the model goes on by itself
	case t.params.MaxIterations > 0 && t.runner.IterationCount() >= t.params.MaxIterations:
		return nil
	case calls != nil:
		results, err := t.results(ctx, calls, run)
		if err != nil {
			return err
		}
		t.params.Messages = append(t.params.Messages, anthropic.NewBetaUserMessage(results...))
	}
	if last != nil {
		// The calls are answered. So the runner must not answer them, but send the
		// conversation as it stands.
		last.StopReason = anthropic.BetaStopReasonPauseTurn
	}
	return t.prepare()
}

// prepare puts the next request into the parameters. What the session has to tell stands at
// its places between the host's messages, in the bytes of the session: those of a
// conversation that was stored would be in the order of the SDK's members.
func (t *turns) prepare() error {
	messages := t.own(t.params.Messages)
	turn, err := t.turn(messages)
	if err != nil {
		return err
	}
	t.params.Messages, t.told, t.marked = nil, nil, nil
	inserts := turn.Inserts
	for i := range len(messages) + 1 {
		for ; len(inserts) > 0 && inserts[0].At == i; inserts = inserts[1:] {
			for _, m := range inserts[0].Messages {
				t.told = append(t.told, len(t.params.Messages))
				t.params.Messages = append(t.params.Messages, param.Override[anthropic.BetaMessageParam](m))
			}
		}
		if i < len(messages) {
			t.params.Messages = append(t.params.Messages, messages[i])
		}
	}
	tools := make([]json.RawMessage, len(turn.Tools))
	for i, tool := range turn.Tools {
		tools[i] = tool.JSON
	}
	sections := anthropic.BetaTextBlockParam{Text: turn.System}
	if t.marks {
		if marked, ok := turn.Body("", nil)["tools"].([]json.RawMessage); ok {
			tools = marked
		}
		sections.CacheControl = anthropic.NewBetaCacheControlEphemeralParam()
		t.params.CacheControl = anthropic.NewBetaCacheControlEphemeralParam()
		if err := t.breakAtBefore(turn); err != nil {
			return err
		}
	}
	t.params.Tools = make([]anthropic.BetaToolUnionParam, len(tools))
	for i, tool := range tools { // as it was exported: members keep their order, numbers their digits
		t.params.Tools[i] = param.Override[anthropic.BetaToolUnionParam](tool)
	}
	t.params.System = slices.Clone(t.system)
	if turn.System != "" { // the API refuses an empty block
		t.params.System = append(t.params.System, sections)
	} else if n := len(t.params.System); n > 0 && t.marks {
		t.params.System[n-1].CacheControl = sections.CacheControl
	}
	for _, beta := range turn.Betas {
		if !slices.Contains(t.params.Betas, beta) {
			t.params.Betas = append(t.params.Betas[:len(t.params.Betas):len(t.params.Betas)], beta)
		}
	}
	return nil
}

// A marked message has a mark of what to cache for one request.
type marked struct {
	at  int // in params
	was anthropic.BetaMessageParam
}

// breakAtBefore puts the mark that a Turn has where the request before ended, if that is far back.
func (t *turns) breakAtBefore(turn mcphybrid.Turn) error {
	messages := t.params.Messages
	at := len(messages) - 1
	for at >= 0 && messages[at].Role != anthropic.BetaMessageParamRoleAssistant {
		at--
	}
	if at--; at < 0 {
		return nil
	}
	tail := make([]json.RawMessage, len(messages)-at)
	for i, m := range messages[at:] {
		var err error
		if tail[i], err = m.MarshalJSON(); err != nil { // as it is sent: json.Marshal escapes HTML
			return err
		}
	}
	if with, ok := turn.Body("", tail)["messages"].([]json.RawMessage); ok && !bytes.Equal(with[0], tail[0]) {
		t.marked = &marked{at, messages[at]}
		messages[at] = param.Override[anthropic.BetaMessageParam](with[0])
	}
	return nil
}

// turn returns the session's part of the next request. A message of the system stands behind
// one of the user, and last or before an answer: what does not, since a request failed, another
// runner goes on with a paused turn or the host has one of its own there, is taken back, and
// told where it may stand.
func (t *turns) turn(messages []anthropic.BetaMessageParam) (mcphybrid.Turn, error) {
	isAnswer := func(i int) bool { return messages[i].Role == anthropic.BetaMessageParamRoleAssistant }
	mayStand := func(at int) bool {
		return at > 0 && !isAnswer(at-1) && messages[at-1].Role != anthropic.BetaMessageParamRoleSystem && (at == len(messages) || isAnswer(at))
	}
	for {
		turn, err := t.session.TurnAt(provider.Anthropic, string(t.params.Model), len(messages))
		if err != nil {
			return turn, err
		}
		i := slices.IndexFunc(turn.Inserts, func(in mcphybrid.Insert) bool {
			return !mayStand(in.At)
		})
		if i < 0 {
			return turn, nil
		}
		t.session.TakeBack(turn.Inserts[i].Before)
		if turn.Inserts[i].At == len(messages) {
			turn.Inserts = turn.Inserts[:i]
			return turn, nil
		}
	}
}

// own returns messages without those that the session tells, and without its mark.
func (t *turns) own(messages []anthropic.BetaMessageParam) []anthropic.BetaMessageParam {
	var own []anthropic.BetaMessageParam
	for i, m := range messages {
		if t.marked != nil && t.marked.at == i {
			m = t.marked.was
		}
		if _, told := slices.BinarySearch(t.told, i); !told {
			own = append(own, m)
		}
	}
	return own
}

// marks reports whether the host says itself what is to be cached. A request may have four
// such marks.
func marks(params *anthropic.BetaToolRunnerParams) bool {
	var in struct {
		block
		System, Messages []block
	}
	raw, err := json.Marshal(params.BetaMessageNewParams)
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return true
	}
	return in.isMarked() || slices.ContainsFunc(slices.Concat(in.System, in.Messages), block.isMarked)
}

// A block may have a mark, and so may its contents. Arguments of calls are none.
type block struct {
	CacheControl json.RawMessage `json:"cache_control"`
	Content      json.RawMessage
}

func (b block) isMarked() bool {
	var contents []block
	_ = json.Unmarshal(b.Content, &contents)
	return len(b.CacheControl) > 0 && string(b.CacheControl) != "null" || slices.ContainsFunc(contents, block.isMarked)
}

// count tells the session what an answer took, if it says so.
func (t *turns) count(answer *anthropic.BetaMessage) {
	if u, err := provider.ParseUsage(provider.Anthropic, json.RawMessage(answer.RawJSON())); err == nil {
		t.session.CountUsage(u)
	}
}

// brokeOff removes the answer of which the stream ended too soon. The runner will send the
// request again, as if the model had paused.
func (t *turns) brokeOff(sent int) error {
	t.params.Messages = t.params.Messages[:sent]
	t.runner.LastMessage().StopReason = anthropic.BetaStopReasonPauseTurn
	return errors.New("mcpanthropic: the model's answer broke off")
}

// takeBackEmpty removes the answer to a request with so many messages if it has no content:
// the API refuses to get it back.
func (t *turns) takeBackEmpty(sent int) {
	if last := t.runner.LastMessage(); last != nil && len(last.Content) == 0 {
		t.params.Messages = t.params.Messages[:sent]
	}
}

// settled returns messages without the calls of an answer that did not stop to have them
// made. An answer that has nothing else to say is left out: the API refuses an empty one.
func (t *turns) settled(messages []anthropic.BetaMessageParam) []anthropic.BetaMessageParam {
	last, n := t.runner.LastMessage(), len(messages)-1
	if last == nil || n < 0 || messages[n].Role != anthropic.BetaMessageParamRoleAssistant ||
		last.StopReason == anthropic.BetaStopReasonToolUse || last.StopReason == anthropic.BetaStopReasonPauseTurn {
		return messages
	}
	isCall := func(b anthropic.BetaContentBlockParamUnion) bool { return b.OfToolUse != nil }
	content := messages[n].Content
	if len(content) > 0 && !slices.ContainsFunc(content, isCall) {
		return messages
	}
	content = slices.DeleteFunc(slices.Clone(content), isCall)
	for i := len(content) - 1; i >= 0 && (content[i].OfThinking != nil || content[i].OfRedactedThinking != nil); i-- {
		content = content[:i] // the API refuses a message that ends with it
	}
	if len(content) == 0 {
		return messages[:n]
	}
	messages[n].Content = content
	return messages
}

type call struct {
	Type, ID, Name string
	Input          json.RawMessage
}

// lastContent returns the calls of the last message and its other blocks, of which it
// has the types.
func (t *turns) lastContent() (blocks []call) {
	if last := t.runner.LastMessage(); last != nil { // as the model wrote it: in params, numbers are floats
		for _, b := range last.Content {
			blocks = append(blocks, call{b.Type, b.ID, b.Name, b.Input})
		}
		return blocks
	}
	if len(t.params.Messages) == 0 {
		return nil
	}
	var last struct {
		Role    anthropic.BetaMessageParamRole
		Content []call
	}
	raw, err := json.Marshal(t.params.Messages[len(t.params.Messages)-1])
	if err != nil || json.Unmarshal(raw, &last) != nil || last.Role != anthropic.BetaMessageParamRoleAssistant {
		return nil
	}
	return last.Content
}

// unanswered returns the calls of the last message that want a result, or nil if there are
// none.
func (t *turns) unanswered() (calls []call) {
	for _, c := range t.lastContent() {
		switch c.Type {
		case "fallback": // what came before belongs to an attempt that was refused
			calls = nil
		case "tool_use":
			calls = append(calls, c)
		}
	}
	return calls
}

// results makes calls by run, at once. The results stand in the same order.
func (t *turns) results(ctx context.Context, calls []call, run CallFunc) ([]anthropic.BetaContentBlockParamUnion, error) {
	results := make([]anthropic.BetaContentBlockParamUnion, len(calls))
	problems := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			args := c.Input
			if heard := t.heard.args[c.ID]; len(heard) > 0 {
				args = heard
			}
			res, _ := run(ctx, c.Name, args) // res tells the model of an error
			exported, err := provider.ExportResult(res, provider.Anthropic)
			block := anthropic.BetaToolResultBlockParam{ToolUseID: c.ID, IsError: anthropic.Bool(exported.IsError)}
			if err == nil {
				err = json.Unmarshal(exported.JSON, &block.Content)
			}
			results[i], problems[i] = anthropic.BetaContentBlockParamUnion{OfToolResult: &block}, err
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range problems {
		if err != nil {
			return nil, fmt.Errorf("mcpanthropic: the result of %s: %w", calls[i].Name, err)
		}
	}
	return results, nil
}
