package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// Curious returns a server that asks. Its tool "ask" asks what "kind" says: for a
// color (elicit), to open the page at "text" (page), a model (sample), or for the
// roots. It returns the answer as JSON. Its tool "report" is executed as a task only.
func Curious(name string) *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer(name, "1", mcpserver.WithTaskCapabilities(true, true, true))
	s.AddTool(mcp.NewTool("ask", mcp.WithString("kind"), mcp.WithString("text")), asks)
	s.AddTaskTool(mcp.NewTool("report", mcp.WithTaskSupport(mcp.TaskSupportRequired), mcp.WithString("text")), reports)
	return s
}

var refused bool // of calls that follow one another

func asks(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := mcpserver.InputResponse(r.Params.InputResponses, "q"); ok {
		text, err := json.Marshal(answer)
		return mcp.NewToolResultText(string(text)), err
	}
	b := mcpserver.NewInputRequestBuilder("")
	switch text := r.GetString("text", ""); r.GetString("kind", "") {
	case "first": // refuses every other call until the page at "text" is opened
		if refused = !refused; !refused {
			return mcp.NewToolResultText("opened"), nil
		}
		fallthrough
	case "always": // refuses all calls
		return nil, mcp.URLElicitationRequiredError{Elicitations: []mcp.ElicitationParams{{ElicitationID: "1", URL: text}}}
	case "elicit":
		b.Elicit("q", mcp.ElicitationParams{Message: text, RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"color":{"type":"string","enum":["red","blue"]}},"required":["color"]}`)})
	case "page":
		b.Elicit("q", mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, Message: "Please sign in", ElicitationID: "1", URL: text})
	case "sample":
		b.Sample("q", mcp.CreateMessageParams{MaxTokens: 10, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}}})
	case "roots":
		b.Roots("q")
	}
	return b.ToolResult(), nil
}

// reports answers with its text, or never if that is "never". It can't heed its
// context: mcp-go ends that when it has said that the task began.
func reports(_ context.Context, r mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
	text := r.GetString("text", "")
	if text == "never" {
		select {}
	}
	return &mcp.CreateTaskResult{Content: []mcp.Content{mcp.NewTextContent("report " + text)}}, nil
}

// CuriousHTTP serves a curious server. Without modern, it speaks only protocols with
// sessions.
func CuriousHTTP(name string, modern bool) http.Handler {
	options := []mcpserver.StreamableHTTPOption{mcpserver.WithStateful(true)}
	if !modern {
		options = append(options, mcpserver.WithStreamableHTTPProtocolVersions(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	return mcpserver.NewStreamableHTTPServer(Curious(name), options...)
}

// serveCurious is [Curious] over standard input and output.
func serveCurious(modern bool) {
	in, out := io.Pipe()
	go func() {
		for r := bufio.NewReader(os.Stdin); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				out.CloseWithError(err)
				return
			}
			if !modern { // a server without sessions begins with this method
				line = bytes.ReplaceAll(line, []byte(`"server/discover"`), []byte(`"server/unknown"`))
			}
			_, _ = out.Write(line)
		}
	}()
	_ = mcpserver.NewStdioServer(Curious("curious")).Listen(context.Background(), in, os.Stdout)
}
