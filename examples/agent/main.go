// Agent is an agent in the terminal. It uses a model from OpenAI, Anthropic or a
// compatible endpoint, with the tools of MCP servers.
//
//	go -C examples/agent run . [-config mcp.json] [-provider openai|anthropic] [-model M] [-base-url URL] [message …]
//
// The key comes from OPENAI_API_KEY or ANTHROPIC_API_KEY. Without a key and an
// endpoint, a script plays the model over the real protocol.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
)

const (
	system = "You are a helpful assistant with tools. Use them where they help, and say briefly what came of it."

	// maxRequests bounds the requests, and so the cost, of one message.
	maxRequests = 50

	summarize = "Summarize this conversation for yourself: you will go on with nothing but your summary. Keep what was asked, done and decided, with names and figures."
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nagent: interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "\nagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set, err := parse(args, stderr)
	if err != nil {
		return err
	}
	defer set.close()

	mgr := mcphybrid.NewManager(set.options)
	defer mgr.Close() // ends the servers
	return set.run(ctx, mgr, stdout, stderr)
}

// run has the conversation with the tools of mgr.
func (set *settings) run(ctx context.Context, mgr *mcphybrid.Manager, stdout, stderr io.Writer) error {
	if err := mgr.Start(ctx); err != nil {
		fmt.Fprintln(stderr, "!", err) // names each server that failed; the others work
	}
	a := &agent{sess: mgr.NewSession(&mcphybrid.SessionOptions{Access: set.access}), limit: set.limit, out: stdout}
	a.begin = func() conversation { return set.provider.begin(a, set.endpoint) }
	if err := a.converse(ctx, set.messages); err != nil {
		return err
	}
	return set.end()
}

// An agent is one user's talk with a model.
type agent struct {
	sess  *mcphybrid.Session
	begin func() conversation
	limit int64 // tokens

	mu   sync.Mutex // calls run at once
	out  io.Writer
	said string // text of the answer that arrives, or of the last
}

// A conversation answers a message of the user with as many requests and calls as that
// takes. It returns how many tokens it has now, or 0 if the endpoint does not report them.
type conversation func(ctx context.Context, message string) (tokens int64, err error)

// converse answers each of the user's messages.
func (a *agent) converse(ctx context.Context, messages []string) error {
	answer, summary := a.begin(), ""
	for i, message := range messages {
		a.line("\n> %s", message)
		tokens, err := answer(ctx, summary+message)
		a.line("")
		if err != nil {
			return err
		}
		summary = ""
		if tokens > a.limit && i+1 < len(messages) {
			a.line("\n(%d tokens: the conversation is summarized)", tokens)
			if _, err := answer(ctx, summarize); err != nil {
				return err
			}
			// The conversation ends, and the provider's cache with it. So the
			// list of tools may begin anew.
			answer, summary = a.begin(), "This is your summary of what was before:\n"+a.said+"\n\n"
			a.sess.Compact()
			a.line("")
		}
	}
	return nil
}

// call makes a call of the model, be it of a tool or the search. Those of one answer run at
// once.
func (a *agent) call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	a.line("→ %s %s", name, args)
	// The result is for the model, even if there is an error. The error is for us: an
	// unknown tool, a refused one, wrong arguments.
	res, err := a.sess.Call(ctx, name, args)
	shown, bad := provider.ExportResult(res, provider.OpenAIChat)
	a.line("← %s %.200s", name, shown.Text)
	if err := errors.Join(err, bad); err != nil {
		a.line("! %v", err)
	}
	return res, err
}

// say prints a piece of the model's answer.
func (a *agent) say(piece string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said += piece
	fmt.Fprint(a.out, printable(piece))
}

// line prints a line, below what the model has said. Without a text it only ends that.
func (a *agent) line(format string, values ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said != "" {
		fmt.Fprintln(a.out)
	}
	a.said = ""
	if format != "" {
		fmt.Fprintln(a.out, printable(fmt.Sprintf(format, values...)))
	}
}

// printable returns a text without control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
