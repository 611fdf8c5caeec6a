package mcphybrid_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/visitor/pages"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// problems returns the compiler's errors for p, one line each.
func problems(p pages.Piece, imports types.ImporterFrom, fset *token.FileSet) (list []string) {
	sources := map[string]string{"block.go": p.File()}
	if !p.Whole() {
		sources["host.go"] = pages.Host
	}
	var files []*ast.File
	for name, source := range sources {
		file, err := parser.ParseFile(fset, name, source, 0)
		if errs := (scanner.ErrorList)(nil); errors.As(err, &errs) {
			for _, e := range errs {
				list = append(list, e.Error())
			}
		}
		files = append(files, file)
	}
	if list != nil {
		return list
	}
	config := types.Config{Importer: imports, Error: func(err error) { list = append(list, err.Error()) }}
	_, _ = config.Check("host", fset, files, nil) // reported to Error
	return list
}

// docImporter imports what the code may use, and their dependencies from the go command's
// build cache.
func docImporter(t *testing.T, fset *token.FileSet) types.ImporterFrom {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}")
	cmd.Args = append(cmd.Args, slices.Sorted(maps.Values(pages.Imports))...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	compiled := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		compiled[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if compiled[path] == "" {
			return nil, fmt.Errorf("no compiled package %q", path)
		}
		return os.Open(compiled[path])
	}).(types.ImporterFrom)
}

// documents returns the README and the pages of words that it links to, by path.
func documents(t *testing.T) map[string]string {
	paths, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	texts := make(map[string]string)
	for _, path := range append(paths, "README.md", "SECURITY.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[filepath.ToSlash(path)] = string(text)
	}
	return texts
}

// The code in the README and in docs/ compiles as it is.
func TestDocumentedCodeCompiles(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	imports := docImporter(t, fset)
	for path, text := range documents(t) {
		pieces, err := pages.Read(path, text)
		require.NoError(t, err)
		for _, p := range pieces {
			if p.Kind == "go" && p.Needs == "" {
				for _, problem := range problems(p, imports, fset) {
					t.Error(problem)
				}
			}
		}
	}
}

// So does the loop in the documentation of the package.
func TestPackageDocumentationCompiles(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var parser comment.Parser
	loops := 0
	for _, block := range parser.Parse(file.Doc.Text()).Content {
		code, ok := block.(*comment.Code)
		if !ok || !strings.Contains(code.Text, ":=") {
			continue
		}
		loops++
		assert.Empty(t, problems(pages.Piece{Path: "doc.go", Line: 1, Kind: "go", Text: code.Text}, docImporter(t, fset), fset))
	}
	assert.Equal(t, 1, loops)
}

// The tests above fail for code that does not compile.
func TestDocumentedCodeIsChecked(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	imports := docImporter(t, fset)
	for code, want := range map[string]string{
		"log.Print(sess.Tools())":            "",
		"log.Print(nobody)":                  "X.md:3:11: undefined: nobody",
		"n := 1":                             "X.md:3:1: declared and not used: n",
		"sess.Forget()":                      "X.md:3:6: sess.Forget undefined (type *mcphybrid.Session has no field or method Forget)",
		"opts.Inline.Max = \"40\"":           "X.md:3:19: cannot use \"40\" (untyped string constant) as int value in assignment",
		"res := sess.Call(ctx, \"x\", \"\")": "X.md:3:8: assignment mismatch: 1 variable but sess.Call returns 2 values",
		"for {":                              "X.md:4:3: expected '}', found 'EOF'",
		"…":                                  "X.md:3:1: illegal character U+2026 '…'",
	} {
		pieces, err := pages.Read("X.md", "text\n```go\n"+code+"\n```\n")
		require.NoError(t, err)
		require.Len(t, pieces, 1)
		got := append(problems(pieces[0], imports, fset), "")[0]
		assert.Equal(t, want, got, code)
	}
}

// Links between documents have targets, headings included.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "skills/*/*.md", "*/*/README.md", "*/README.md", "config/*.md", "search/*.md"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, paths...)
	}
	assert.Greater(t, len(all), 30)
	for _, from := range all {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(m[1], "#")
			to := filepath.Join(filepath.Dir(from), filepath.FromSlash(path))
			if path == "" {
				to = from
			}
			info, err := os.Stat(to)
			if !assert.NoError(t, err, "%s: %s", from, m[1]) || heading == "" || info.IsDir() {
				continue
			}
			target, err := os.ReadFile(to)
			require.NoError(t, err)
			var anchors []string
			for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(target), -1) {
				anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
				anchors = append(anchors, strings.ReplaceAll(anchor, " ", "-"))
			}
			assert.Contains(t, anchors, heading, "%s: %s", from, m[1])
		}
	}
}
