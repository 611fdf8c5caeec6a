package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A mutant is a file with one small change: the bytes from begin to end are text instead,
// and more follows the file.
type mutant struct {
	kind       string
	file       string // as it was given to mutantsOf
	function   string // the declared one that it is in, or ""
	begin, end int
	text       string
	more       string // keeps an import in use

	at, in position // where it begins, and its function
}

// A position is a line and a column, both from 1, or nowhere.
type position struct{ Line, Column int }

// apply returns the source with the mutant's change.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.begin], []byte(m.text), source[m.end:], []byte(m.more))
}

// mutantsOf returns all mutants of a source, by where they begin, then by kind and text.
func mutantsOf(file string, source []byte) ([]mutant, error) {
	f := &finder{fset: token.NewFileSet(), file: file, source: source}
	tree, err := parser.ParseFile(f.fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.PreorderStack(tree, nil, func(n ast.Node, above []ast.Node) bool {
		if f.above = above; f.isHint(n) {
			return false
		}
		f.visit(n)
		return true
	})
	slices.SortStableFunc(f.found, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), strings.Compare(a.kind, b.kind), strings.Compare(a.text, b.text))
	})
	return f.found, nil
}

type finder struct {
	fset   *token.FileSet
	file   string
	source []byte
	above  []ast.Node // from the file down to the parent
	found  []mutant
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) textOf(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) position(p token.Pos) position {
	at := f.fset.Position(p)
	return position{at.Line, at.Column}
}

// add notes the mutant that has text from begin to end.
func (f *finder) add(kind string, begin, end token.Pos, text string, more ...string) {
	m := mutant{kind: kind, file: f.file, begin: f.offset(begin), end: f.offset(end), text: text, at: f.position(begin)}
	for _, line := range more {
		m.more += "\n" + line + "\n"
	}
	for _, n := range f.above {
		if d, ok := n.(*ast.FuncDecl); ok {
			m.function, m.in = d.Name.Name, f.position(d.Body.Pos())
			if d.Recv != nil {
				m.function = f.textOf(d.Recv.List[0].Type) + "." + m.function
			}
		}
	}
	f.found = append(f.found, m)
}

// instead notes the mutant that has text in the place of n.
func (f *finder) instead(kind string, n ast.Node, text string, more ...string) {
	f.add(kind, n.Pos(), n.End(), text, more...)
}

// isHint reports whether n only says how much memory to make room in: the capacity of a slice,
// or the size of a map. With another one, a program does the same.
func (f *finder) isHint(n ast.Node) bool {
	if len(f.above) == 0 {
		return false
	}
	call, ok := f.above[len(f.above)-1].(*ast.CallExpr)
	if !ok || f.textOf(call.Fun) != "make" {
		return false
	}
	_, isMap := call.Args[0].(*ast.MapType)
	return len(call.Args) == 3 && n == call.Args[2] || isMap && len(call.Args) == 2 && n == call.Args[1]
}

// swaps are what takes an operator's place.
var swaps = map[token.Token]struct {
	kind string
	by   token.Token
}{
	token.LSS: {"boundary", token.LEQ}, token.LEQ: {"boundary", token.LSS},
	token.GTR: {"boundary", token.GEQ}, token.GEQ: {"boundary", token.GTR},
	token.EQL: {"equality", token.NEQ}, token.NEQ: {"equality", token.EQL},
	token.LAND: {"logic", token.LOR}, token.LOR: {"logic", token.LAND},
	token.ADD: {"arithmetic", token.SUB}, token.SUB: {"arithmetic", token.ADD},
}

// copies are the functions that return what their argument is, in memory of its own.
var copies = map[string]string{
	"slices.Clone": "var _ = slices.Clone[[]int]", "slices.Clip": "var _ = slices.Clip[[]int]",
	"maps.Clone": "var _ = maps.Clone[map[int]int]", "bytes.Clone": "var _ = bytes.Clone",
}

// failures are the functions that make an error.
var failures = map[string]string{"fmt.Errorf": "var _ = fmt.Errorf", "errors.New": "var _ = errors.New"}

func (f *finder) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		cond := f.textOf(n.Cond)
		f.instead("negate", n.Cond, "!("+cond+")")
		kind := "branch"
		if strings.Contains(cond, "err != nil") {
			kind = "error"
		}
		f.instead(kind, n.Cond, "false && ("+cond+")")
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok {
			f.drop(n, call)
		}
	case *ast.DeferStmt:
		f.drop(n, n.Call)
	case *ast.IncDecStmt:
		f.instead("statement", n, "_ = "+f.textOf(n.X))
	case *ast.AssignStmt:
		f.assignment(n)
	case *ast.ReturnStmt:
		f.result(n)
	case *ast.BranchStmt:
		if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
			f.instead("jump", n, "_ = 0")
		}
	case *ast.CaseClause:
		if len(n.Body) > 0 {
			f.add("case", n.Body[0].Pos(), n.Body[len(n.Body)-1].End(), "")
		}
	case *ast.CallExpr:
		f.call(n)
	case *ast.SliceExpr:
		if n.Slice3 { // without the limit, what is appended goes into the same array
			f.add("clone", n.High.End(), n.Max.End(), "")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.instead("number", n, "("+n.Value+" + 1)")
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.instead("bool", n, other)
		}
	}
}

func (f *finder) binary(n *ast.BinaryExpr) {
	swap, ok := swaps[n.Op]
	if !ok || n.Op == token.ADD && (isText(n.X) || isText(n.Y)) {
		return
	}
	f.add(swap.kind, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), swap.by.String())
	if swap.kind == "logic" {
		f.instead("operand", n, f.textOf(n.X))
		f.instead("operand", n, f.textOf(n.Y))
	}
}

// isText reports whether an operand is certainly a string.
func isText(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(x.X) || isText(x.Y)
	}
	return false
}

var builtin = map[string]bool{"delete": true, "copy": true, "close": true, "clear": true, "print": true, "println": true}

// drop notes the mutant without a call. What the call names stays in use.
func (f *finder) drop(statement ast.Stmt, call *ast.CallExpr) {
	name := f.textOf(call.Fun)
	switch {
	case name == "panic": // whose function may need it in the place of a return
	case builtin[name]:
		f.instead("statement", statement, f.blank(len(call.Args), call.Args))
	default:
		f.instead("statement", statement, "_ = "+name)
	}
}

// assignment notes the mutant that computes the values and assigns none.
func (f *finder) assignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE || slices.ContainsFunc(n.Rhs, func(x ast.Expr) bool { return f.textOf(x) == "nil" }) {
		if n.Tok != token.DEFINE && len(n.Rhs) == 1 {
			f.instead("statement", n, "_ = "+f.textOf(n.Lhs[0]))
		}
		return
	}
	if !slices.ContainsFunc(n.Lhs, func(x ast.Expr) bool { return f.textOf(x) != "_" }) {
		return
	}
	f.instead("statement", n, f.blank(len(n.Lhs), n.Rhs))
}

// blank returns a statement that gives n values to nobody.
func (f *finder) blank(n int, values []ast.Expr) string {
	var texts []string
	for _, x := range values {
		texts = append(texts, f.textOf(x))
	}
	return strings.TrimSuffix(strings.Repeat("_, ", n), ", ") + " = " + strings.Join(texts, ", ")
}

// result notes the mutant that returns no error where one is returned.
func (f *finder) result(n *ast.ReturnStmt) {
	if len(n.Results) == 0 || !f.fails() {
		return
	}
	last := n.Results[len(n.Results)-1]
	switch x := last.(type) {
	case *ast.Ident:
		if x.Name != "nil" {
			f.instead("error", last, "nil")
		}
	case *ast.CallExpr:
		if use, ok := failures[f.textOf(x.Fun)]; ok {
			f.instead("error", last, "nil", use)
		}
	}
}

// fails reports whether the function around the node returns an error last.
func (f *finder) fails() bool {
	for _, n := range slices.Backward(f.above) {
		var results *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncLit:
			results = n.Type.Results
		case *ast.FuncDecl:
			results = n.Type.Results
		default:
			continue
		}
		return results != nil && f.textOf(results.List[len(results.List)-1].Type) == "error"
	}
	return false
}

func (f *finder) call(n *ast.CallExpr) {
	name := f.textOf(n.Fun)
	selector, method := n.Fun.(*ast.SelectorExpr)
	switch use := copies[name]; {
	case use != "" && len(n.Args) == 1:
		f.instead("clone", n, f.textOf(n.Args[0]), use)
	case method && selector.Sel.Name == "Clone" && len(n.Args) == 0:
		f.instead("clone", n, f.textOf(selector.X))
	case name == "append" && len(n.Args) == 2 && n.Ellipsis.IsValid() && isNothing(n.Args[0]):
		f.instead("clone", n, f.textOf(n.Args[1]))
	case name == "min" && len(n.Args) == 2:
		f.instead("extreme", n.Fun, "max")
	case name == "max" && len(n.Args) == 2:
		f.instead("extreme", n.Fun, "min")
	}
}

// isNothing reports whether x is an empty slice: []T(nil) or []T{}.
func isNothing(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.CallExpr:
		_, slice := x.Fun.(*ast.ArrayType)
		if !slice || len(x.Args) != 1 {
			return false
		}
		of, ok := x.Args[0].(*ast.Ident)
		return ok && of.Name == "nil"
	case *ast.CompositeLit:
		_, slice := x.Type.(*ast.ArrayType)
		return slice && len(x.Elts) == 0
	}
	return false
}
