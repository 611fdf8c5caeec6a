package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/mcphybrid/mcphybrid"
)

// approveCommand is the first argument of the command by which a person approves what is
// held back.
const approveCommand = "approve"

// minHash is how many digits of a hash must be given.
const minHash = 12

// approve shows what is held back, or approves one of it. It starts the servers itself and
// asks them what they list now. What it approves is what the person saw: the hash says so. A
// gateway that uses the same file goes by it within seconds.
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
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelError}))
	cfg, err := from.load(log)
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
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Servers: servers, TokenStore: from.tokenStore(), Logger: log, Limits: mcphybrid.ServerLimits{StartTimeout: startTimeout},
		Trust: mcphybrid.TrustApprove, TrustStore: mcphybrid.FileStore(*file), // so that nothing new is known by our looking
	})
	defer mgr.Close()
	if err := mgr.Start(ctx); err != nil {
		fmt.Fprintln(errs, err) // what the others list can be approved
	}
	var held []*mcphybrid.ChangedError
	for _, err := range mgr.Problems() {
		if changed, ok := err.(*mcphybrid.ChangedError); ok && changed.Held {
			held = append(held, changed)
		}
	}
	if name == "" {
		show(out, held, approval(from, *file))
		return nil
	}
	for _, e := range held {
		if e.Tool == name && len(hash) >= minHash && strings.HasPrefix(e.Is, hash) {
			if err := mgr.Accept(e.Server, e.Tool, e.Is); err != nil {
				return err
			}
			fmt.Fprintf(out, "approved: %s %q of server %q\n", e.Kind, printable(e.Tool, maxLoggedName), e.Server)
			return nil
		}
	}
	return fmt.Errorf("server %q holds back nothing with the name %q and the hash %q, of which %d digits must be given: see gateway %s without them",
		only, printable(name, maxLoggedName), printable(hash, maxLoggedName), minHash, approveCommand)
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
	if len(held) == 0 {
		fmt.Fprintln(out, "nothing is held back")
	}
	for _, e := range held {
		how := "is new"
		if !e.Since.IsZero() {
			how = "has changed since " + e.Since.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(out, "%s %q of server %q %s\n", e.Kind, printable(e.Tool, maxLoggedName), e.Server, how)
		for _, mark := range e.Marks() {
			fmt.Fprintf(out, "  suspicious: %s at %s: %s\n", mark.Kind, mark.Place, printable(mark.Text, maxLoggedName))
		}
		fmt.Fprintf(out, "  %s\n", shown(e.Definition))
		fmt.Fprintf(out, "  to approve it: %s %s %s %.*s\n", command, quoted(e.Server), quoted(e.Tool), minHash, e.Is)
	}
}

// quoted returns one word of a shell.
func quoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shown returns a definition, in which everything that a terminal would not print, or
// would obey, is escaped.
func shown(raw json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
