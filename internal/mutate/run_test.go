package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made is a module whose tests see some mutants and not others.
var made = map[string]string{
	"go.mod": "module example.com/made\n\ngo 1.26\n",
	"made.go": `package made

import "example.com/made/low"

func Tested(a int) bool { return a < 3 }

func Thin(a int) bool { return a > 3 }

func Untested(a int) bool { return a >= 3 }

func Endless(n int) (sum int) {
	for i := 0; i != n; {
		i++
	}
	return sum
}

func Far(a int) bool { return low.Far(a) }

func Chosen(a int) string {
	switch a {
	case 1:
		return "one"
	default:
		return "more"
	}
}

var kinds = [...]string{1: "one"}

var wide uint8 = 255

var narrow uint8 = 254
`,
	"made_test.go": `package made

import "testing"

func TestTested(t *testing.T) {
	if !Tested(2) || Tested(3) {
		t.Error("not right")
	}
}

func TestThin(t *testing.T) { Thin(4) }

func TestRest(t *testing.T) {
	if Endless(1) != 0 || Far(3) || Chosen(1) != "one" || Chosen(2) != "more" || kinds[1] != "one" || wide != 255 || narrow != 254 {
		t.Error("not right")
	}
}
`,
	"low/low.go":      "package low\n\nfunc Far(a int) bool { return a < 3 }\n\nfunc Near(a int) bool { return a < 3 }\n",
	"low/low_test.go": "package low\n\nimport \"testing\"\n\nfunc TestNear(t *testing.T) { Near(1) }\n",
	"bare/bare.go":    "package bare\n\nfunc F(a int) bool { return a < 3 }\n",
}

// enter makes the module and goes there.
func enter(t *testing.T) {
	dir := t.TempDir()
	for name, text := range made {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	t.Chdir(dir)
}

// hashes returns one of each file below the current folder.
func hashes(t *testing.T) string {
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256(data))
		return err
	}))
	return all.String()
}

var seconds = regexp.MustCompile(` +\d+\.\d s`)

// said runs mutate in the current folder.
func said(t *testing.T, args ...string) (out string, code int) {
	var w bytes.Buffer
	code, err := run(t.Context(), args, &w)
	require.NoError(t, err, w.String())
	return seconds.ReplaceAllString(w.String(), ""), code
}

// What the table says of each mutant is so: tests of its own package see it, or those of another,
// or none. The tree stays as it is.
func TestRun(t *testing.T) {
	enter(t)
	before := hashes(t)
	out, code := said(t, "-n", "100", "-jobs", "2", "-kinds", "boundary", "-least", "40", "./...")
	assert.Zero(t, code)
	assert.Equal(t, `example.com/made/bare has no tests
which of 18 mutants do 4 tests reach?
caught     boundary  low/low.go:3:33
    - func Far(a int) bool { return a < 3 }
    + func Far(a int) bool { return a <= 3 }
survived   boundary  low/low.go:5:34
    - func Near(a int) bool { return a < 3 }
    + func Near(a int) bool { return a <= 3 }
caught     boundary  made.go:5:36
    - func Tested(a int) bool { return a < 3 }
    + func Tested(a int) bool { return a <= 3 }
survived   boundary  made.go:7:34
    - func Thin(a int) bool { return a > 3 }
    + func Thin(a int) bool { return a >= 3 }
unreached  boundary  made.go:9:38
    - func Untested(a int) bool { return a >= 3 }
    + func Untested(a int) bool { return a > 3 }
seed 1: 5 mutants, 2 caught (0 by time), 3 survived (1 unreached): 40.0 %
`, out)
	assert.Equal(t, before, hashes(t))

	t.Chdir("low") // its own tests alone do not see it
	out, code = said(t, "-n", "100", "-at", "low.go:3:33", "-least", "1", ".")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "unreached  boundary  low/low.go:3:33\n")
}

// What does not compile is left out: a case that a function needs to return, and a number that
// its type can't hold.
func TestRunLeavesOut(t *testing.T) {
	enter(t)
	out, _ := said(t, "-n", "100", "-kinds", "case,number", ".")
	assert.NotContains(t, out, "  case  ")
	assert.NotContains(t, out, "made.go:31:18")
	assert.Contains(t, out, "caught     number  made.go:33:20\n")
}

func TestRunRefuses(t *testing.T) {
	enter(t)
	for _, test := range []struct{ args, want string }{
		{"", "at least"}, {"-jobs 0 .", "at least"}, {"-n -1 .", "at least"}, {"-x .", "not defined"}, {"./none", "none"},
	} {
		code, err := run(t.Context(), strings.Fields(test.args), new(bytes.Buffer))
		assert.ErrorContains(t, err, test.want, test.args)
		assert.Equal(t, 2, code)
	}
	require.NoError(t, os.WriteFile("bad_test.go", []byte("package made\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"always\") }\n"), 0o600))
	out, code := said(t, "-n", "0", ".")
	assert.Zero(t, code)
	assert.Contains(t, out, "example.com/made TestBad fails without any change, and is left out: exit status 1: --- FAIL: TestBad")
}

// A test program that has no end is stopped, and its mutant counts as caught.
func TestRunEnds(t *testing.T) {
	enter(t)
	patience = time.Second
	t.Cleanup(func() { patience = 10 * time.Second })
	out, _ := said(t, "-kinds", "statement", ".")
	assert.Contains(t, out, "too slow   statement  made.go:13:3\n    - i++\n    + \n")
	assert.Contains(t, out, "1 mutants, 1 caught (1 by time), 0 survived")
}

// Constants are in no function, so a sample may have all of them.
func TestSample(t *testing.T) {
	t.Parallel()
	var all []*mutant
	for i := range 2 * maxOfFunction {
		all = append(all, &mutant{file: "a.go", id: 2 * i}, &mutant{file: "a.go", function: "f", id: 2*i + 1}, &mutant{broken: true})
	}
	for n, want := range map[int]int{0: 0, 1: 1, 3 * maxOfFunction: 3 * maxOfFunction, 3*maxOfFunction + 1: 3 * maxOfFunction} {
		assert.Len(t, sample(all, choice{}, n, 7), want, "%d", n)
	}
	assert.Equal(t, sample(all, choice{}, 3, 7), sample(all, choice{}, 3, 7))
	assert.NotEqual(t, sample(all, choice{}, 3, 7), sample(all, choice{}, 3, 8))
}

// The quickest tests of a package run until its time is up.
func TestAskedTests(t *testing.T) {
	t.Parallel()
	own, other := new(pkg), new(pkg)
	a, b, c := &test{pkg: other}, &test{pkg: own}, &test{pkg: other}
	assert.Equal(t, [][]*test{{b}, {a, c}}, byPackage([]*test{a, b, c}, own))
	assert.Equal(t, [][]*test{nil, {a}}, byPackage([]*test{a}, own))
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	assert.Equal(t, 0, report(&out, []outcome{{what: caught}, {what: late}, {what: survived}, {what: unasked}}, 3, 50))
	assert.Equal(t, "seed 3: 4 mutants, 2 caught (1 by time), 2 survived (1 unreached): 50.0 %\n", out.String())
	assert.Equal(t, 1, report(&out, []outcome{{what: survived}}, 3, 1))
	assert.Equal(t, 0, report(&out, nil, 3, 100), "there is nothing to catch")
}
