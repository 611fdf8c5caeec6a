// Mcphybrid is the library as a program: a gateway in front of many MCP servers, and
// commands that look at such servers and measure how well their tools are found.
//
//	mcphybrid COMMAND [flags] …
//
// Without a command it lists them all. mcphybrid help COMMAND shows which flags one has.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/add"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/approve"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/doctor"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/eval"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/inspect"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/version"
)

// A command is one of the program's. Its main function returns the exit status, and
// decides itself which signals end it.
type command struct {
	name, does string
	main       func(ctx context.Context, args []string, in, out, errs *os.File) int
}

// commands returns all commands, in the order in which they are listed.
func commands() []command {
	return []command{
		{"gateway", "serve the tools of many MCP servers as one MCP server", gateway.Main},
		{"approve", "show what a gateway holds back, or approve it", approve.Main},
		{"inspect", "show what the servers of a file cost a model; search, call tools", inspect.Main},
		{"doctor", "say what is wrong with the servers of a file, and what to do", doctor.Main},
		{"add", "add a server of a registry to a file, after you have seen it", add.Main},
		{"login", "log in to the servers of a file that want it", login.Main},
		{"eval", "measure how well search finds tools", eval.Main},
		{"completion", "print what completes command lines in bash, zsh or fish", printCompletion},
		{"version", "say which version this is", printVersion},
	}
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, in, out, errs *os.File) int {
	if len(args) == 0 || isHelp(args[0]) && (len(args) == 1 || args[0] != "help") {
		list(out)
		return 0
	}
	help := args[0] == "help"
	if help {
		args = args[1:]
	}
	for _, c := range commands() {
		switch {
		case c.name != args[0]:
		case help && len(args) > 1:
			fmt.Fprintf(errs, "help: unexpected argument %q\n", args[1])
			return 2
		case help:
			fmt.Fprintf(out, "mcphybrid %s: %s\n\n", c.name, c.does)
			c.main(ctx, []string{"-h"}, in, out, out)
			return 0
		default:
			return c.main(ctx, args[1:], in, out, errs)
		}
	}
	fmt.Fprintf(errs, "mcphybrid: there is no command %q\n\n", args[0])
	list(errs)
	return 2
}

// isHelp reports whether a word asks for help.
func isHelp(word string) bool {
	return slices.Contains([]string{"help", "-h", "-help", "--help"}, word)
}

// list writes a line for each command.
func list(w io.Writer) {
	fmt.Fprintln(w, "mcphybrid COMMAND [flags] …")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s  %s\n", c.name, c.does)
	}
	fmt.Fprintf(w, "  %-10s  %s\n", "help", "list these commands; mcphybrid help COMMAND shows the flags of one")
}

func printVersion(_ context.Context, args []string, _, out, errs *os.File) int {
	if len(args) > 0 && !isHelp(args[0]) {
		fmt.Fprintf(errs, "version: unexpected argument %q\n", args[0])
		return 2
	}
	fmt.Fprintf(out, "mcphybrid %s, %s, %s/%s\n", version.Of(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}
