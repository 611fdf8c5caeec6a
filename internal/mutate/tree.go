package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcphybrid/mcphybrid/internal/mutate/change"
)

//go:embed change/change.go
var changeSource []byte

// A tree is a copy of the module. Its code has all mutants of some packages, each behind a
// switch, so that all are compiled at once.
type tree struct {
	dir    string // of the copy
	module string // its path
	below  string // the current folder, below the module's
	pkgs   []*pkg // those with mutants and tests
	all    []*mutant
}

// A pkg is a package whose code is changed.
type pkg struct {
	Dir, ImportPath           string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	Export                    string
	DepOnly                   bool
	Module                    *struct {
		Path, Dir string
		Main      bool
	}

	files []file
}

type file struct {
	path   string
	source []byte
	name   int // where the package's name ends
	places []*place
}

// goCommand runs go in the folder that the copy has for the current one.
func (t *tree) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = filepath.Join(t.dir, t.below)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("go %s: %w: %s%s", args[0], err, out, &said)
	}
	return out, nil
}

// newTree copies the module of the current folder to dir, and weaves the mutants of the named
// packages into the copy.
func newTree(ctx context.Context, dir string, patterns []string, log io.Writer) (*tree, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("no module here: %w", err)
	}
	from := strings.TrimSpace(string(root))
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir}
	if t.below, err = filepath.Rel(from, here); err != nil {
		return nil, err
	}
	if err := copyTree(dir, from); err != nil {
		return nil, err
	}
	if err := t.list(ctx, patterns, log); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "change_"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "change_", "change.go"), changeSource, 0o600); err != nil {
		return nil, err
	}
	return t, t.compile(ctx)
}

// copyTree copies all files but those of a repository.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		switch {
		case d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, below), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, below), data, info.Mode().Perm()|0o200)
	})
}

// list finds the packages and their mutants.
func (t *tree) list(ctx context.Context, patterns []string, log io.Writer) error {
	out, err := t.goCommand(ctx, append([]string{"list", "-export", "-deps",
		"-json=Dir,ImportPath,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly,Module", "--"}, patterns...)...)
	if err != nil {
		return err
	}
	exports := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		p := new(pkg)
		if err := decoder.Decode(p); err != nil {
			return err
		}
		exports[p.ImportPath] = p.Export
		switch {
		case p.DepOnly || p.Module == nil || !p.Module.Main:
		case len(p.TestGoFiles)+len(p.XTestGoFiles) == 0:
			fmt.Fprintf(log, "%s has no tests\n", p.ImportPath)
		default:
			t.module = p.Module.Path
			t.pkgs = append(t.pkgs, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range t.pkgs {
		if err := t.find(p, fset, imports); err != nil {
			return err
		}
	}
	if len(t.all) > change.Most {
		return fmt.Errorf("%d mutants, and %d at most: name fewer packages", len(t.all), change.Most)
	}
	return nil
}

// find finds the mutants of a package.
func (t *tree) find(p *pkg, fset *token.FileSet, imports types.Importer) error {
	var trees []*ast.File
	for _, name := range p.GoFiles {
		f := file{path: filepath.Join(p.Dir, name)}
		var err error
		if f.source, err = os.ReadFile(f.path); err != nil {
			return err
		}
		parsed, err := parser.ParseFile(fset, f.path, f.source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f.name = fset.Position(parsed.Name.End()).Offset
		trees, p.files = append(trees, parsed), append(p.files, f)
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	own, err := (&types.Config{Importer: imports}).Check(p.ImportPath, fset, trees, info)
	if err != nil {
		return err
	}
	for i := range p.files {
		f := &p.files[i]
		name, err := filepath.Rel(t.dir, f.path)
		if err != nil {
			return err
		}
		found := &finder{fset: fset, tree: trees[i], name: filepath.ToSlash(name), source: f.source, info: info, own: own}
		f.places = found.find()
		for _, place := range f.places {
			for _, m := range place.mutants {
				m.pkg, m.id = p, len(t.all)
				t.all = append(t.all, m)
			}
		}
	}
	return nil
}

// compile compiles the packages with all mutants, without those that do not compile.
func (t *tree) compile(ctx context.Context) error {
	for {
		names := []string{"build", "-gcflags=-e"}
		for _, p := range t.pkgs {
			names = append(names, p.ImportPath)
			for _, f := range p.files {
				if err := os.WriteFile(f.path, weave(f.source, f.name, path.Join(t.module, "change_"), f.places), 0o600); err != nil {
					return err
				}
			}
		}
		_, err := t.goCommand(ctx, names...)
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !t.leaveOut(err.Error()) {
			return err
		}
	}
}

// complaint is what the compiler says of a line.
var complaint = regexp.MustCompile(`(?m)^(?:\./)?(\S+\.go):(\d+):(?:\d+:)? (.*)$`)

// leaveOut marks the mutants of which the compiler complains, and reports whether there are any.
func (t *tree) leaveOut(said string) (some bool) {
	for _, c := range complaint.FindAllStringSubmatch(said, -1) {
		name := filepath.ToSlash(filepath.Join(t.below, c[1]))
		line, _ := strconv.Atoi(c[2])
		noReturn := strings.Contains(c[3], "missing return")
		for _, p := range t.pkgs {
			for _, f := range p.files {
				for _, place := range f.places {
					m := place.mutants[0]
					if m.file == name && !place.broken() && (m.line == line || noReturn && m.kind == "case" && place.end == line) {
						m.broken, some = true, true
					}
				}
			}
		}
	}
	return some
}
