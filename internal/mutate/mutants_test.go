package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// found returns the places of a source, and what weave makes of it. What it does not declare has no type.
func found(t *testing.T, source string) (places []*place, woven string) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err, source)
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	own, _ := (&types.Config{Error: func(error) {}}).Check("p", fset, []*ast.File{tree}, info)
	f := &finder{fset: fset, tree: tree, name: "p.go", source: []byte(source), info: info, own: own}
	places = f.find()
	id := 0
	for _, p := range places {
		for _, m := range p.mutants {
			m.id, id = id, id+1
		}
	}
	return places, string(weave(f.source, fset.Position(tree.Name.End()).Offset, "m/change_", places))
}

// Each small source has exactly these mutants, and with their switches it is this.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body  string // of func f(a, b int, s []int) (int, error)
		want  []string
		woven string
	}{
		{"_ = a < b", []string{"boundary: _ = a <= b"}, "_ = change_.Less(0, a, b)"},
		{"_ = a <= b", []string{"boundary: _ = a < b"}, "_ = change_.AtMost(0, a, b)"},
		{"_ = a > b", []string{"boundary: _ = a >= b"}, "_ = change_.More(0, a, b)"},
		{"_ = a >= b", []string{"boundary: _ = a > b"}, "_ = change_.AtLeast(0, a, b)"},
		{"_ = a == b", []string{"equality: _ = a != b"}, "_ = change_.Not(0, a == b)"},
		{"_ = a + b", []string{"arithmetic: _ = a - b"}, "_ = change_.Sum(0, a, b)"},
		{"_ = a - b", []string{"arithmetic: _ = a + b"}, "_ = change_.Difference(0, a, b)"},
		{`_ = "a" + g() + "b"`, nil, `_ = "a" + g() + "b"`},
		{"_ = p && q", []string{"logic: _ = p || q", "operand: _ = p", "operand: _ = q"},
			"_ = change_.And(0, 1, 2, p, func() bool { return (q) })"},
		{"_ = p || q", []string{"logic: _ = p && q", "operand: _ = p", "operand: _ = q"},
			"_ = change_.Or(0, 1, 2, p, func() bool { return (q) })"},
		{"_ = p && a < b", []string{"logic: _ = p || a < b", "operand: _ = p", "operand: _ = a < b", "boundary: _ = p && a <= b"},
			"_ = change_.And(0, 1, 2, p, func() bool { return (change_.Less(3, a, b)) })"},
		{"if p { g() }", []string{"branch: if false && (p) { g() }", "negate: if !(p) { g() }", "statement: if p { }"},
			"if !change_.On(0) && change_.Not(1, p) { if !change_.On(2) { g() } }"},
		{"if a == b { return }", []string{"branch: if false && (a == b) { return }", "negate: if !(a == b) { return }", "equality: if a != b { return }"},
			"if !change_.On(0) && change_.Not(1, change_.Not(2, a == b)) { return }"},
		{"if err != nil { return }", []string{
			"error: if false && (err != nil) { return }", "negate: if !(err != nil) { return }", "equality: if err == nil { return }",
		}, "if !change_.On(0) && change_.Not(1, change_.Not(2, err != nil)) { return }"},
		{"x.g(a)", []string{"statement:"}, "if !change_.On(0) { x.g(a) }"},
		{"defer x.Unlock()", []string{"statement:"}, "if !change_.On(0) { defer x.Unlock() }"},
		{"delete(m, a)", []string{"statement:"}, "if !change_.On(0) { delete(m, a) }"},
		{`panic("a")`, nil, `panic("a")`},
		{"a = b", []string{"statement:"}, "if !change_.On(0) { a = b }"},
		{"a, b = g()", []string{"statement:"}, "if !change_.On(0) { a, b = g() }"},
		{"a += b", []string{"statement:"}, "if !change_.On(0) { a += b }"},
		{"a++", []string{"statement:"}, "if !change_.On(0) { a++ }"},
		{"for a = b; p; a++ { }", nil, "for a = b; p; a++ { }"}, // no room for a switch
		{"select { case a = <-c: b = a }", []string{"statement: select { case a = <-c: }"}, "select { case a = <-c: if !change_.On(0) { b = a } }"},
		{"c := a", nil, "c := a"},
		{"_ = a", nil, "_ = a"},
		{"return a, err", []string{"error: return a, nil"}, "return a, change_.Fail(0, err)"},
		{"return a, nil", nil, "return a, nil"},
		{`return a, fmt.Errorf("%d", a)`, []string{"error: return a, nil"}, `return a, change_.Fail(0, fmt.Errorf("%d", a))`},
		{`return a, errors.New("a")`, []string{"error: return a, nil"}, `return a, change_.Fail(0, errors.New("a"))`},
		{"_ = func() int { return a }", nil, "_ = func() int { return a }"},
		{"for { break }", []string{"jump: for { }"}, "for { if !change_.On(0) { break } }"},
		{"for { continue }", []string{"jump: for { }"}, "for { if !change_.On(0) { continue } }"},
		{"switch { case p: c := a }", []string{"case: switch { case p: }"}, "switch { case p: if !change_.On(0) { c := a } }"},
		{"switch { case p: fallthrough; case q: }", nil, "switch { case p: fallthrough; case q: }"},
		{"_ = slices.Clone(s)", []string{"clone: _ = s"}, "_ = change_.Pick(0, slices.Clone(s), s)"},
		{"_ = slices.Clip(s)", []string{"clone: _ = s"}, "_ = change_.Pick(0, slices.Clip(s), s)"},
		{"_ = maps.Clone(m)", []string{"clone: _ = m"}, "_ = change_.Pick(0, maps.Clone(m), m)"},
		{"_ = h.Clone()", []string{"clone: _ = h"}, "_ = change_.Pick(0, h.Clone(), h)"},
		{"_ = append([]int(nil), s...)", []string{"clone: _ = s"}, "_ = change_.Pick(0, append([]int(nil), s...), s)"},
		{"_ = append([]int{}, s...)", []string{"clone: _ = s"}, "_ = change_.Pick(0, append([]int{}, s...), s)"},
		{"_ = append(s, s...)", nil, "_ = append(s, s...)"},
		{`_ = append([]byte("a"), s...)`, nil, `_ = append([]byte("a"), s...)`},
		{"_ = s[:a:b]", []string{"clone: _ = s[:a]"}, "_ = s[:a:change_.Pick(0, b, cap(s))]"},
		{"_ = min(a, b)", []string{"extreme: _ = max(a, b)"}, "_ = change_.Min(0, a, b)"},
		{"_ = max(a, b)", []string{"extreme: _ = min(a, b)"}, "_ = change_.Max(0, a, b)"},
		{"_ = max(a, min(a, b))", []string{"extreme: _ = min(a, min(a, b))", "extreme: _ = max(a, max(a, b))"}, "_ = change_.Max(0, a, change_.Min(1, a, b))"},
		{"_ = make([]int, 3, a+b)", []string{"number: _ = make([]int, (3 + 1), a+b)"}, "_ = make([]int, change_.Pick[int](0, 3, (3 + 1)), a+b)"},
		{"_ = make([]int, a+b)", []string{"arithmetic: _ = make([]int, a-b)"}, "_ = make([]int, change_.Sum(0, a, b))"},
		{"_ = make(map[int]int, min(a, 7))", nil, "_ = make(map[int]int, min(a, 7))"},
		{"_ = make(chan int, a+b)", []string{"arithmetic: _ = make(chan int, a-b)"}, "_ = make(chan int, change_.Sum(0, a, b))"},
		{"_ = 7", []string{"number: _ = (7 + 1)"}, "_ = change_.Pick[int](0, 7, (7 + 1))"},
		{"_ = uint8(3 << 2)", []string{"number: _ = uint8((3 + 1) << 2)", "number: _ = uint8(3 << (2 + 1))"},
			"_ = change_.Pick[uint8](0, change_.Pick[uint8](1, uint8(3 << 2), uint8(3 << (2 + 1))), uint8((3 + 1) << 2))"},
		{"_ = [3]int{2: 1}", []string{"number: _ = [3]int{2: (1 + 1)}"}, "_ = [3]int{2: change_.Pick[int](0, 1, (1 + 1))}"},
		{"const c = 3", nil, "const c = 3"},
		{"_ = true", []string{"bool: _ = false"}, "_ = change_.Not(0, true)"},
	} {
		begin, end := "\n\nfunc (x *T) f(a, b int, s []int) (int, error) {\n\t", "\n}\n"
		places, woven := found(t, "package p"+begin+test.body+end)
		var got []string
		for _, p := range places {
			assert.Equal(t, 5, p.end)
			for _, m := range p.mutants {
				assert.Equal(t, "p.go *T.f 4", fmt.Sprint(m.file, " ", m.function, " ", m.line))
				assert.Equal(t, strings.Join(strings.Fields(test.body), " "), m.was)
				got = append(got, strings.TrimSpace(m.kind+": "+m.is))
			}
		}
		assert.Equal(t, test.want, got, test.body)
		compact := strings.NewReplacer(" ", "")
		assert.Equal(t, compact.Replace("package p; import change_ \"m/change_\""+begin+test.woven+end+"\nvar _ = change_.On\n"), compact.Replace(woven))
		_, err := format.Source([]byte(woven))
		assert.NoError(t, err, woven)
	}
}

// A place with a mutant that does not compile keeps its code, and the lines stay where they are.
func TestWeave(t *testing.T) {
	t.Parallel()
	places, _ := found(t, "package p\n\nvar A = 1 +\n\t2\n\nfunc f(a bool) bool { return a &&\n\ta }\n")
	require.Len(t, places, 3)
	places[2].mutants[1].broken = true
	source := "package p\n\nvar A = 1 +\n\t2\n\nfunc f(a bool) bool { return a &&\n\ta }\n"
	woven := string(weave([]byte(source), 9, "c", places))
	assert.Equal(t, "package p; import change_ \"c\"\n\nvar A = change_.Pick[int](0, change_.Pick[int](1, 1 +\n\t2, 1 + \t(2 + 1)), (1 + 1) + \t2)\n\n"+
		"func f(a bool) bool { return a &&\n\ta }\n\nvar _ = change_.On\n", woven)
}
