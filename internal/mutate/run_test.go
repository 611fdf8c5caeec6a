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

func Tested(a int) bool { return a < 3 }

func Thin(a int) bool { return a > 3 }

func Untested(a int) bool { return a >= 3 }

func Endless(n int) (sum int) {
	for i := 0; i != n; i++ {
		sum = i
	}
	return sum
}

func Words(a, b string) string { return a + b }
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
	if Endless(1) != 0 || Words("a", "b") != "ab" {
		t.Error("not right")
	}
}
`,
	"bare/bare.go": "package bare\n\nfunc F(a int) bool { return a < 3 }\n",
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
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	t.Setenv("GOCACHE", goCache)
}

var goCache = func() string {
	dir, err := os.UserCacheDir()
	if err != nil || os.Getenv("GOCACHE") != "" {
		return os.Getenv("GOCACHE")
	}
	return filepath.Join(dir, "go-build")
}()

// tree returns a hash of each file below the current folder.
func tree(t *testing.T) string {
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

// What the table says of each mutant is so, with all tests and with those that reach it,
// and the tree stays as it is.
func TestRun(t *testing.T) {
	enter(t)
	before := tree(t)
	for _, quick := range []string{"1h", "0s", "0s"} { // the last finds what the one before has kept
		var out bytes.Buffer
		code, err := run(t.Context(), []string{"-n", "100", "-jobs", "2", "-quick", quick, "-kinds", "boundary,arithmetic", "-least", "20", "./..."}, &out)
		require.NoError(t, err)
		assert.Zero(t, code)
		said := seconds.ReplaceAllString(out.String(), "")
		untested := "survived   boundary  made.go:7:38"
		if quick != "1h" {
			untested = "unreached  boundary  made.go:7:38"
		}
		for _, want := range []string{
			"example.com/made/bare has no tests\n",
			"caught     boundary  made.go:3:36\n    - func Tested(a int) bool { return a < 3 }\n    + func Tested(a int) bool { return a <= 3 }\n",
			"survived   boundary  made.go:5:34\n", untested + "\n",
			"no code    arithmetic  made.go:16:43\n    - func Words(a, b string) string { return a + b }\n    + func Words(a, b string) string { return a - b }\n",
			"seed 1: 4 mutants, 3 compile, 1 caught (0 by time), 2 survived (" + map[bool]string{true: "0", false: "1"}[quick == "1h"] + " unreached): 33.3 %\n",
		} {
			assert.Contains(t, said, want)
		}
		assert.Equal(t, before, tree(t))
	}
	code, err := run(t.Context(), []string{"-n", "100", "-kinds", "boundary", "-least", "34", "."}, new(bytes.Buffer))
	require.NoError(t, err)
	assert.Equal(t, 1, code)
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
	code, err := run(t.Context(), []string{"."}, new(bytes.Buffer))
	assert.ErrorContains(t, err, "the tests of example.com/made fail without any change")
	assert.ErrorContains(t, err, "always")
	assert.Equal(t, 2, code)
}

// A test program that has no end is stopped, and its mutant counts as caught.
func TestRunEnds(t *testing.T) {
	enter(t)
	var out bytes.Buffer
	_, err := run(t.Context(), []string{"-kinds", "statement", "-grace", "100ms", "."}, &out)
	require.NoError(t, err)
	said := seconds.ReplaceAllString(out.String(), "")
	assert.Contains(t, said, "too slow   statement  made.go:10:22\n    - for i := 0; i != n; i++ {\n    + for i := 0; i != n; _ = i {\n")
	assert.Contains(t, said, "2 mutants, 2 compile, 1 caught (1 by time), 1 survived")
}

// Constants are in no function, so a sample may have all of them.
func TestSampleOfConstants(t *testing.T) {
	t.Parallel()
	p := new(pkg)
	for i := range 2 * maxOfFunction {
		p.mutants = append(p.mutants, mutant{file: "/m/a.go", at: position{i + 1, 1}}, mutant{file: "/m/a.go", function: "f", at: position{i + 10, 1}})
	}
	for n, want := range map[int]int{0: 0, 1: 1, 3 * maxOfFunction: 3 * maxOfFunction, 3*maxOfFunction + 1: 3 * maxOfFunction} {
		assert.Len(t, sample([]*pkg{p}, choice{}, n, 7), want, "%d", n)
	}
}

// A file that is gone is an error, not a mutant that survived.
func TestFileThatIsGone(t *testing.T) {
	t.Parallel()
	gone := mutant{file: filepath.Join(t.TempDir(), "gone.go")}
	assert.ErrorIs(t, show(new(bytes.Buffer), gone, outcome{what: caught}), fs.ErrNotExist)
	_, err := (&runner{scratch: t.TempDir()}).try(t.Context(), 0, chosen{new(pkg), gone})
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	assert.Equal(t, 0, report(&out, []outcome{{what: caught}, {what: late}, {what: survived}, {what: unasked}, {what: broken}}, 3, 50))
	assert.Equal(t, "seed 3: 5 mutants, 4 compile, 2 caught (1 by time), 2 survived (1 unreached): 50.0 %\n", out.String())
	assert.Equal(t, 1, report(&out, []outcome{{what: survived}}, 3, 1))
	assert.Equal(t, 0, report(&out, []outcome{{what: broken}}, 3, 100), "there is nothing to catch")
}

func TestReach(t *testing.T) {
	t.Parallel()
	r := &reach{Tests: []string{"TestA", "TestB"}, Took: []time.Duration{1, 2}, Blocks: make(map[string][]block)}
	require.NoError(t, r.add(0, []byte("mode: set\np/f.go:3.10,5.2 1 1\np/f.go:5.2,9.2 1 0\n")))
	require.NoError(t, r.add(1, []byte("mode: set\np/f.go:3.10,5.2 1 1\np/f.go:5.2,9.2 1 1\n")))
	require.NoError(t, r.add(1, nil))
	assert.Error(t, r.add(1, []byte("p/f.go:what\n")))
	for _, test := range []struct {
		at   position
		want []string
	}{
		{position{3, 10}, []string{"TestA", "TestB"}}, {position{5, 1}, []string{"TestA", "TestB"}},
		{position{5, 2}, []string{"TestB"}}, {position{9, 1}, []string{"TestB"}},
		{position{9, 2}, []string{"TestA", "TestB"}}, // in no block: those of the function
	} {
		tests, took := r.testsOf("p/f.go", mutant{at: test.at, in: position{3, 10}})
		assert.Equal(t, test.want, tests, "%v", test.at)
		assert.EqualValues(t, map[int]int{1: 2, 2: 3}[len(tests)], took, "%v", test.at)
	}
	for name, m := range map[string]mutant{"f.go": {at: position{1, 1}}, "other.go": {at: position{3, 10}, in: position{3, 10}}} {
		tests, took := r.testsOf("p/"+name, m)
		assert.Equal(t, r.Tests, tests, "a constant, or code that is not known")
		assert.EqualValues(t, 3, took)
	}
}
