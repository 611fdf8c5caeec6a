package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
)

const (
	helperTimeout  = 10 * time.Second
	maxHelperBytes = 64 << 10 // of its output
)

// A helper is a command that prints headers, as a JSON object of strings. It runs in
// a shell, once for each connection and once more when the server refuses them.
type helper struct {
	name, url, command string
	turn               chan struct{} // has room for the one who uses last
	last               http.Header   // what the command printed last, or nil
}

func newHelper(cfg *config.Server) *helper {
	return &helper{name: cfg.Name, url: cfg.URL, command: cfg.HeadersHelper, turn: make(chan struct{}, 1)}
}

// headers is a [HeaderSource].
func (h *helper) headers(ctx context.Context, _ http.Header, refused *Refusal) (http.Header, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	current := h.last != nil
	if refused != nil && refused.Scopes == nil {
		for name, values := range h.last {
			current = current && slices.Equal(refused.Sent[name], values)
		}
		current = !current // those were refused, or another request has newer ones
	}
	if current {
		return h.last, nil
	}
	printed, err := h.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("headersHelper: %w", err)
	}
	h.last = printed
	return printed, nil
}

// run runs the command. Its errors repeat nothing that it printed.
func (h *helper) run(ctx context.Context) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	cmd := shell(ctx, h.command)
	ownGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = termGrace
	cmd.Env = append(os.Environ(), "CLAUDE_CODE_MCP_SERVER_NAME="+h.name, "CLAUDE_CODE_MCP_SERVER_URL="+h.url)
	out := &boundedBuffer{max: maxHelperBytes}
	cmd.Stdout = out
	err := cmd.Run()
	if err != nil && cmd.Process != nil {
		killGroup(cmd) // else each attempt to connect could leave a process
	}
	switch {
	case out.over:
		return nil, fmt.Errorf("the command printed more than %d bytes", maxHelperBytes)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the command did not end within %v: %w", helperTimeout, ctx.Err())
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("the command has ended, but a process that it started keeps its output open")
	case err != nil:
		return nil, fmt.Errorf("the command failed: %w", err)
	}
	var printed map[string]*string
	if json.Unmarshal(out.buffer.Bytes(), &printed) != nil || printed == nil {
		return nil, errors.New("the command did not print a JSON object of strings")
	}
	header := make(http.Header, len(printed))
	for name, value := range printed {
		if value == nil {
			return nil, errors.New("the command did not print a JSON object of strings")
		}
		header.Set(name, *value)
	}
	return header, nil
}

// A boundedBuffer refuses more than max bytes.
type boundedBuffer struct {
	buffer bytes.Buffer // not embedded: it would read on and on
	max    int
	over   bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.over = b.over || len(p) > b.max-b.buffer.Len(); b.over {
		return 0, errors.New("too long")
	}
	return b.buffer.Write(p)
}
