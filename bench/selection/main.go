// Command selection counts the tokens that a model reads until it has a value of a long
// result, by OpenAI's o200k_base: with mcp_tool_page alone, and with jq.
//
//	go -C bench run ./selection [-show NAME]
//
// The results in testdata are those of real servers: see cases. Without jq, the model sees the
// beginning and the end of a result and then reads on until the value is there. With
// it, the model sees the beginning, the end and the shape, and makes one or more selections. The
// expressions were written from what -show prints, which is all that a model sees of
// the result, and not from the data; those that failed or found too little are among them.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/jq"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/tiktoken"
)

//go:embed testdata/*.json.gz
var testdata embed.FS

func main() {
	log.SetFlags(0)
	show := flag.String("show", "", "print what the model sees of this result, and nothing else")
	flag.Parse()
	if err := run(context.Background(), *show, os.Stdout); err != nil {
		log.Fatal("selection: ", err)
	}
}

func run(ctx context.Context, show string, out io.Writer) error {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		return err
	}
	if show != "" {
		c, err := open(ctx, counter, show, jq.Selector{})
		if err != nil {
			return err
		}
		defer c.mgr.Close()
		fmt.Fprintln(out, c.seen)
		return nil
	}
	fmt.Fprintln(out, "| result | bytes | the value | without | pages | with | selections | fewer |")
	fmt.Fprintln(out, "|---|---:|---|---:|---:|---:|---:|---:|")
	var fewer []float64
	for _, c := range cases {
		without, err := c.read(ctx, counter)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		with, err := c.selected(ctx, counter)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		saved := 100 * (1 - float64(with.tokens)/float64(without.tokens))
		fewer = append(fewer, saved)
		fmt.Fprintf(out, "| %s | %s | %s | %d | %d | %d | %d | %.0f %% |\n", c.result, without.size(), c.value, without.tokens, without.calls, with.tokens, with.calls, saved)
	}
	fmt.Fprintf(out, "\nin the median of %d: %.1f %% fewer\n", len(fewer), median(fewer))
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// A conversation is one in which a tool gave a long result.
type conversation struct {
	mgr     *mcphybrid.Manager
	counter *tiktoken.Counter
	seen    string // by the model, so far
	tokens  int    // of that, of what the model wrote, and of what the tools of mcphybrid take
	calls   int    // of the page tool
}

// open returns a conversation whose last message is the result of that name.
func open(ctx context.Context, counter *tiktoken.Counter, name string, selector mcphybrid.ResultSelector) (*conversation, error) {
	packed, err := testdata.ReadFile("testdata/" + name + ".json.gz")
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, err
	}
	result := new(mcp.CallToolResult)
	if err := json.Unmarshal(data, result); err != nil {
		return nil, err
	}
	c := &conversation{counter: counter, mgr: mcphybrid.NewManager(&mcphybrid.Options{Select: selector})}
	tool := mcpserver.ServerTool{Tool: mcp.NewTool(name), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return result, nil
	}}
	if err := c.mgr.AddTools("recorded", tool); err != nil {
		return nil, err
	}
	if err := c.call(ctx, "mcp_recorded__"+name, "{}"); err != nil {
		return nil, err
	}
	for _, t := range c.mgr.Default().Tools() {
		if t.Name() == mcphybrid.PageToolName {
			c.tokens += counter.CountTokens(t.Name() + t.Description() + string(t.InputSchema()))
		}
	}
	return c, nil
}

// call makes a call and counts what the model writes and reads of it.
func (c *conversation) call(ctx context.Context, name, args string) error {
	result, err := c.mgr.Call(ctx, name, args)
	if err != nil {
		return err
	}
	exported, err := provider.ExportResult(result, provider.OpenAIChat)
	if err != nil {
		return err
	}
	c.seen += exported.Text + "\n"
	c.tokens += c.counter.CountTokens(exported.Text)
	if name == mcphybrid.PageToolName {
		c.calls++
		c.tokens += c.counter.CountTokens(name + args)
	}
	return nil
}

// whole is what the notes of long results say that they have.
var whole = regexp.MustCompile(`of (\d+) bytes are left out here`)

// size returns how many bytes the result has as the model would read it.
func (c *conversation) size() string {
	if said := whole.FindStringSubmatch(c.seen); said != nil {
		return said[1]
	}
	return "0"
}

// next is where the notes of long results say that they go on.
var next = regexp.MustCompile(`"id": "(r\d+)", "offset": (\d+)}`)

// read has the model read on until it sees the value.
func (t testCase) read(ctx context.Context, counter *tiktoken.Counter) (*conversation, error) {
	c, err := open(ctx, counter, t.name, nil)
	if err != nil {
		return nil, err
	}
	defer c.mgr.Close()
	for from := 0; !t.isSeen(c.seen); {
		notes := next.FindAllStringSubmatch(c.seen[from:], -1)
		if notes == nil {
			if t.needsAll() {
				return c, nil
			}
			return nil, fmt.Errorf("%q is not in the result", t.until)
		}
		from = len(c.seen)
		note := notes[len(notes)-1]
		if err := c.call(ctx, mcphybrid.PageToolName, fmt.Sprintf(`{"id": %q, "offset": %s}`, note[1], note[2])); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// selected has the model make its selections.
func (t testCase) selected(ctx context.Context, counter *tiktoken.Counter) (*conversation, error) {
	c, err := open(ctx, counter, t.name, jq.Selector{})
	if err != nil {
		return nil, err
	}
	defer c.mgr.Close()
	if t.selects == nil { // it is no JSON: the model reads on
		return t.read(ctx, counter)
	}
	for _, expression := range t.selects {
		args, err := json.Marshal(map[string]string{"id": "r1", "select": expression})
		if err != nil {
			return nil, err
		}
		if err := c.call(ctx, mcphybrid.PageToolName, string(args)); err != nil {
			return nil, err
		}
	}
	if !strings.Contains(c.seen, t.answer) {
		return nil, fmt.Errorf("the selections don't show %s", strconv.Quote(t.answer))
	}
	return c, nil
}
