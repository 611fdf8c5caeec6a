package main

import (
	"fmt"
	"go/format"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each small source has exactly these mutants.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body string // of func f(a, b int, s []int) (int, error)
		want []string
	}{
		{"_ = a < b", []string{"boundary: _ = a <= b"}},
		{"_ = a <= b", []string{"boundary: _ = a < b"}},
		{"_ = a > b", []string{"boundary: _ = a >= b"}},
		{"_ = a >= b", []string{"boundary: _ = a > b"}},
		{"_ = a == b", []string{"equality: _ = a != b"}},
		{"_ = a + b", []string{"arithmetic: _ = a - b"}},
		{`_ = "a" + g() + "b"`, nil},
		{"_ = p && q", []string{"operand: _ = p", "operand: _ = q", "logic: _ = p || q"}},
		{"if p { g() }", []string{"negate: if !(p) { g() }", "branch: if false && (p) { g() }", "statement: if p { _ = g }"}},
		{"if err != nil { return }", []string{
			"negate: if !(err != nil) { return }", "error: if false && (err != nil) { return }", "equality: if err == nil { return }",
		}},
		{"x.g(a)", []string{"statement: _ = x.g"}},
		{"defer x.Unlock()", []string{"statement: _ = x.Unlock"}},
		{"delete(m, a)", []string{"statement: _, _ = m, a"}},
		{`panic("a")`, nil},
		{"a = b", []string{"statement: _ = b"}},
		{"a, b = g()", []string{"statement: _, _ = g()"}},
		{"a += b", []string{"statement: _ = b"}},
		{"s = nil", []string{"statement: _ = s"}},
		{"a++", []string{"statement: _ = a"}},
		{"c := a", nil},
		{"_ = a", nil},
		{"return a, err", []string{"error: return a, nil"}},
		{"return a, nil", nil},
		{`return a, fmt.Errorf("%d", a)`, []string{"error: return a, nil; var _ = fmt.Errorf"}},
		{`return a, errors.New("a")`, []string{"error: return a, nil; var _ = errors.New"}},
		{"_ = func() int { return a }", nil},
		{"for { break }", []string{"jump: for { _ = 0 }"}},
		{"for { continue }", []string{"jump: for { _ = 0 }"}},
		{"switch { case p: c := a }", []string{"case: switch { case p: }"}},
		{"_ = slices.Clone(s)", []string{"clone: _ = s; var _ = slices.Clone[[]int]"}},
		{"_ = slices.Clip(s)", []string{"clone: _ = s; var _ = slices.Clip[[]int]"}},
		{"_ = maps.Clone(m)", []string{"clone: _ = m; var _ = maps.Clone[map[int]int]"}},
		{"_ = h.Clone()", []string{"clone: _ = h"}},
		{"_ = append([]int(nil), s...)", []string{"clone: _ = s"}},
		{"_ = append([]int{}, s...)", []string{"clone: _ = s"}},
		{"_ = append(s, s...)", nil},
		{`_ = append([]byte("a"), s...)`, nil},
		{"_ = s[:a:b]", []string{"clone: _ = s[:a]"}},
		{"_ = min(a, b)", []string{"extreme: _ = max(a, b)"}},
		{"_ = max(a, b)", []string{"extreme: _ = min(a, b)"}},
		{"_ = make([]int, 3, a+b)", []string{"number: _ = make([]int, (3 + 1), a+b)"}},
		{"_ = make([]int, a+b)", []string{"arithmetic: _ = make([]int, a-b)"}},
		{"_ = make(map[int]int, min(a, 7))", nil},
		{"_ = make(map[int]int)", nil},
		{"_ = make(chan int, a+b)", []string{"arithmetic: _ = make(chan int, a-b)"}},
		{"_ = 7", []string{"number: _ = (7 + 1)"}},
		{"_ = true", []string{"bool: _ = false"}},
	} {
		source := "package p\n\nfunc (x *T) f(a, b int, s []int) (int, error) {\n\t" + test.body + "\n}\n"
		found, err := mutantsOf("p.go", []byte(source))
		require.NoError(t, err, test.body)
		var got []string
		for _, m := range found {
			assert.Equal(t, "p.go *T.f 3", fmt.Sprint(m.file, " ", m.function, " ", m.in.Line))
			assert.Equal(t, 4, m.at.Line)
			changed := m.apply([]byte(source))
			_, err := format.Source(changed)
			assert.NoError(t, err, "%s", changed)
			_, is := difference([]byte(source), m)
			if m.more != "" {
				is += "; " + m.more[1:len(m.more)-1]
			}
			got = append(got, m.kind+": "+is)
		}
		assert.ElementsMatch(t, test.want, got, test.body)
	}
	_, err := mutantsOf("p.go", []byte("package"))
	assert.Error(t, err)
	found, err := mutantsOf("p.go", []byte("package p\n\nconst most = 3\n"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "", found[0].function)
	assert.Equal(t, position{}, found[0].in)
	assert.Equal(t, position{3, 14}, found[0].at)
}

// The same seed chooses the same mutants, at most two of a function.
func TestSample(t *testing.T) {
	t.Parallel()
	list := []*pkg{{ImportPath: "a"}, {ImportPath: "b"}}
	for i, p := range list {
		for j := range 60 {
			p.mutants = append(p.mutants, mutant{kind: []string{"clone", "jump"}[j%2], file: fmt.Sprint(i), function: fmt.Sprint(j / 6), begin: j})
		}
	}
	first := sample(list, choice{}, 20, 7)
	assert.Len(t, first, 20)
	assert.Equal(t, first, sample(list, choice{}, 20, 7))
	assert.NotEqual(t, first, sample(list, choice{}, 20, 8))
	assert.Subset(t, sample(list, choice{}, 21, 7), first, "more are these and others")
	all := sample(list, choice{}, 1000, 7)
	assert.Len(t, all, 2*10*maxOfFunction)
	of := make(map[string]int)
	for i, c := range all {
		of[c.file+" "+c.function]++
		if i > 0 && all[i-1].pkg == c.pkg {
			assert.Less(t, all[i-1].begin, c.begin)
		}
	}
	for key, n := range of {
		assert.Equal(t, maxOfFunction, n, key)
	}
	for _, c := range sample(list, choice{kinds: []string{"clone"}}, 1000, 7) {
		assert.Equal(t, "clone", c.kind)
	}
	assert.Empty(t, sample(list, choice{kinds: []string{"none"}}, 1000, 7))
	assert.Empty(t, sample(list, choice{}, 0, 7))

	for place, want := range map[string]int{"p/a.go:3:5": 1, "p/a.go:3": 3, "a.go:3:5": 1, "a.go": 4, "p/b.go": 1, "p/a.go:33": 1, ".go": 0, "o/p/a.go:3:4": 1} {
		var all []mutant
		for _, at := range []position{{3, 4}, {3, 5}, {3, 55}, {33, 5}} {
			all = append(all, mutant{file: "/o/p/a.go", function: "f", at: at})
		}
		all = append(all, mutant{file: "/o/p/b.go", function: "f", at: position{3, 5}})
		assert.Len(t, sample([]*pkg{{mutants: all}}, choice{places: []string{place}}, 9, 7), want, place)
	}
}

func FuzzMutants(f *testing.F) {
	f.Add([]byte("package p\nfunc f() error { if a < 1 { return errors.New(x) }; return nil }"))
	f.Add([]byte("package p\nvar a = append([]int(nil), b[:1:2]...)\nfunc _() { switch { case a: b++ }; defer f(); a, b = 1, nil }"))
	f.Fuzz(func(t *testing.T, source []byte) {
		found, err := mutantsOf("p.go", source)
		if err != nil {
			return
		}
		for _, m := range found {
			m.apply(source)
			difference(source, m)
		}
	})
}
