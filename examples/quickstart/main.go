// Quickstart shows mcphybrid offline and without keys: seven MCP servers in this process list
// 150 tools; the model sees 40 of them, searches for others and calls them.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/demo"
)

func main() {
	if err := show(context.Background(), os.Stdout); err != nil {
		log.Fatal("quickstart: ", err)
	}
}

func show(ctx context.Context, w io.Writer) error {
	// The order of the servers decides whose tools are inline. Most of the 150 tools only
	// say that they are not implemented; those that are called below work.
	mgr := mcphybrid.NewManager(&mcphybrid.Options{Servers: []mcphybrid.ServerConfig{
		{Name: "files", InProcess: demo.Files()},
		{Name: "issues", InProcess: demo.Issues()},
		{Name: "math", InProcess: demo.Math()},
		{Name: "text", InProcess: demo.Text()},
		{Name: "clock", InProcess: demo.Clock()},
		{Name: "units", InProcess: demo.Units()},
		{Name: "notes", InProcess: demo.Notes()},
	}})
	defer mgr.Close()
	if err := mgr.Start(ctx); err != nil {
		return err
	}

	heading(w, "Servers")
	for _, s := range mgr.Servers() {
		fmt.Fprintf(w, "%-8s %3d tools, %s\n", s.Name, s.Tools, s.State)
	}

	sess := mgr.NewSession(nil)
	st := sess.Stats()
	heading(w, "Partition")
	fmt.Fprintf(w, "%d tools: %d inline, %d deferred\n", st.Tools, st.Inline, st.Deferred)

	heading(w, "What is appended to the system prompt")
	fmt.Fprintln(w, firstLines(strings.TrimPrefix(sess.PromptSections(mcphybrid.PromptFull), "\n\n"), 20))

	// From here on, we play the model, which makes the calls.
	c := conversation{w, sess}
	heading(w, "The model uses an inline tool")
	c.call(ctx, "mcp_files__write_file", map[string]any{"path": "prices.csv", "content": "item,price\ntea,3\ncoffee,4\n"})

	heading(w, "The model searches for a tool that it does not see, and calls what it finds")
	c.call(ctx, mcphybrid.SearchToolName, map[string]any{"query": "convert csv spreadsheet to json", "max_results": 2})
	c.call(ctx, "mcp_text__csv_to_json", map[string]any{"csv": "item,price\ntea,3\ncoffee,4\n"})

	heading(w, "The model calls a deferred tool by name, without a search")
	c.call(ctx, "mcp_math__solve_linear_system", map[string]any{"matrix": [][]int{{2, 1}, {1, 3}}, "constants": []int{5, 10}})

	heading(w, "Nothing that was sent to the model has changed; what is active was appended")
	tools := sess.Tools()
	for i, t := range tools {
		if i < 2 || i >= st.Inline {
			fmt.Fprintf(w, "%3d  %s\n", i+1, t.Name())
		} else if i == 2 {
			fmt.Fprintln(w, "     …")
		}
	}

	st = sess.Stats()
	saved := st.Tokens.All - st.Tokens.Sent()
	heading(w, "Tokens, estimated")
	fmt.Fprintf(w, "all %d definitions                  %6d\n", st.Tools, st.Tokens.All)
	fmt.Fprintf(w, "sent: inline and search tool          %6d\n", st.Tokens.Inline+st.Tokens.Meta)
	fmt.Fprintf(w, "      %d active tools                  %6d\n", st.Active, st.Tokens.Active)
	fmt.Fprintf(w, "      prompt sections                 %6d\n", st.Tokens.Sections)
	fmt.Fprintf(w, "      what the search answered        %6d\n", st.Tokens.Searches)
	fmt.Fprintf(w, "saved in the next request             %6d  (%d %%)\n", saved, 100*saved/st.Tokens.All)
	return nil
}

// A conversation prints the calls of a model in a session and their results.
type conversation struct {
	w    io.Writer
	sess *mcphybrid.Session
}

func (c conversation) call(ctx context.Context, name string, args map[string]any) {
	text, _ := json.Marshal(args) // maps of plain values always marshal
	fmt.Fprintf(c.w, "→ %s %s\n", name, text)
	result, err := c.sess.Call(ctx, name, args)
	if err != nil {
		fmt.Fprintln(c.w, "! ", err) // for the host; the result is for the model
	}
	for _, content := range result.Content {
		fmt.Fprintln(c.w, "←", mcp.GetTextFromContent(content))
	}
}

func heading(w io.Writer, text string) {
	fmt.Fprintf(w, "\n── %s %s\n", text, strings.Repeat("─", max(0, 74-len(text))))
}

// firstLines returns the first lines of text.
func firstLines(text string, lines int) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(all) > lines {
		all = append(all[:lines], fmt.Sprintf("… (%d more lines)", len(all)-lines))
	}
	return strings.Join(all, "\n")
}
