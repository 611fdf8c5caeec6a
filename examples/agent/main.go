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

	"github.com/mcphybrid/mcphybrid"
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
	if err := mgr.Start(ctx); err != nil {
		fmt.Fprintln(stderr, "!", err) // names each server that failed; the others work
	}
	a := &agent{
		sess:   mgr.NewSession(&mcphybrid.SessionOptions{Access: set.access}),
		format: set.provider.format,
		begin:  func() model { return set.provider.begin(set.endpoint) },
		limit:  set.limit,
		out:    stdout,
	}
	if err := a.converse(ctx, set.messages); err != nil {
		return err
	}
	return set.end()
}

// An agent is one conversation between a user and a model.
type agent struct {
	sess   *mcphybrid.Session
	format mcphybrid.Format
	begin  func() model
	limit  int // tokens
	out    io.Writer
}

// converse answers each of the user's messages.
func (a *agent) converse(ctx context.Context, messages []string) error {
	m, summary := a.begin(), ""
	for i, message := range messages {
		fmt.Fprintf(a.out, "\n> %s\n", message)
		reply, err := a.turn(ctx, m, summary+message)
		if err != nil {
			return err
		}
		summary = ""
		if reply.tokens > a.limit && i+1 < len(messages) {
			fmt.Fprintf(a.out, "\n(%d tokens: the conversation is summarized)\n", reply.tokens)
			if reply, err = a.turn(ctx, m, summarize); err != nil {
				return err
			}
			// The conversation ends, and the provider's cache with it. So the
			// list of tools may begin anew.
			m, summary = a.begin(), "This is your summary of what was before:\n"+reply.text+"\n\n"
			a.sess.Compact()
		}
	}
	return nil
}

// turn answers one message, with as many calls as the model makes.
func (a *agent) turn(ctx context.Context, m model, message string) (reply, error) {
	a.sess.NextTurn()
	next := request{message: message}
	for range maxRequests {
		// Tools that a search or a call has activated since the last request stand at
		// the end of the list. The part before them is unchanged.
		var err error
		if next.tools, err = a.sess.Export(a.format); err != nil {
			return reply{}, err
		}
		next.system = system + a.sess.PromptSections(mcphybrid.PromptFull)
		r, err := m.answer(ctx, next, a.print)
		if r.text != "" {
			a.print("\n")
		}
		if err != nil || len(r.calls) == 0 {
			return r, err
		}
		next = request{results: a.call(ctx, r.calls)} // after Ctrl-C, send no further request
	}
	return reply{}, fmt.Errorf("the model has called tools %d times in a row without an answer", maxRequests)
}

// call runs the calls of one answer concurrently and returns their results in the
// order of the calls.
func (a *agent) call(ctx context.Context, calls []call) []result {
	results := make([]result, len(calls))
	problems := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		a.print(fmt.Sprintf("→ %s %s\n", c.name, c.arguments))
		wg.Go(func() {
			// The result is for the model, even if there is an error. The error
			// is for us: an unknown tool, a refused one, wrong arguments.
			res, err := a.sess.Call(ctx, c.name, c.arguments)
			exported, bad := mcphybrid.ExportResult(res, a.format)
			results[i], problems[i] = result{c.id, exported}, errors.Join(err, bad)
		})
	}
	wg.Wait()
	for i, r := range results {
		a.print(fmt.Sprintf("← %.200s\n", r.Text))
		if problems[i] != nil {
			a.print(fmt.Sprintf("! %v\n", problems[i]))
		}
	}
	return results
}

// print writes text to the terminal, without control characters.
func (a *agent) print(text string) {
	fmt.Fprint(a.out, strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 {
			return -1
		}
		return r
	}, text))
}
