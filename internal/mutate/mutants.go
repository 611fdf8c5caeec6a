package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A mutant is one small change of the code.
type mutant struct {
	kind     string
	file     string // slashed, below the module's folder
	function string // the declared one that it is in, or ""
	line     int
	column   int
	was, is  string // in one line

	pkg    *pkg
	id     int
	broken bool // it does not compile
}

// A place is some code that has one or more mutants, each behind its switch.
type place struct {
	mutants  []*mutant
	from, to int    // what the switch stands around
	before   string // what stands there
	after    string
	cut      [2]int // what is left out inside, if not empty
	instead  string // what takes its place
	end      int    // the last line of the function around it
}

// broken reports whether a mutant of the place does not compile. Then all of them are left out.
func (p *place) broken() bool {
	return slices.ContainsFunc(p.mutants, func(m *mutant) bool { return m.broken })
}

// A finder finds the places of a file.
type finder struct {
	fset   *token.FileSet
	tree   *ast.File
	name   string // of the file, slashed, below the module's folder
	source []byte
	info   *types.Info
	own    *types.Package
	above  []ast.Node // from the file down to the parent
	places []*place
}

// find returns the places with mutants, in the order of the tree.
func (f *finder) find() []*place {
	ast.PreorderStack(f.tree, nil, func(n ast.Node, above []ast.Node) bool {
		f.above = above
		if d, ok := n.(*ast.GenDecl); ok && d.Tok != token.VAR || f.isHint(n) || f.isLength(n) {
			return false
		}
		f.visit(n)
		return true
	})
	return f.places
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

// isHint reports whether n only says how much memory to make room in: the capacity of a slice,
// or the size of a map. With another one, a program does the same.
func (f *finder) isHint(n ast.Node) bool {
	call, ok := f.parent().(*ast.CallExpr)
	if !ok || f.text(call.Fun) != "make" {
		return false
	}
	_, isMap := call.Args[0].(*ast.MapType)
	return len(call.Args) == 3 && n == call.Args[2] || isMap && len(call.Args) == 2 && n == call.Args[1]
}

// isLength reports whether n is an array's length, which must be a constant.
func (f *finder) isLength(n ast.Node) bool {
	array, ok := f.parent().(*ast.ArrayType)
	return ok && n == array.Len
}

func (f *finder) parent() ast.Node {
	if len(f.above) == 0 {
		return nil
	}
	return f.above[len(f.above)-1]
}

// add notes the mutants of a place from..to, and what is written before and after it. There
// change_ is package change, and in before, %s stands for the mutants' numbers, which come later.
func (f *finder) add(from, to token.Pos, before, after string, mutants ...*mutant) *place {
	p := &place{mutants: mutants, from: f.offset(from), to: f.offset(to), before: before, after: after}
	for _, n := range f.above {
		switch n := n.(type) {
		case *ast.FuncDecl:
			p.end = f.fset.Position(n.End()).Line
			for _, m := range mutants {
				m.function = n.Name.Name
				if n.Recv != nil {
					m.function = f.text(n.Recv.List[0].Type) + "." + m.function
				}
			}
		case *ast.FuncLit:
			p.end = f.fset.Position(n.End()).Line
		}
	}
	f.places = append(f.places, p)
	return p
}

// mutant returns a mutant of the code from..to, which has text there instead.
func (f *finder) mutant(kind string, from, to token.Pos, text string) *mutant {
	at := f.fset.Position(from)
	begin, end := f.offset(from), f.offset(to)
	m := &mutant{kind: kind, file: f.name, line: at.Line, column: at.Column}
	m.was, m.is = difference(f.source, begin, end, text)
	return m
}

// difference returns the lines from begin to end, as they are and with text instead, each in
// one line of at most 200 characters.
func difference(source []byte, begin, end int, text string) (was, is string) {
	first, last := begin, end
	for first > 0 && source[first-1] != '\n' {
		first--
	}
	for last < len(source) && source[last] != '\n' {
		last++
	}
	line := func(middle string) string {
		whole := []rune(strings.Join(strings.Fields(string(source[first:begin])+middle+string(source[end:last])), " "))
		return string(whole[:min(len(whole), 200)])
	}
	return line(string(source[begin:end])), line(text)
}

// swaps are what takes an operator's place, and the function of package change that has both.
var swaps = map[token.Token]struct {
	kind, function string
	by             token.Token
}{
	token.LSS: {"boundary", "Less", token.LEQ}, token.LEQ: {"boundary", "AtMost", token.LSS},
	token.GTR: {"boundary", "More", token.GEQ}, token.GEQ: {"boundary", "AtLeast", token.GTR},
	token.EQL: {"equality", "", token.NEQ}, token.NEQ: {"equality", "", token.EQL},
	token.LAND: {"logic", "And", token.LOR}, token.LOR: {"logic", "Or", token.LAND},
	token.ADD: {"arithmetic", "Sum", token.SUB}, token.SUB: {"arithmetic", "Difference", token.ADD},
}

func (f *finder) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && f.text(call.Fun) != "panic" { // whose function may need it in the place of a return
			f.drop("statement", n, n)
		}
	case *ast.DeferStmt, *ast.IncDecStmt:
		f.drop("statement", n.(ast.Stmt), n.(ast.Stmt))
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && slices.ContainsFunc(n.Lhs, func(x ast.Expr) bool { return f.text(x) != "_" }) {
			f.drop("statement", n, n)
		}
	case *ast.BranchStmt:
		if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
			f.drop("jump", n, n)
		}
	case *ast.CaseClause:
		if len(n.Body) > 0 {
			f.above = append(slices.Clone(f.above), n)
			f.drop("case", n.Body[0], n.Body[len(n.Body)-1])
		}
	case *ast.ReturnStmt:
		f.result(n)
	case *ast.CallExpr:
		f.call(n)
	case *ast.SliceExpr:
		if n.Slice3 { // without the limit, what is appended goes into the same array
			f.add(n.Max.Pos(), n.Max.End(), "change_.Pick(%s, ", ", cap("+f.text(n.X)+"))", f.mutant("clone", n.High.End(), n.Max.End(), ""))
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.number(n)
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" && f.isConstant(n) {
			f.add(n.Pos(), n.End(), "change_.Not(%s, ", ")", f.mutant("bool", n.Pos(), n.End(), other))
		}
	}
}

func (f *finder) isConstant(x ast.Expr) bool { return f.info.Types[x].Value != nil }

func (f *finder) isNumber(x ast.Expr) bool {
	of := f.info.Types[x].Type
	if of == nil {
		return false
	}
	basic, ok := of.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

func (f *finder) condition(cond ast.Expr) {
	if f.isConstant(cond) {
		return
	}
	text, kind := f.text(cond), "branch"
	if strings.Contains(text, "err != nil") {
		kind = "error"
	}
	f.add(cond.Pos(), cond.End(), "!change_.On(%s) && change_.Not(%s, ", ")",
		f.mutant(kind, cond.Pos(), cond.End(), "false && ("+text+")"), f.mutant("negate", cond.Pos(), cond.End(), "!("+text+")"))
}

func (f *finder) binary(n *ast.BinaryExpr) {
	swap, ok := swaps[n.Op]
	if !ok || f.isConstant(n) || swap.kind == "arithmetic" && !f.isNumber(n) {
		return
	}
	operator := n.OpPos + token.Pos(len(n.Op.String()))
	m := f.mutant(swap.kind, n.OpPos, operator, swap.by.String())
	switch swap.kind {
	case "equality":
		f.add(n.Pos(), n.End(), "change_.Not(%s, ", ")", m)
		return
	case "logic":
		left, right := f.mutant("operand", n.Pos(), n.End(), f.text(n.X)), f.mutant("operand", n.Pos(), n.End(), f.text(n.Y))
		p := f.add(n.Pos(), n.End(), "change_."+swap.function+"(%s, %s, %s, ", ") })", m, left, right)
		p.instead = ", func() bool { return ("
	default:
		f.add(n.Pos(), n.End(), "change_."+swap.function+"(%s, ", ")", m).instead = ","
	}
	f.places[len(f.places)-1].cut = [2]int{f.offset(n.OpPos), f.offset(operator)}
}

// drop notes the mutant without the statements from first to last.
func (f *finder) drop(kind string, first, last ast.Stmt) {
	switch parent := f.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause:
	case *ast.CommClause:
		if parent.Comm == first {
			return
		}
	default: // of a for, an if or a switch, which may have no other statement there
		return
	}
	if branch, ok := last.(*ast.BranchStmt); ok && branch.Tok == token.FALLTHROUGH {
		return
	}
	f.add(first.Pos(), last.End(), "if !change_.On(%s) { ", " }", f.mutant(kind, first.Pos(), last.End(), ""))
}

// failures are the functions that make an error.
var failures = []string{"fmt.Errorf", "errors.New"}

// result notes the mutant that returns no error where one is returned.
func (f *finder) result(n *ast.ReturnStmt) {
	if len(n.Results) == 0 || !f.fails() {
		return
	}
	last, returns := n.Results[len(n.Results)-1], false
	switch x := last.(type) {
	case *ast.Ident:
		returns = x.Name != "nil"
	case *ast.CallExpr:
		returns = slices.Contains(failures, f.text(x.Fun))
	}
	if returns {
		f.add(last.Pos(), last.End(), "change_.Fail(%s, ", ")", f.mutant("error", last.Pos(), last.End(), "nil"))
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
		return results != nil && f.text(results.List[len(results.List)-1].Type) == "error"
	}
	return false
}

// copies are the functions that return what their argument is, in memory of its own.
var copies = []string{"slices.Clone", "slices.Clip", "maps.Clone", "bytes.Clone"}

func (f *finder) call(n *ast.CallExpr) {
	name := f.text(n.Fun)
	selector, method := n.Fun.(*ast.SelectorExpr)
	switch {
	case slices.Contains(copies, name) && len(n.Args) == 1:
		f.pick("clone", n, f.text(n.Args[0]))
	case method && selector.Sel.Name == "Clone" && len(n.Args) == 0:
		f.pick("clone", n, f.text(selector.X))
	case name == "append" && len(n.Args) == 2 && n.Ellipsis.IsValid() && isNothing(n.Args[0]):
		f.pick("clone", n, f.text(n.Args[1]))
	case (name == "min" || name == "max") && len(n.Args) == 2 && !f.isConstant(n):
		other, function := "max", "Min"
		if name == "max" {
			other, function = "min", "Max"
		}
		p := f.add(n.Pos(), n.End(), "change_."+function+"(%s, ", "", f.mutant("extreme", n.Fun.Pos(), n.Fun.End(), other))
		p.cut = [2]int{f.offset(n.Pos()), f.offset(n.Lparen) + 1}
	}
}

// pick notes the mutant that has text in the place of x.
func (f *finder) pick(kind string, x ast.Expr, text string) {
	if !strings.Contains(text, "\n") {
		f.add(x.Pos(), x.End(), "change_.Pick(%s, ", ", "+text+")", f.mutant(kind, x.Pos(), x.End(), text))
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

// number notes the mutant with one more, in the largest constant expression around it.
func (f *finder) number(n *ast.BasicLit) {
	var whole ast.Expr = n
	for _, above := range slices.Backward(f.above) {
		x, ok := above.(ast.Expr)
		if !ok || !f.isConstant(x) {
			break
		}
		whole = x
	}
	if pair, ok := f.parent().(*ast.KeyValueExpr); ok && pair.Key == whole {
		return // of an array or a map, where it must be a constant
	}
	name, ok := f.typeName(f.info.Types[whole].Type)
	if !ok {
		return
	}
	from := f.offset(whole.Pos())
	more := string(f.source[from:f.offset(n.Pos())]) + "(" + n.Value + " + 1)" + string(f.source[f.offset(n.End()):f.offset(whole.End())])
	f.add(whole.Pos(), whole.End(), "change_.Pick["+name+"](%s, ", ", "+strings.ReplaceAll(more, "\n", " ")+")",
		f.mutant("number", n.Pos(), n.End(), "("+n.Value+" + 1)"))
}

// typeName returns how the file names the type of a constant, if it can.
func (f *finder) typeName(t types.Type) (name string, ok bool) {
	t, ok = types.Default(t), true
	if types.IsInterface(t) { // it takes a constant as an int
		return "int", true
	}
	name = types.TypeString(t, func(p *types.Package) string {
		if p == f.own {
			return ""
		}
		for _, i := range f.tree.Imports {
			if i.Path.Value == fmt.Sprintf("%q", p.Path()) && i.Name != nil {
				return i.Name.Name
			} else if i.Path.Value == fmt.Sprintf("%q", p.Path()) {
				return p.Name()
			}
		}
		ok = false
		return ""
	})
	return name, ok
}
