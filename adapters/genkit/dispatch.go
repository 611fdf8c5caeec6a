package genkit

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// Genkit looks up the tools of a generation before its first request, and the generation
// fails if the model calls another one. So between the model and Genkit's loop, a call of
// the session has the name dispatch, and its input holds the real one. The model never
// sees that, and neither does who reads the response.
const dispatch = "mcp_session"

// A dispatched call.
type dispatchedCall struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments,omitempty"`

	// JSON has the arguments instead if the plugin of the model hands on what the model
	// wrote. As a value, Genkit would read its numbers as floats.
	JSON string `json:"json,omitempty"`
}

// dispatcher returns the tool that makes all calls of a session.
func dispatcher(sess *mcphybrid.Session) ai.Tool {
	return ai.NewMultipartTool(dispatch, "Calls a tool of the MCP session.",
		func(ctx *ai.ToolContext, in dispatchedCall) (*ai.MultipartToolResponse, error) {
			return call(ctx, sess, in)
		})
}

// call makes a call. It fails only if ctx has ended.
func call(ctx context.Context, sess *mcphybrid.Session, in dispatchedCall) (*ai.MultipartToolResponse, error) {
	arguments := []byte(in.JSON)
	if in.JSON == "" {
		var err error
		if arguments, err = json.Marshal(in.Arguments); err != nil {
			return nil, err
		}
	}
	res, _ := sess.Call(ctx, in.Name, arguments) // res tells the model of an error
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	exported, err := provider.ExportResult(res, provider.OpenAIChat)
	if err != nil {
		return nil, err
	}
	return &ai.MultipartToolResponse{Output: exported.Text, Content: images(exported.Media)}, nil
}

// images returns the images among media, each behind its name. Genkit's OpenAI plugin
// has no part for sounds and files.
func images(media []json.RawMessage) (parts []*ai.Part) {
	var name string
	for _, raw := range media {
		var m struct {
			Text  string
			Image struct{ URL string } `json:"image_url"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		mime, _, ok := strings.Cut(strings.TrimPrefix(m.Image.URL, "data:"), ";")
		if !ok {
			name = m.Text
			continue
		}
		parts = append(parts, ai.NewTextPart(name), ai.NewMediaPart(mime, m.Image.URL))
	}
	return parts
}

// dispatched returns an answer whose calls of other tools than own are dispatched.
func dispatched(answer *ai.Message, own map[string]bool) *ai.Message {
	return withParts(answer, func(p *ai.Part) {
		if p.IsToolRequest() && !own[p.ToolRequest.Name] {
			r := *p.ToolRequest
			input := map[string]any{"name": r.Name}
			if text, ok := r.Input.(json.RawMessage); ok && len(text) > 0 {
				input["json"] = string(text)
			} else if raw, err := json.Marshal(r.Input); err != nil || string(raw) != "null" { // a call may have none
				input["arguments"] = r.Input
			}
			r.Input = input
			r.Name = dispatch
			p.ToolRequest = &r
		}
	})
}

// realNames returns messages as the model knows them.
func realNames(in []*ai.Message) []*ai.Message {
	names := make(map[string]string) // by the reference of the call
	out := make([]*ai.Message, len(in))
	for i, m := range in {
		out[i] = withParts(m, func(p *ai.Part) {
			switch {
			case p.IsToolRequest() && p.ToolRequest.Name == dispatch:
				r := *p.ToolRequest
				input, _ := r.Input.(map[string]any)
				r.Name, _ = input["name"].(string)
				arguments, ok := input["arguments"]
				if text, raw := input["json"].(string); raw {
					arguments = json.RawMessage(text)
				} else if !ok {
					arguments = map[string]any{} // plugins write anything but an object in ways of their own
				}
				r.Input = arguments
				names[r.Ref] = r.Name
				p.ToolRequest = &r
			case p.IsToolResponse() && p.ToolResponse.Name == dispatch:
				r := *p.ToolResponse
				r.Name = names[r.Ref]
				p.ToolResponse = &r
			}
		})
	}
	return out
}
