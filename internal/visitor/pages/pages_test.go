package pages

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	t.Parallel()
	pieces, err := Read("p.md", "# Title\n\n    go get example.com/x\n    go run ./a # needs a key\n\nRun `go run\n./b -q \"x y\"`, not `go`, or "+
		"`go -C c run . FILE`:\n\n```sh\ngo test ./...\n\n./script 1\n```\n\n```go\n// needs a database\nn := 1\n\nm := 2\n```\n```text\nno code\n```\n```yaml\na: 1\n```\n")
	require.NoError(t, err)
	assert.Equal(t, []Piece{
		{"p.md", 3, "sh", "go get example.com/x", "", "", ""},
		{"p.md", 4, "sh", "go run ./a # needs a key", "a key", "", ""},
		{"p.md", 6, "sh", `go run ./b -q "x y"`, "", "", ""},
		{"p.md", 7, "sh", "go -C c run . FILE", "the reader's FILE", "", ""},
		{"p.md", 10, "sh", "go test ./...", "", "", ""},
		{"p.md", 12, "sh", "./script 1", "", "", ""},
		{"p.md", 16, "go", "// needs a database\nn := 1\n\nm := 2\n", "a database", "", ""},
		{"p.md", 25, "yaml", "a: 1\n", "", "", ""},
	}, pieces)
}

// A page that is followed from top to bottom says which files its reader makes, and what
// commands print.
func TestReadSteps(t *testing.T) {
	t.Parallel()
	pieces, err := Read("p.md", "```go a/main.go\npackage main\n```\n```text\nno command\n```\n```sh\na\nb\n```\nIt prints:\n```text\none\ntwo … four\n```\n"+
		"```text\nmore\n```\n```sh\nc\n```\nOr `go run .`.\n```text\nof nothing\n```\n")
	require.NoError(t, err)
	assert.Equal(t, []Piece{
		{"p.md", 2, "go", "package main\n", "", "a/main.go", ""},
		{"p.md", 8, "sh", "a", "", "", ""},
		{"p.md", 9, "sh", "b", "", "", "one\ntwo … four\n"},
		{"p.md", 20, "sh", "c", "", "", ""},
		{"p.md", 22, "sh", "go run .", "", "", ""},
	}, pieces)
	p := pieces[2]
	assert.NoError(t, p.Prints("zero\none\r\nbetween\ntwo three four\n"))
	assert.NoError(t, pieces[1].Prints(""))
	assert.ErrorContains(t, p.Prints("two three four\none\n"), `p.md:9: it does not print "two … four"`)
	assert.ErrorContains(t, p.Prints("one\ntwo three\n"), `"two … four"`)
	assert.ErrorContains(t, p.Prints("and one\ntwo three four\n"), `"one"`)
}

// What does not say what it is could be left out, and nobody would know.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"```\nx\n```\n":            "p.md:1: a fence must be one of",
		"```python\nx\n```\n":      "p.md:1: a fence must be one of",
		"a\n\n```go\nx\n":          "p.md:3: a fence must be one of",
		"- a\n  ```go\n  x\n  ```": "p.md:2: a fence must begin its line",
		"a\n\n    x := 1\n":        "p.md:3: only commands are indented",
		"a\n\n    go run .\n    x": "p.md:4: only commands are indented",
	} {
		_, err := Read("p.md", text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	part := Piece{Path: "p.md", Line: 7, Kind: "go", Text: "log.Print(mcp.Tool{})\n"}
	assert.False(t, part.Whole())
	assert.Equal(t, "package host\nimport log \"log\"\nimport mcp \"github.com/mark3labs/mcp-go/mcp\"\nfunc _() {\n//line p.md:7:1\nlog.Print(mcp.Tool{})\n}\n", part.File())
	program := Piece{Path: "p.md", Line: 7, Kind: "go", Text: "// P does it.\npackage main\n"}
	assert.True(t, program.Whole())
	assert.Equal(t, "//line p.md:7:1\n// P does it.\npackage main\n", program.File())
}
