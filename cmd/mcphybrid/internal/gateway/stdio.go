package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/files"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/wire"
)

// stdioCalls is how many calls of the client run at once; others wait.
const stdioCalls = 100

// stdioID is mcp-go's session ID of the client over standard input and output.
const stdioID = "stdio"

// serveStdio serves one client until ctx ends, in ends, or nobody reads out.
func (g *gateway) serveStdio(ctx context.Context, in io.Reader, out io.WriteCloser) error {
	gone, leave := context.WithCancel(context.Background())
	defer leave()
	lines := wire.NewLineWriter(out, leave)
	defer files.FollowAll(g.followed, g.opts.log)()
	defer lines.Close() // a server whose message is being written stops waiting
	g.direct, g.lines = lines, lines
	defer g.open(stdioID).Attach(lines, true)()
	s := server.NewStdioServer(g.front)
	s.SetErrorLogger(slog.NewLogLogger(g.opts.log.Handler(), slog.LevelWarn))
	server.WithWorkerPoolSize(stdioCalls)(s)
	server.WithQueueSize(10 * stdioCalls)(s)

	listening, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(listening, wire.NewLineReader(in, g.opts.limits, lines), lines) }()
	select {
	case err := <-ended:
		return err
	case <-gone.Done():
	case <-ctx.Done():
		g.drain()
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
