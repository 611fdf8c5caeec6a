package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const head = "# A page\n\n" + header + "\n|---|---|---|\n"

// This package is its own example: main.go uses the others.
func TestCheck(t *testing.T) {
	t.Parallel()
	uses, err := usesOf(".")
	require.NoError(t, err)
	assert.Contains(t, uses, use{"main.go", "layers.go", "check"}, "a method")
	assert.Contains(t, uses, use{"layers.go", "uses.go", "name"}, "a field")
	assert.Contains(t, uses, use{"main.go", "uses.go", "usesOf"})

	for table, want := range map[string][]string{
		"| low | `uses.go` | a |\n| low | `layers.go` | b |\n| high | `main.go` | c |\n\n`more.go` is in the text.": nil,
		"| all | `main.go` `layers.go` `uses.go` | a |":                                                             nil,
		"| low | `main.go` | a |\n| high | `layers.go` `uses.go` | b |": {
			"main.go (low) uses check of layers.go (high)", "main.go (low) uses parse of layers.go (high)", "main.go (low) uses usesOf of uses.go (high)",
		},
		"| low | `uses.go` `gone.go` | a |\n| high | `main.go` | b |": {"layers.go is in no layer", "gone.go is in the table, and is no file"},
	} {
		ls, err := parse(head + table + "\n")
		require.NoError(t, err)
		wrong, err := ls.check(uses, ".")
		require.NoError(t, err)
		assert.Equal(t, want, wrong, table)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"# A page\n":                     `ARCHITECTURE.md has no table that begins with "| layer | files | decide |"`,
		head + "| a | `x.go` `x.go` | |": "x.go is in two layers",
		head + "| a | `x.go` | |\n| b | `y.go` | |\n| a | `z.go` | |": `the layer "a" is in two places`,
	} {
		_, err := parse(page)
		assert.EqualError(t, err, want)
	}
}

// What can't be read or compiled is an error, and nothing else ends with 0.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	check := func(code int, said, problem string) {
		t.Helper()
		var out bytes.Buffer
		got, err := run(dir, &out)
		assert.Equal(t, code, got)
		assert.Equal(t, said, out.String())
		if problem == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, problem)
		}
	}
	check(2, "", "ARCHITECTURE.md")
	write("ARCHITECTURE.md", "# A page\n")
	check(2, "", "has no table")
	write("ARCHITECTURE.md", head+"| low | `a.go` | a |\n| high | `b.go` | b |\n")
	check(2, "", "go list")
	write("go.mod", "module example.com/made\n\ngo 1.26\n")
	write("b.go", "package made\n\ntype B struct{}\n\nfunc b() { a() }\n")
	write("a.go", "package made\n\nfunc a() {}\n")
	check(0, "", "")
	write("a.go", "package made\n\nfunc a() { var _ B; b() }\n")
	check(1, "a.go (low) uses B of b.go (high)\na.go (low) uses b of b.go (high)\n", "")
	write("c.go", "package made\n")
	check(1, "c.go is in no layer\na.go (low) uses B of b.go (high)\na.go (low) uses b of b.go (high)\n", "")
	write("a.go", "package made\n\nfunc a() { none() }\n")
	check(2, "", "go list")
	write("a.go", "package")
	check(2, "", "go list")
}

// The real table is in order, and a use that goes up is found in it.
func TestRoot(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	require.NoError(t, err)
	ls, err := parse(string(page))
	require.NoError(t, err)
	assert.Equal(t, []string{"catalog", "session", "manager"}, ls.names)
	wrong, err := ls.check([]use{{"catalog.go", "manager.go", "Manager"}, {"manager.go", "catalog.go", "catalog"}}, "../..")
	require.NoError(t, err)
	assert.Equal(t, []string{"catalog.go (catalog) uses Manager of manager.go (manager)"}, wrong)
}
