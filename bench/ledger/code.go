package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/codemode"
	"github.com/mcphybrid/mcphybrid/provider"
)

// codeTool is what the tool that runs scripts is registered as.
const codeTool = "mcp_code__" + codemode.ToolName

// A coder has the tool that runs scripts, and no other. Its scripts use the tools of work.
type coder struct {
	session
	work *mcphybrid.Session
}

func openCode(w *world, f provider.Format, _ string) (host, error) {
	work := w.coding.NewSession(nil)
	own := work.NewChild(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Allow: []string{codeTool}}})
	return &coder{session{own, f}, work}, nil
}

func (c *coder) answer(ctx context.Context, made call) ([]json.RawMessage, string, error) {
	return c.session.answer(codemode.WithSession(ctx, c.work), made)
}

// searching returns the arguments of a script that has the signatures of what a query finds.
func searching(query string) json.RawMessage {
	return raw(object{"script": fmt.Sprintf("return search(%s)", raw(query))})
}

// calling returns those of a script that calls a tool and returns the whole result: what the model
// could do without, its script does not know.
func calling(name string, args json.RawMessage) json.RawMessage {
	return raw(object{"script": fmt.Sprintf("return %s(%s)", function(name), args)})
}

// signs reports whether a text has the signature of a tool.
func signs(text, name string) bool { return strings.Contains(text, function(name)+"(") }

// function returns how a script names a tool.
func function(name string) string {
	if strings.ContainsAny(name, "-.") {
		return fmt.Sprintf("tools[%q]", name)
	}
	return "tools." + name
}
