package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/mcphybrid/mcphybrid"
)

// approveCommand is the first argument of the command by which a person approves what is
// held back.
const approveCommand = "approve"

// approve shows what is held back, or approves one of it. It starts the servers itself and
// asks them what they list now. What it approves is what the person saw: the whole hash says
// so. A gateway that uses the same file goes by it within seconds.
//
//	gateway approve [flags] [SERVER [NAME HASH]]
func approve(ctx context.Context, args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("gateway "+approveCommand, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "gateway %s [flags] [SERVER [NAME HASH]]\nshows what is held back, or approves that of a server with that name and hash\n", approveCommand)
		flags.PrintDefaults()
	}
	var from sources
	from.addFlags(flags)
	file := flags.String("trust", "", "the `file` of the gateway's -trust")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" {
		return errors.New("-trust is missing: the file that the gateway has")
	}
	if err := checkOwn(*file); err != nil {
		return fmt.Errorf("-trust: %w", err)
	}
	only, name, hash := flags.Arg(0), flags.Arg(1), flags.Arg(2)
	if flags.NArg() == 2 || flags.NArg() > 3 {
		return errors.New("want nothing more, a server, or a server, a name and a hash")
	}
	log := func(level slog.Level) *slog.Logger {
		return slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: level}))
	}
	cfg, err := from.load(log(slog.LevelWarn))
	if err != nil {
		return err
	}
	var servers []mcphybrid.ServerConfig
	for _, s := range cfg.Servers {
		if only == "" || s.Name == only {
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 {
		return fmt.Errorf("the configuration has no server %q", only)
	}
	store := &onlooker{of: mcphybrid.FileStore(*file)}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: servers, TokenStore: from.tokenStore(), Logger: log(slog.LevelError), Limits: mcphybrid.ServerLimits{StartTimeout: startTimeout},
		Trust: mcphybrid.TrustApprove, TrustStore: store,
	})
	defer mgr.Close()
	failed := mgr.Start(ctx) // what the others list can be approved
	var held []*mcphybrid.ChangedError
	for _, err := range mgr.Problems() {
		if changed, ok := err.(*mcphybrid.ChangedError); ok && changed.Held {
			held = append(held, changed)
		}
	}
	if name == "" {
		show(out, held, approval(from, *file))
		if len(held) == 0 && failed == nil {
			fmt.Fprintln(out, "nothing is held back")
		}
		return failed
	}
	for _, e := range held {
		if e.Tool != name || e.Is != hash {
			continue
		}
		store.writes.Store(true)
		if err := mgr.Accept(e.Server, e.Tool, e.Is); err != nil {
			return err
		}
		if err := store.has(ctx, e.Is); err != nil {
			return err
		}
		fmt.Fprintf(out, "approved: %s %q of server %q\n", e.Kind, printable(e.Tool, maxLoggedName), e.Server)
		return nil
	}
	return errors.Join(failed, fmt.Errorf("server %q holds back nothing with the name %q and the hash %q, of which all digits must be given: see gateway %s without them",
		only, printable(name, maxLoggedName), printable(hash, maxLoggedName), approveCommand))
}

// approval returns the command that shows and approves what is held back.
func approval(from sources, file string) string {
	words := []string{filepath.Base(os.Args[0]), approveCommand, "-config", from.config, "-trust", file}
	if from.dialect != "" {
		words = append(words, "-dialect", from.dialect)
	}
	if from.logins != "" {
		words = append(words, "-tokens", from.logins)
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// show writes what is held back, so that a person can judge it.
func show(out io.Writer, held []*mcphybrid.ChangedError, command string) {
	for _, e := range held {
		how := "is new"
		if !e.Since.IsZero() {
			how = "has changed since " + e.Since.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(out, "%s %q of server %q %s\n", e.Kind, printable(e.Tool, maxLoggedName), e.Server, how)
		for _, mark := range e.Marks() {
			fmt.Fprintf(out, "  suspicious: %s at %s: %s\n", mark.Kind, shown(mark.Place), printable(mark.Text, maxLoggedName))
		}
		fmt.Fprintf(out, "  %s\n", shown(string(e.Definition)))
		fmt.Fprintf(out, "  to approve it: %s %s %s %s\n", command, quoted(e.Server), quoted(e.Tool), e.Is)
	}
}

// quoted returns one word of a shell, of printable characters.
func quoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") == "" {
		return s
	}
	if strings.IndexFunc(s, unprintable) < 0 {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// shown returns s, in which everything that a terminal would not print, or would obey, is
// escaped.
func shown(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// report writes an error for a terminal. Servers have a say in it. Each error of several
// is a line.
func report(errs io.Writer, err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			report(errs, err)
		}
		return
	}
	fmt.Fprintln(errs, "gateway:", shown(err.Error()))
}

// An onlooker is a store of what is known that stays as it is while a person looks: what
// servers list now is known only when something is approved.
type onlooker struct {
	of     mcphybrid.SharedStore
	writes atomic.Bool
}

// Load implements [mcphybrid.Store].
func (o *onlooker) Load() ([]byte, error) { return o.of.Load() }

// Save implements [mcphybrid.Store].
func (o *onlooker) Save(data []byte) error {
	if !o.writes.Load() {
		return nil
	}
	return o.of.Save(data)
}

// Lock implements [mcphybrid.SharedStore].
func (o *onlooker) Lock(ctx context.Context) (unlock func(), err error) {
	return o.of.Lock(ctx)
}

// has returns nil as soon as a hash is in the store: another goroutine may be storing it.
func (o *onlooker) has(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if data, err := o.of.Load(); err != nil || bytes.Contains(data, []byte(hash)) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("the approval could not be stored")
		}
	}
}
