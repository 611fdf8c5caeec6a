package exit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
)

// Signals returns a context that ends with the signals that end a gateway.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		ends = append(ends, syscall.SIGHUP)
	}
	// A client that reads no more must not end us before we have ended our servers: see
	// LineWriter. To ignore the signal would have the servers ignore it, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signal.NotifyContext(ctx, ends...)
}

// Interrupts returns a context that ends with the first signal that asks a command to end. The
// next one ends the program, whatever it waits for: to open a pipe may have no end.
func Interrupts(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-first:
		case <-ctx.Done():
		}
		signal.Stop(first)
		stop()
	}()
	return ctx, stop
}

// Failed is [With] for a command in whose errors servers have a say: see [Report].
func Failed(err error, command string, errs io.Writer) int {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		Report(errs, command, err)
	}
	return Status(err)
}

// Report writes an error of a command for a terminal. Servers have a say in it. Each error
// of several is a line.
func Report(errs io.Writer, command string, err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			Report(errs, command, err)
		}
		return
	}
	fmt.Fprintln(errs, command+":", plain.Shown(own(err)))
}
