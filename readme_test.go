package mcphybrid_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
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
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostDeclarations are declarations that the code of the README and of docs/
// relies on: what every host has, and the README's own mgr and sess. The README
// lists them above its first code.
const hostDeclarations = `package host

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
)

var (
	ctx      context.Context
	base     string    // the host's own system prompt
	messages []Message // the conversation so far
	message  string    // the user's last one
	model    Model     // the client of a model provider

	cfg  *mcphybrid.Config
	opts mcphybrid.Options
	mgr  *mcphybrid.Manager
	sess *mcphybrid.Session
)

type (
	Message struct{}

	ToolCall struct{ ID, Name, Arguments string }

	Reply struct {
		Message   Message
		ToolCalls []ToolCall
	}

	Model struct{}
)

func (Model) Chat(system string, messages []Message, tools []mcphybrid.Tool) Reply { return Reply{} }

// toolResult returns the message that answers a call.
func toolResult(call ToolCall, res *mcp.CallToolResult) Message { return Message{} }
`

// docImports are the packages that the code may use, by name. An import clause
// would be noise in each block.
var docImports = map[string]string{
	"ask":       "github.com/mcphybrid/mcphybrid/ask",
	"context":   "context",
	"errors":    "errors",
	"fmt":       "fmt",
	"http":      "net/http",
	"log":       "log",
	"mcp":       "github.com/mark3labs/mcp-go/mcp",
	"server":    "github.com/mark3labs/mcp-go/server",
	"slog":      "log/slog",
	"time":      "time",
	"search":    "github.com/mcphybrid/mcphybrid/search",
	"shared":    "github.com/mcphybrid/mcphybrid/shared",
	"vector":    "github.com/mcphybrid/mcphybrid/vector",
	"debug":     "github.com/mcphybrid/mcphybrid/debug",
	"mcphybrid": "github.com/mcphybrid/mcphybrid",
	"toml":      "github.com/mcphybrid/mcphybrid/toml",
	"files":     "github.com/mcphybrid/mcphybrid/files",
}

// A docBlock is one fenced block of Go in a document.
type docBlock struct {
	path string
	line int // of its first line of code, from 1
	code string
}

func docBlocks(path, text string) (blocks []docBlock) {
	var b *docBlock
	for i, line := range strings.Split(text, "\n") {
		switch {
		case b == nil && line == "```go":
			b = &docBlock{path: path, line: i + 2}
		case b != nil && line == "```":
			blocks, b = append(blocks, *b), nil
		case b != nil:
			b.code += line + "\n"
		}
	}
	return blocks
}

// whole reports whether b is a program, and not a part of one.
func (b docBlock) whole() bool { return strings.HasPrefix(b.code, "package ") }

// program returns b as the body of a function, in a file that imports what b
// uses, unless it is a whole program. Errors have the places of the document.
func (b docBlock) program() string {
	if b.whole() {
		return fmt.Sprintf("//line %s:%d:1\n%s", b.path, b.line, b.code)
	}
	body := fmt.Sprintf("func _() {\n//line %s:%d:1\n%s}\n", b.path, b.line, b.code)
	file, _ := parser.ParseFile(token.NewFileSet(), "", "package host\n"+body, 0)
	used := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && docImports[x.Name] != "" {
				used[x.Name] = true
			}
		}
		return true
	})
	var clause strings.Builder
	for _, name := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&clause, "import %s %q\n", name, docImports[name])
	}
	return "package host\n" + clause.String() + body
}

// problems returns the compiler's errors for b, one line each.
func (b docBlock) problems(imports types.ImporterFrom, fset *token.FileSet) (list []string) {
	sources := map[string]string{"block.go": b.program()}
	if !b.whole() {
		sources["host.go"] = hostDeclarations
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

// docImporter imports docImports and their dependencies from the go command's
// build cache.
func docImporter(t *testing.T, fset *token.FileSet) types.ImporterFrom {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}")
	cmd.Args = append(cmd.Args, slices.Sorted(maps.Values(docImports))...)
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
		blocks := docBlocks(path, text)
		assert.Equal(t, strings.Count(text, "```go\n"), len(blocks), "%s: a block does not end", path)
		if path == "README.md" {
			assert.Len(t, blocks, 2, path)
		}
		for _, b := range blocks {
			for _, problem := range b.problems(imports, fset) {
				t.Error(problem)
			}
		}
	}
}

// The test above fails for code that does not compile.
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
		blocks := docBlocks("X.md", "text\n```go\n"+code+"\n```\n")
		require.Len(t, blocks, 1)
		got := append(blocks[0].problems(imports, fset), "")[0]
		assert.Equal(t, want, got, code)
	}
}

// CI runs the README's commands, which it finds by their indentation.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	text := documents(t)["README.md"]
	assert.Equal(t, []string{"    go run ./examples/quickstart", "    go test ./..."},
		regexp.MustCompile(`(?m)^    go (run|test).*`).FindAllString(text, -1))
}

// Links between documents have targets, headings included.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	for from, text := range documents(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
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

// docs/options.md has each option and no others.
func TestOptionsAreDocumented(t *testing.T) {
	t.Parallel()
	var want, got []string
	options := reflect.TypeFor[mcphybrid.Options]()
	for i := range options.NumField() {
		f := options.Field(i)
		if f.Type.Kind() != reflect.Struct || f.Name == "Access" || f.Name == "Cache" {
			want = append(want, f.Name)
			continue
		}
		for i := range f.Type.NumField() {
			want = append(want, f.Name+"."+f.Type.Field(i).Name)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(documents(t)["docs/options.md"], -1) {
		for _, name := range regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, name[1])
		}
	}
	assert.ElementsMatch(t, want, got)
}
