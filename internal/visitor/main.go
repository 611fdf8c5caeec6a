// Visitor does what the pages say, as somebody who has only Go and git: each command of
// the README and of docs/ runs in an empty clone of HEAD, and each block of Go is compiled
// in a module that got this one by the command that the README has for that. The programs
// in the READMEs of adapters are compiled likewise. The home folder is empty, and so are
// the caches in it. docs/tutorial.md is followed from top to bottom in an empty folder: the
// files that it names are saved, and commands print what the page says.
//
//	go run ./internal/visitor [-full] [-with TEXT]
//
// Without -full, it takes modules from this machine's cache, builds with this machine's
// build cache, and leaves out what takes long: tests, other modules, adapters; of these, it
// runs the commands that have the text of -with. What was left out and why is told; package
// pages says how a page names what not everybody has.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/visitor/pages"
)

const (
	version  = "v0.1.0" // of the modules that are released for the visitor
	tutorial = "docs/tutorial.md"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := serve(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	full := flag.Bool("full", false, "with empty caches, and what takes long too")
	with := flag.String("with", "", "run the commands with this `text`, though they take long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	v := visitor{full: *full, with: *with}
	err := v.visit(ctx)
	fmt.Printf("NOTE: %d blocks compiled, %d commands run, %d of both not\n", v.compiled, v.run, v.not)
	if err != nil {
		stop()
		log.Fatal("visitor: ", err)
	}
}

// A visitor has a folder of its own, with a home in it.
type visitor struct {
	full bool
	with string // part of commands that run though they take long, or empty

	tmp, clone string
	env        []string
	errs       []error

	compiled, run, not int // pieces
}

func (v *visitor) visit(ctx context.Context) (err error) {
	if v.tmp, err = os.MkdirTemp("", "visitor"); err != nil {
		return err
	}
	defer os.RemoveAll(v.tmp)
	v.clone = filepath.Join(v.tmp, "clone")
	if err := v.arrive(ctx); err != nil {
		return err
	}
	own, err := v.read("README.md", "docs/*.md")
	if err != nil {
		return err
	}
	adapters, err := v.read("adapters/*/README.md")
	if err != nil {
		return err
	}
	var steps []pages.Piece
	own = slices.DeleteFunc(own, func(p pages.Piece) bool {
		if p.Path == tutorial {
			steps = append(steps, p)
		}
		return p.Path == tutorial
	})
	v.follow(ctx, steps)
	v.code(ctx, own)
	for _, p := range adapters {
		v.adapter(ctx, p)
	}
	v.commands(ctx, own)
	return errors.Join(append(v.errs, ctx.Err())...)
}

// arrive prepares the home, the clone, and the proxy from which modules come.
func (v *visitor) arrive(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	proxy := filepath.Join(v.tmp, "proxy")
	release := exec.CommandContext(ctx, ".ci/release", version)
	release.Env = append(os.Environ(), "PROXY="+proxy, "TRY=no")
	if out, err := release.CombinedOutput(); err != nil {
		return fmt.Errorf(".ci/release: %w\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, "git", "clone", "-q", root, v.clone).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w\n%s", err, out)
	}
	goenv := func(name string) (string, error) {
		out, err := exec.CommandContext(ctx, "go", "env", name).Output()
		return strings.TrimSpace(string(out)), err
	}
	from, err := goenv("GOPROXY")
	if err != nil {
		return err
	}
	// Nobody has sums of our modules. Those of others are checked where they are downloaded.
	settings := "GOFLAGS=-modcacherw\nGONOSUMDB=github.com/mcphybrid\n"
	if !v.full {
		cache, err := goenv("GOMODCACHE")
		if err != nil {
			return err
		}
		build, err := goenv("GOCACHE")
		if err != nil {
			return err
		}
		from = "file://" + cache + "/cache/download," + from
		settings = "GOFLAGS=-modcacherw\nGONOSUMDB=*\nGOCACHE=" + build + "\n"
	}
	settings += "GOPROXY=file://" + proxy + "," + from + "\n"
	home := filepath.Join(v.tmp, "home")
	if err := write(filepath.Join(home, ".config", "go", "env"), settings); err != nil {
		return err
	}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc([]string{"GO", "HOME", "MCPHYBRID", "XDG_"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			v.env = append(v.env, e)
		}
	}
	path := filepath.Join(home, "go", "bin") + string(os.PathListSeparator) + os.Getenv("PATH") // the last value counts
	v.env = append(v.env, "HOME="+home, "PATH="+path)
	return v.configure(v.clone, manyTools)
}

// read returns the pieces of pages of the clone.
func (v *visitor) read(patterns ...string) (all []pages.Piece, err error) {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(v.clone, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			name, _ := filepath.Rel(v.clone, path)
			pieces, err := pages.Read(filepath.ToSlash(name), string(text))
			if err != nil {
				return nil, err
			}
			all = append(all, pieces...)
		}
	}
	return all, nil
}

// follow does the steps of the tutorial in an empty folder, up to the first that fails.
func (v *visitor) follow(ctx context.Context, steps []pages.Piece) {
	dir := filepath.Join(v.tmp, "tutorial")
	v.must(os.MkdirAll(dir, 0o755))
	saved, said := 0, "" // what commands have said since the last file, or the last check
	for _, p := range steps {
		where := fmt.Sprintf("%s:%d", p.Path, p.Line)
		switch {
		case p.Needs != "":
			v.skip(p, "needs "+p.Needs)
			continue
		case p.Kind != "sh" && p.Saved == "":
			v.must(fmt.Errorf("%s: a block of a tutorial names its file", where))
			return
		case p.Kind != "sh":
			v.must(write(filepath.Join(dir, filepath.FromSlash(p.Saved)), p.Text))
			saved++
			said = ""
			continue
		}
		out, ok := v.output(ctx, where, dir, p.Text, 10*time.Minute)
		if !ok {
			return
		}
		v.run++
		said += out
		if p.Says == "" {
			continue
		}
		if err := p.Prints(said); err != nil {
			v.must(err)
			fmt.Printf("FAIL %v\n%s\n", err, said)
			return
		}
		said = ""
	}
	v.compiled += saved
}

// code compiles the blocks in one module, runs those that are programs, and reads those
// that are files.
func (v *visitor) code(ctx context.Context, all []pages.Piece) {
	dir := filepath.Join(v.tmp, "module")
	v.must(write(filepath.Join(dir, "host", "host.go"), pages.Host))
	v.must(write(filepath.Join(dir, "read", "main.go"), reader))
	v.must(v.configure(dir, manyTools))
	var programs []string
	files, blocks := "", 0
	for i, p := range all {
		at := filepath.Join(dir, "host", fmt.Sprintf("block%d.go", i))
		switch {
		case p.Kind == "sh":
			continue
		case p.Needs != "":
			v.skip(p, "needs "+p.Needs)
			continue
		case p.Kind != "go":
			at = filepath.Join(dir, fmt.Sprintf("file%d.%s", i, p.Kind))
			v.must(write(at, p.Text))
			files += " " + at
			continue
		case p.Whole():
			programs = append(programs, fmt.Sprintf("./program%d", i))
			at = filepath.Join(dir, fmt.Sprintf("program%d", i), "main.go")
		}
		v.must(write(at, p.File()))
		blocks++
	}
	v.do(ctx, "a module", dir, "go mod init example.com/visitor", time.Minute)
	for _, p := range all {
		if gets(p) && p.Needs == "" && v.do(ctx, p.Path+":"+fmt.Sprint(p.Line), dir, p.Text, 10*time.Minute) {
			v.run++
		}
	}
	if v.do(ctx, "code of the pages", dir, "go mod tidy && go vet ./...", 10*time.Minute) {
		v.compiled += blocks
	}
	for _, tools := range []int{fewTools, manyTools} {
		v.must(v.configure(dir, tools))
		for _, name := range programs {
			v.do(ctx, fmt.Sprintf("a program of the pages, %d tools", tools), dir, "go run "+name+" | tee /dev/stderr | grep -q create_issue", 5*time.Minute)
		}
	}
	v.do(ctx, "files of the pages", dir, "go run ./read"+files, 5*time.Minute)
}

// adapter compiles a program in a module that got the adapter.
func (v *visitor) adapter(ctx context.Context, p pages.Piece) {
	if p.Kind != "go" {
		return
	}
	if !v.full {
		v.skip(p, "takes long")
		return
	}
	folder := filepath.Dir(p.Path)
	dir := filepath.Join(v.tmp, folder)
	v.must(write(filepath.Join(dir, "main.go"), p.File()))
	if v.do(ctx, p.Path, dir, "go mod init example.com/visitor && go get github.com/mcphybrid/mcphybrid/"+folder+"@"+version+
		" && go mod tidy && go vet .", 10*time.Minute) {
		v.compiled++
	}
}

// commands runs the commands in the clone.
func (v *visitor) commands(ctx context.Context, all []pages.Piece) {
	done := make(map[string]bool)
	found := v.with == ""
	for _, p := range all {
		slow := strings.HasPrefix(p.Text, "go test ") || strings.HasPrefix(p.Text, "go -C ")
		named := v.with != "" && strings.Contains(p.Text, v.with)
		switch {
		case p.Kind != "sh" || done[p.Text]:
			continue
		case p.Needs != "":
			v.skip(p, "needs "+p.Needs)
		case gets(p): // with the code
		case slow && !v.full && !named:
			v.skip(p, "takes long")
		default:
			found = found || named
			if v.do(ctx, fmt.Sprintf("%s:%d", p.Path, p.Line), v.clone, p.Text, 20*time.Minute) {
				v.run++
			}
		}
		done[p.Text] = true
	}
	if !found {
		v.must(fmt.Errorf("no command that was run has %q", v.with))
	}
}

// gets reports whether p is a command for the reader's module, and not for the clone.
func gets(p pages.Piece) bool { return strings.HasPrefix(p.Text, "go get ") }

// do runs a command of the shell and reports whether it succeeded.
func (v *visitor) do(ctx context.Context, what, dir, command string, limit time.Duration) bool {
	_, ok := v.output(ctx, what, dir, command, limit)
	return ok
}

// output is do, and returns what the command printed.
func (v *visitor) output(ctx context.Context, what, dir, command string, limit time.Duration) (printed string, ok bool) {
	if ctx.Err() != nil {
		return "", false
	}
	begun := time.Now()
	cmd := exec.CommandContext(ctx, "timeout", "-k", "10", fmt.Sprint(limit.Seconds()), "bash", "-uo", "pipefail", "-c", command)
	cmd.Dir, cmd.Env = dir, v.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends what it started
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	took := time.Since(begun).Round(100 * time.Millisecond)
	if err != nil {
		v.errs = append(v.errs, fmt.Errorf("%s: %s: %w", what, command, err))
		fmt.Printf("FAIL %s: %s (%v): %v\n%s\n", what, command, took, err, &out)
		return "", false
	}
	fmt.Printf("ok   %s: %s (%v)\n", what, command, took)
	return out.String(), true
}

// skip tells what is not run, and why.
func (v *visitor) skip(p pages.Piece, why string) {
	v.not++
	first, _, _ := strings.Cut(p.Text, " # needs ")
	if p.Kind != "sh" {
		first = "a block of " + p.Kind
	}
	fmt.Printf("NOTE: not run: %s:%d: %s: %s\n", p.Path, p.Line, first, why)
}

func (v *visitor) must(err error) {
	if err != nil {
		v.errs = append(v.errs, err)
	}
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// reader reads files as a host would.
const reader = `package main

import (
	"log"
	"os"
	"strings"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/files"
)

func main() {
	for _, path := range os.Args[1:] {
		var err error
		if strings.HasSuffix(path, ".yaml") {
			_, err = files.LoadRules(path)
		} else {
			_, err = mcphybrid.LoadConfig(path)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
`
