package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/hosts"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// Capabilities returns what a client with this broker can answer.
func (b *Broker) Capabilities() mcp.ClientCapabilities {
	var c mcp.ClientCapabilities
	if b == nil {
		return c
	}
	tasks := &mcp.TaskRequestsCapability{}
	if b.cfg.Hooks.Elicit != nil {
		c.Elicitation = &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}
		tasks.Elicitation = &struct {
			Create *struct{} `json:"create,omitempty"`
		}{&struct{}{}}
	}
	if b.cfg.Hooks.Sample != nil {
		c.Sampling = &mcp.SamplingCapability{}
		if b.cfg.SampleTools {
			c.Sampling.Tools = &struct{}{}
		}
		tasks.Sampling = &struct {
			CreateMessage *struct{} `json:"createMessage,omitempty"`
		}{&struct{}{}}
	}
	if b.cfg.Hooks.Roots != nil {
		c.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{}
	}
	if tasks.Elicitation != nil || tasks.Sampling != nil {
		c.Tasks = &mcp.TasksCapability{Cancel: &struct{}{}, Requests: tasks}
	}
	return c
}

// Elicit asks the user. It implements the interface of mcp-go's client and that of
// its sessions in process, as the two other methods do.
func (b *Broker) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	ctx = withInput(ctx, mcp.MethodElicitationCreate, r.Params)
	form, err := b.checkElicitation(&r.Params)
	if err != nil {
		return nil, err
	}
	answer, err := consult(b, ctx, "Elicit", func(h ask.Hooks) func(context.Context, ask.Asker) (*mcp.ElicitationResult, error) {
		if h.Elicit == nil {
			return nil
		}
		return func(ctx context.Context, from ask.Asker) (*mcp.ElicitationResult, error) {
			answer, err := h.Elicit(ctx, from, r.Params)
			if err == nil {
				answer, err = b.checkAnswer(answer, form)
			}
			return answer, err
		}
	})
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, ask.ErrDeclined):
		return elicited(mcp.ElicitationResponseActionDecline, nil), nil
	case errors.Is(err, errNoReply):
		return elicited(mcp.ElicitationResponseActionCancel, nil), nil
	}
	return nil, err
}

// Open asks the user to open the pages that a server requires before it answers a
// call, and reports whether the user did.
func (b *Broker) Open(ctx context.Context, pages []mcp.ElicitationParams) bool {
	if b == nil || len(pages) == 0 {
		return false
	}
	for _, page := range pages {
		page.Mode = mcp.ElicitationModeURL
		answer, err := b.Elicit(ctx, mcp.ElicitationRequest{Params: page})
		if err != nil || answer.Action != mcp.ElicitationResponseActionAccept {
			return false
		}
	}
	return true
}

func elicited(action mcp.ElicitationResponseAction, content any) *mcp.ElicitationResult {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: content}}
}

// checkElicitation returns the validator of the answer's content, or nil if the user
// is to open a page. It decodes the schema, which has another type over each transport.
func (b *Broker) checkElicitation(p *mcp.ElicitationParams) (*schema.Validator, error) {
	raw, err := b.measured(p)
	if err != nil {
		return nil, err
	}
	if p.Mode == mcp.ElicitationModeURL {
		return nil, checkPage(p.URL)
	}
	var in struct {
		Schema json.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	if err := checkForm(in.Schema); err != nil {
		return nil, fmt.Errorf("the requestedSchema %w", err)
	}
	form := schema.NewValidator(in.Schema)
	if form.Err() != nil {
		return nil, errors.New("the requestedSchema is not valid")
	}
	var decoded map[string]any
	err = json.Unmarshal(in.Schema, &decoded)
	p.RequestedSchema = decoded
	return form, err
}

// measured returns the parameters of a question as JSON, if they are not too long.
func (b *Broker) measured(params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err == nil && len(raw) > b.cfg.MaxBytes {
		err = fmt.Errorf("the question has %d bytes, more than the limit of %d", len(raw), b.cfg.MaxBytes)
	}
	return raw, err
}

// maxFields is how many fields a form may have.
const maxFields = 100

// checkForm checks that a schema is what the protocol permits: an object of flat
// fields.
func checkForm(raw json.RawMessage) error {
	var form struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(raw, &form); err != nil || form.Type != "object" {
		return errors.New("is not that of an object")
	}
	if n := len(form.Properties); n > maxFields {
		return fmt.Errorf("has %d fields, more than the limit of %d", n, maxFields)
	}
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		raw := form.Properties[name]
		var field struct {
			Type  any             `json:"type"`
			Items json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(raw, &field); err != nil {
			return fmt.Errorf("has a field %q that is not an object", text.Line(name, text.MaxName))
		}
		switch field.Type {
		case "string", "number", "integer", "boolean":
			continue
		case "array": // of choices
			var items struct{ Type any }
			if json.Unmarshal(field.Items, &items) == nil && (items.Type == "string" || items.Type == nil) {
				continue
			}
		}
		return fmt.Errorf("has a field %q that is not flat", text.Line(name, text.MaxName))
	}
	return nil
}

// maxURL is how long the address of a page may be.
const maxURL = 2048

// checkPage checks the address of a page that the user is asked to open: a browser
// opens it as a page, and it leads where it seems to lead.
func checkPage(address string) error {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the url is not one that a user can be asked to open")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && hosts.IsLoopback(u.Hostname())) {
		return errors.New("the url is not https")
	}
	return nil
}

// checkAnswer returns the answer of a hook as it may go out.
func (b *Broker) checkAnswer(answer *mcp.ElicitationResult, form *schema.Validator) (*mcp.ElicitationResult, error) {
	switch {
	case answer == nil:
		return nil, errors.New("it returned neither an answer nor an error")
	case answer.Action == mcp.ElicitationResponseActionDecline, answer.Action == mcp.ElicitationResponseActionCancel:
		return elicited(answer.Action, nil), nil
	case answer.Action != mcp.ElicitationResponseActionAccept:
		return nil, fmt.Errorf("its answer has the unknown action %q", text.Line(string(answer.Action), text.MaxName))
	case form == nil:
		return elicited(answer.Action, nil), nil
	}
	raw, err := json.Marshal(answer.Content)
	if err != nil {
		return nil, err
	}
	if text.IsNull(raw) {
		raw = json.RawMessage("{}")
	}
	if violations, _ := form.Validate(raw); len(violations) > 0 {
		where := "it"
		if at := violations[0].Pointer; at != "" {
			where = at + ":"
		}
		return nil, fmt.Errorf("its answer does not fit the requestedSchema: %s %s", where, violations[0].Problem)
	}
	var content map[string]any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	return elicited(answer.Action, content), nil
}

// CreateMessage asks for a model's answer.
func (b *Broker) CreateMessage(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	ctx = withInput(ctx, mcp.MethodSamplingCreateMessage, r.CreateMessageParams)
	if _, err := b.measured(r.CreateMessageParams); err != nil {
		return nil, err
	}
	if !b.cfg.SampleTools && (len(r.Tools) > 0 || r.ToolChoice != nil) {
		return nil, errors.New("this client's models get no tools of servers")
	}
	messages := make([]mcp.SamplingMessage, len(r.Messages))
	for i, m := range r.Messages {
		content, err := mcp.ParseSamplingContent(m.Content)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		messages[i] = mcp.SamplingMessage{Role: m.Role, Content: content}
	}
	r.Messages = messages
	return consult(b, ctx, "Sample", func(h ask.Hooks) func(context.Context, ask.Asker) (*mcp.CreateMessageResult, error) {
		if h.Sample == nil {
			return nil
		}
		return func(ctx context.Context, from ask.Asker) (*mcp.CreateMessageResult, error) {
			answer, err := h.Sample(ctx, from, r.CreateMessageParams)
			if err == nil && (answer == nil || answer.Content == nil) {
				err = errors.New("it returned neither an answer nor an error")
			}
			if err != nil {
				return nil, err
			}
			whole := *answer
			if whole.Role == "" {
				whole.Role = mcp.RoleAssistant
			}
			return &whole, nil
		}
	})
}

// ListRoots asks for the roots.
func (b *Broker) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	ctx = withInput(ctx, mcp.MethodListRoots, nil)
	answer, err := consult(b, ctx, "Roots", func(h ask.Hooks) func(context.Context, ask.Asker) (*mcp.ListRootsResult, error) {
		if h.Roots == nil {
			return nil
		}
		return func(ctx context.Context, from ask.Asker) (*mcp.ListRootsResult, error) {
			roots, err := h.Roots(ctx, from)
			for _, root := range roots {
				if !strings.HasPrefix(root.URI, "file://") {
					return nil, errors.New("a root does not begin with file://")
				}
			}
			return &mcp.ListRootsResult{Roots: append([]mcp.Root{}, roots...)}, err
		}
	})
	if errors.Is(err, ask.ErrDeclined) {
		return &mcp.ListRootsResult{Roots: []mcp.Root{}}, nil
	}
	return answer, err
}
