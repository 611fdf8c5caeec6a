// Package add puts a server of a registry into a configuration file.
//
//	mcphybrid add -registry FILE|FOLDER|ADDRESS [-config mcp.json] [-as NAME] [-yes] NAME
//
// It shows what the server would run, and asks, before it writes.
package add

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/internal/terminal"
)

// Main runs the command and returns its exit status.
func Main(ctx context.Context, args []string, in, out, errs *os.File) int {
	ctx, stop := exit.Interrupts(ctx)
	defer stop()
	return exit.With(run(ctx, args, in, out, errs), "add", errs)
}

func run(ctx context.Context, args []string, in io.Reader, out, errs *os.File) error {
	flags := flag.NewFlagSet("add", flag.ContinueOnError)
	flags.SetOutput(errs)
	path := flags.String("config", "mcp.json", "the `file` to add the server to")
	from := flags.String("registry", "", "where servers are: a `place`, which is a server.json, a list of them as a registry answers, a folder of such files, or the https address of such a list")
	as := flags.String("as", "", "the `name` that it gets in the file; by default, the last part of its own")
	yes := flags.Bool("yes", false, "add it without a question")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return exit.Unusable(err)
	}
	switch {
	case flags.NArg() != 1:
		return exit.Unusable(errors.New("name one server behind the flags"))
	case *from == "":
		return exit.Unusable(errors.New("-registry says where to look: a file, a folder or an https address"))
	}
	data, err := find(ctx, *from, flags.Arg(0))
	if err != nil {
		return err
	}
	p, err := propose(data)
	if err != nil {
		return fmt.Errorf("server %q: %w", flags.Arg(0), err)
	}
	if *as != "" {
		p.name = *as
	}
	if _, err := insert(*path, p); err != nil {
		return err
	}
	sheet := terminal.NewSheet(out)
	p.show(sheet, *path)
	if sheet.Err() != nil {
		return sheet.Err()
	}
	if !*yes {
		fmt.Fprint(out, "Add it? [y/N] ")
		answer, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return errors.New("nothing was added")
		}
	}
	next, err := insert(*path, p) // the file may be another one by now
	if err != nil {
		return err
	}
	if err := write(*path, next); err != nil {
		return err
	}
	sheet.Text(fmt.Sprintf("added to %s; see whether it works: mcphybrid doctor %s", *path, plain.Quoted(*path)))
	return sheet.Err()
}

// show says what would run, and what is asked for.
func (p *proposal) show(s *terminal.Sheet, path string) {
	s.Text(fmt.Sprintf("%s, as %s in %s", p.registered, p.name, path))
	if p.description != "" {
		s.Text("  it says of itself: " + p.description)
	}
	if p.entry.Command != "" {
		words := []string{plain.Quoted(p.entry.Command)}
		for _, arg := range p.entry.Args {
			words = append(words, plain.Quoted(arg))
		}
		s.Text("  runs on this machine: " + strings.Join(words, " "))
	} else {
		s.Text("  is reached at: " + p.entry.URL)
	}
	for _, of := range []struct {
		what   string
		values map[string]string
	}{{"env", p.entry.Env}, {"header", p.entry.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(of.values)) {
			s.Text(fmt.Sprintf("  %s %s: %s", of.what, name, of.values[name]))
		}
	}
	for _, in := range p.asks {
		secret := ""
		if in.secret {
			secret = ", a secret"
		}
		s.Text(fmt.Sprintf("  set the variable %s%s: %s", in.variable, secret, in.description))
	}
	for _, note := range p.notes {
		s.Text("  " + note)
	}
}
