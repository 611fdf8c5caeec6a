package eino

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

// ToolsNode returns the configuration of a node that runs the calls of sess. It goes
// together with [Model]. The host may append tools of its own to Tools.
//
// A call that fails is a result, which tells the model why. An error ends the agent's run;
// there is one only if the context has ended.
func ToolsNode(sess *mcphybrid.Session) compose.ToolsNodeConfig {
	tools := []tool.BaseTool{&sessionTool{sess, unlisted}}
	for _, name := range meta {
		tools = append(tools, &sessionTool{sess, name})
	}
	for _, t := range slices.Concat(sess.InlineTools(), sess.DeferredTools()) {
		tools = append(tools, &sessionTool{sess, t.Name()})
	}
	return compose.ToolsNodeConfig{Tools: tools}
}

// meta are the names of tools that a session answers itself. Which of them it has is known
// with the first request.
var meta = []string{
	mcphybrid.SearchToolName, mcphybrid.DescribeToolName, mcphybrid.CallToolName, mcphybrid.ReadOnlyCallToolName, mcphybrid.PageToolName,
	mcphybrid.SkillSearchToolName, mcphybrid.SkillLoadToolName, mcphybrid.ResourceSearchToolName, mcphybrid.ResourceReadToolName,
}

// A sessionTool is a name by which a session can be called.
type sessionTool struct {
	sess *mcphybrid.Session
	name string
}

// mark is in the Extra of tools that are a session's, and of images in their results. The
// definitions come with each request, from [Model].
const mark = "mcphybrid"

// Info returns the name. What the model sees of the tool is not the node's business.
func (t *sessionTool) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: t.name, Extra: map[string]any{mark: true}}, nil
}

// InvokableRun implements [tool.EnhancedInvokableTool].
func (t *sessionTool) InvokableRun(ctx context.Context, argument *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	name := t.name
	if name == unlisted {
		_, name = realName(compose.GetToolCallID(ctx))
	}
	res, err := call(ctx, t.sess, name, argument.Text)
	if err != nil {
		return nil, err
	}
	return &schema.ToolResult{Parts: append([]schema.ToolOutputPart{textPart(res.Text)}, images(res.Media)...)}, nil
}

// call makes a call. It fails only if ctx has ended.
func call(ctx context.Context, sess *mcphybrid.Session, name, arguments string) (provider.Result, error) {
	res, _ := sess.Call(ctx, name, arguments) // res tells the model of an error
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	return provider.ExportResult(res, provider.OpenAIChat)
}

func textPart(text string) schema.ToolOutputPart {
	return schema.ToolOutputPart{Type: schema.ToolPartTypeText, Text: text}
}

// images returns the images among media, each with its name as the mark. Most models
// refuse a request for a sound or a file.
func images(media []json.RawMessage) (parts []schema.ToolOutputPart) {
	var name string
	for _, raw := range media {
		var m struct {
			Text  string
			Image struct{ URL string } `json:"image_url"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		mime, data, ok := strings.Cut(strings.TrimPrefix(m.Image.URL, "data:"), ";base64,")
		if !ok {
			name = m.Text
			continue
		}
		image := schema.MessagePartCommon{MIMEType: mime, Base64Data: &data}
		parts = append(parts, schema.ToolOutputPart{
			Type:  schema.ToolPartTypeImage,
			Image: &schema.ToolOutputImage{MessagePartCommon: image},
			Extra: map[string]any{mark: name},
		})
	}
	return parts
}
