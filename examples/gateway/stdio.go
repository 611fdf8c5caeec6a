package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// stdioCalls is how many calls of the client run at once; others wait.
const stdioCalls = 100

// serveStdio serves one client until ctx ends or in does.
func (g *gateway) serveStdio(ctx context.Context, in io.Reader, out io.WriteCloser) error {
	lines := &lineWriter{w: out}
	defer lines.Close() // a server whose message is being written stops waiting
	g.direct = lines
	s := server.NewStdioServer(g.front)
	s.SetErrorLogger(slog.NewLogLogger(g.opts.log.Handler(), slog.LevelWarn))
	server.WithWorkerPoolSize(stdioCalls)(s)
	server.WithQueueSize(10 * stdioCalls)(s)

	listening, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(listening, in, lines) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	g.drain()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// A lineWriter writes messages from several goroutines, each as one line in one
// call of Write.
type lineWriter struct {
	mu sync.Mutex
	w  io.WriteCloser
}

func (l *lineWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(line)
}

// Close ends a waiting Write.
func (l *lineWriter) Close() error { return l.w.Close() }

// notify implements [sink]. Unlike messages that mcp-go sends, a message is
// written when notify returns.
func (l *lineWriter) notify(method string, params any) {
	if line, err := newNotification(method, params); err == nil {
		_, _ = l.Write(append(line, '\n')) // the client is gone
	}
}

func newNotification(method string, params any) ([]byte, error) {
	return json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{mcp.JSONRPC_VERSION, method, params})
}
