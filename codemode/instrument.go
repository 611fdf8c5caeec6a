package codemode

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

// The parameters of the function around a script, by which added code reaches the meter. No script
// can write such a name.
const (
	hookStep   unistring.String = "\x00step"   // (steps, bytes): at the begin of each function and round of a loop
	hookMade   unistring.String = "\x00made"   // (value) value: what may be a text made of others
	hookCopy   unistring.String = "\x00copy"   // (value) value: what is about to be copied, property by property
	hookObject unistring.String = "\x00object" // (place, value) value: what is assigned to by a computed key
	hookKey    unistring.String = "\x00key"    // (place, key) key: that key
	hookLength unistring.String = "\x00length" // (value) value: what is assigned to a property of the name length
	hookDepth  unistring.String = "\x00depth"  // (): where an error may be kept
)

var hookNames = []unistring.String{hookStep, hookMade, hookCopy, hookObject, hookKey, hookLength, hookDepth}

const scriptName = "script"

// A scriptError is what is wrong with a script before it runs.
type scriptError struct {
	line int
	text string
}

func (e *scriptError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

// parse returns the program of an async function with that body, to be called with the hooks in
// the order of hookNames. The value of an expression that stands last is returned.
func parse(script string) (*ast.Program, error) {
	if brackets(script) > maxBrackets {
		return nil, &scriptError{1, "it is nested too deep"}
	}
	const begin, end = "(async(a,b,c,d,e,f,g)=>{", "\n})"
	src := begin + script + end
	program, err := parser.ParseFile(nil, scriptName, src, 0, parser.WithDisableSourceMaps)
	var list parser.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return nil, &scriptError{list[0].Position.Line, list[0].Message}
	}
	if err != nil {
		return nil, &scriptError{1, err.Error()}
	}
	around, body := enclosing(program)
	if body == nil || int(body.RightBrace) != len(src)-1 {
		return nil, &scriptError{1, "a bracket } has no partner"}
	}
	for i, name := range hookNames {
		around.ParameterList.List[i].Target.(*ast.Identifier).Name = name
	}
	if n := len(body.List); n > 0 {
		if last, ok := body.List[n-1].(*ast.ExpressionStatement); ok {
			value := last.Expression
			switch value.(type) {
			case *ast.ArrowFunctionLiteral, *ast.FunctionLiteral: // the function that does it, not called
				value = &ast.CallExpression{Callee: value, LeftParenthesis: value.Idx0(), RightParenthesis: value.Idx0()}
			}
			body.List[n-1] = &ast.ReturnStatement{Return: last.Idx0(), Argument: value}
		}
	}
	in := &instrumenter{file: program.File, patterns: newAllowance()}
	in.walk(reflect.ValueOf(around))
	if in.err != nil {
		return nil, in.err
	}
	return program, nil
}

// maxBrackets is how deep brackets may be nested: the parser takes some KB of stack for each.
const maxBrackets = 1000

// brackets returns how deep brackets are nested at most, those in texts among them.
func brackets(script string) (deepest int) {
	depth := 0
	for i := range len(script) {
		switch script[i] {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', ']', '}':
			depth--
		}
	}
	return deepest
}

// enclosing returns the function around a script and its body, or nil if there is more than that.
func enclosing(program *ast.Program) (*ast.ArrowFunctionLiteral, *ast.BlockStatement) {
	if len(program.Body) != 1 {
		return nil, nil
	}
	statement, ok := program.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return nil, nil
	}
	around, ok := statement.Expression.(*ast.ArrowFunctionLiteral)
	if !ok {
		return nil, nil
	}
	body, _ := around.Body.(*ast.BlockStatement)
	return around, body
}

// An instrumenter adds code to a script that charges it for what it does, and refuses what can't
// be charged.
type instrumenter struct {
	file    *file.File
	cost    cost // of what was walked since the function or the loop began
	places  int
	depth   int
	err     error
	allowed *ast.ObjectPattern // what it copies is charged

	patterns *allowance // of the regular expressions in the script
}

// A cost is the most that a piece of code takes each time it runs, functions and loops in it aside.
type cost struct{ steps, bytes int }

// What is made, in bytes, rounded up: measured with goja on 64 bits.
const (
	bytesOfCall     = 200
	bytesOfFunction = 500
	bytesOfObject   = 250
	bytesOfMember   = 100
	bytesOfElement  = 32
	bytesOfRegExp   = 1000
	bytesOfPromise  = 1500
)

// maxNested is how deep a script may be nested, which is how deep its walk is.
const maxNested = 3000

var expressionType = reflect.TypeFor[ast.Expression]()

// walk walks the nodes below v. Nodes are pointers, or structs in others.
func (in *instrumenter) walk(v reflect.Value) {
	if in.err != nil {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		in.walk(v.Elem())
		if v.Type() == expressionType && v.CanSet() {
			if e := in.charged(v.Interface().(ast.Expression)); e != nil {
				v.Set(reflect.ValueOf(e))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			in.node(v)
		}
	case reflect.Slice:
		for i := range v.Len() {
			in.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			in.walk(v.Field(i))
		}
	}
}

// node walks one node, and changes what stands in it.
func (in *instrumenter) node(v reflect.Value) {
	if in.depth++; in.depth > maxNested {
		in.refuse(nil, "it is nested too deep")
	}
	defer func() { in.depth-- }()
	in.cost.steps++
	switch n := v.Interface().(type) {
	case *ast.VariableDeclaration, *file.File: // names that stand elsewhere too
	case *ast.WithStatement:
		in.refuse(n, "with is not supported")
	case *ast.NumberLiteral:
		switch n.Value.(type) {
		case int64, float64:
		default:
			in.refuse(n, "BigInt is not supported")
		}
	case *ast.RegExpLiteral:
		in.cost.bytes += bytesOfRegExp
		if _, err := checkPattern(n.Pattern, n.Flags, in.patterns); err != nil {
			in.refuse(n, err.Error())
		}
	case *ast.FunctionLiteral:
		copied := in.parameterRest(n.ParameterList)
		in.function(func() {
			in.walk(reflect.ValueOf(n.ParameterList))
			in.walk(reflect.ValueOf(n.Body))
		}, func(c cost) { n.Body.List = append(in.charge(c, n.Async, copied...), n.Body.List...) })
	case *ast.ArrowFunctionLiteral:
		copied := in.parameterRest(n.ParameterList)
		in.function(func() {
			in.walk(reflect.ValueOf(n.ParameterList))
			in.walk(reflect.ValueOf(n).Elem().FieldByName("Body"))
		}, func(c cost) {
			switch body := n.Body.(type) {
			case *ast.BlockStatement:
				body.List = append(in.charge(c, n.Async, copied...), body.List...)
			case *ast.ExpressionBody:
				body.Expression = sequence(in.charge(c, n.Async, copied...), body.Expression)
			}
		})
	case *ast.FieldDefinition:
		if key, ok := n.Key.(*ast.StringLiteral); n.Computed || !ok || key.Value == "length" {
			if _, private := n.Key.(*ast.PrivateIdentifier); !private {
				in.refuse(n, "a class can't have a field of that name here")
			}
		}
		in.walk(reflect.ValueOf(n).Elem().FieldByName("Key"))
		in.function(func() { in.walk(reflect.ValueOf(n).Elem().FieldByName("Initializer")) }, func(c cost) {
			if n.Initializer == nil {
				n.Initializer = &ast.UnaryExpression{Operator: token.VOID, Idx: n.Idx, Operand: &ast.NumberLiteral{Idx: n.Idx, Literal: "0", Value: int64(0)}}
			}
			c.bytes += bytesOfMember
			n.Initializer = sequence(in.charge(c, false), n.Initializer)
		})
	case *ast.ForStatement:
		in.loop(v, &n.Body)
	case *ast.ForInStatement:
		n.Source = call(hookCopy, n.Source)
		in.into(n.Into)
		in.loop(v, &n.Body)
	case *ast.ForOfStatement:
		in.into(n.Into)
		in.loop(v, &n.Body)
	case *ast.WhileStatement:
		in.loop(v, &n.Body)
	case *ast.DoWhileStatement:
		in.loop(v, &n.Body)
	case *ast.CatchStatement:
		in.inside(v)
		n.Body.List = append([]ast.Statement{&ast.ExpressionStatement{Expression: call(hookDepth)}}, n.Body.List...)
	case *ast.VariableStatement:
		in.declare(n.List)
		in.inside(v)
	case *ast.LexicalDeclaration:
		in.declare(n.List)
		in.inside(v)
	case *ast.ExpressionStatement:
		if assign, ok := n.Expression.(*ast.AssignExpression); ok {
			in.rest(assign.Left, &assign.Right)
		}
		in.inside(v)
	case *ast.AssignExpression:
		in.cost.bytes += bytesOfMember
		in.inside(v)
		in.target(&n.Left)
	case *ast.UnaryExpression:
		in.inside(v)
		if n.Operator == token.INCREMENT || n.Operator == token.DECREMENT {
			in.cost.bytes += bytesOfMember
			in.noLength(n.Operand)
			in.target(&n.Operand)
		}
	case *ast.ObjectLiteral:
		in.cost.bytes += bytesOfObject + bytesOfMember*len(n.Value)
		for _, p := range n.Value {
			if s, ok := p.(*ast.SpreadElement); ok {
				s.Expression = call(hookCopy, s.Expression)
			}
		}
		in.inside(v)
	case *ast.ArrayLiteral:
		in.cost.bytes += bytesOfObject + bytesOfElement*len(n.Value)
		in.inside(v)
	case *ast.ObjectPattern:
		if n.Rest != nil && in.allowed != n {
			in.refuse(n, "a rest property, as in {a, ...others}, is not supported here: take it out in a declaration of its own")
		}
		in.inside(v)
	case *ast.ClassLiteral:
		in.cost.bytes += 4 * bytesOfFunction
		in.inside(v)
	case *ast.AwaitExpression:
		in.cost.bytes += bytesOfPromise
		in.inside(v)
	case *ast.CallExpression, *ast.TemplateLiteral, *ast.YieldExpression:
		in.cost.bytes += bytesOfCall
		in.inside(v)
	case *ast.NewExpression:
		in.cost.bytes += 2 * bytesOfCall
		in.inside(v)
	default:
		in.inside(v)
	}
}

// inside walks what stands in the node to which v points.
func (in *instrumenter) inside(v reflect.Value) { in.walk(v.Elem()) }

// function walks a function apart from what it stands in, and has its own cost charged.
func (in *instrumenter) function(walk func(), charge func(cost)) {
	outer := in.cost
	in.cost = cost{}
	walk()
	charge(in.cost)
	in.cost = cost{outer.steps, outer.bytes + bytesOfFunction}
}

// loop walks a loop, and has the cost of a round charged at its begin.
func (in *instrumenter) loop(v reflect.Value, body *ast.Statement) {
	outer := in.cost
	in.cost = cost{}
	in.inside(v)
	at := (*body).Idx0()
	*body = &ast.BlockStatement{LeftBrace: at, List: append(in.charge(in.cost, false), *body), RightBrace: at}
	in.cost = cost{outer.steps + in.cost.steps, outer.bytes + in.cost.bytes}
}

// charge returns code that charges c, and if an error may be kept, for that.
func (in *instrumenter) charge(c cost, keepsError bool, further ...ast.Statement) []ast.Statement {
	if keepsError {
		c.bytes += bytesOfPromise
	}
	list := []ast.Statement{&ast.ExpressionStatement{Expression: call(hookStep, number(c.steps), number(c.bytes))}}
	if keepsError {
		list = append(list, &ast.ExpressionStatement{Expression: call(hookDepth)})
	}
	return append(list, further...)
}

// charged returns the expression to put in the place of e, or nil if e may stay.
func (in *instrumenter) charged(e ast.Expression) ast.Expression {
	switch n := e.(type) {
	case *ast.BinaryExpression:
		if n.Operator == token.PLUS {
			return call(hookMade, n)
		}
	case *ast.AssignExpression:
		if isLength(n.Left) {
			return call(hookLength, n)
		}
		if n.Operator == token.PLUS {
			return call(hookMade, n)
		}
	case *ast.TemplateLiteral:
		if n.Tag == nil {
			return call(hookMade, n)
		}
	case *ast.NewExpression:
		return &ast.SequenceExpression{Sequence: []ast.Expression{call(hookDepth), n}}
	}
	return nil
}

func isLength(e ast.Expression) bool {
	dot, ok := e.(*ast.DotExpression)
	return ok && dot.Identifier.Name == "length"
}

// target has a computed key to which is assigned looked at: arrays grow up to it.
func (in *instrumenter) target(e *ast.Expression) {
	switch n := (*e).(type) {
	case *ast.BracketExpression:
		if _, super := n.Left.(*ast.SuperExpression); super {
			in.refuse(n, "an assignment to super[…] is not supported")
			return
		}
		in.places++
		place := number(in.places)
		n.Left = call(hookObject, place, n.Left)
		n.Member = call(hookKey, place, n.Member)
	case *ast.DotExpression:
		if _, super := n.Left.(*ast.SuperExpression); super {
			in.refuse(n, "an assignment to super is not supported")
		}
	case *ast.ArrayPattern:
		for i := range n.Elements {
			in.noLength(n.Elements[i])
			in.target(&n.Elements[i])
		}
		in.target(&n.Rest)
	case *ast.ObjectPattern:
		for _, p := range n.Properties {
			if keyed, ok := p.(*ast.PropertyKeyed); ok {
				in.noLength(keyed.Value)
				in.target(&keyed.Value)
			}
		}
		in.target(&n.Rest)
	case *ast.AssignExpression: // with a default
		in.noLength(n.Left)
		in.target(&n.Left)
	}
}

// noLength refuses a length as a target where its new value is not seen.
func (in *instrumenter) noLength(e ast.Expression) {
	if e != nil && isLength(e) {
		in.refuse(e, "a length can be assigned to only as in list.length = 0")
	}
}

// into looks at what a loop assigns to.
func (in *instrumenter) into(into ast.ForInto) {
	if e, ok := into.(*ast.ForIntoExpression); ok {
		switch e.Expression.(type) {
		case *ast.Identifier, *ast.ObjectPattern:
		default:
			in.refuse(e.Expression, "a loop needs a variable: for (const x of …)")
		}
	}
}

// declare charges what patterns of declarations copy.
func (in *instrumenter) declare(list []*ast.Binding) {
	for _, b := range list {
		in.rest(b.Target, &b.Initializer)
	}
}

// rest charges what the pattern "to" copies of what it is given.
func (in *instrumenter) rest(to ast.Node, from *ast.Expression) {
	if p, ok := to.(*ast.ObjectPattern); ok && p.Rest != nil && *from != nil {
		*from = call(hookCopy, *from)
		in.allowed = p
	}
}

// parameterRest returns code that charges what a parameter has copied. There may be one.
func (in *instrumenter) parameterRest(list *ast.ParameterList) []ast.Statement {
	for _, b := range list.List {
		if p, ok := b.Target.(*ast.ObjectPattern); ok && p.Rest != nil {
			if name, ok := p.Rest.(*ast.Identifier); ok {
				in.allowed = p
				return []ast.Statement{&ast.ExpressionStatement{Expression: call(hookCopy, &ast.Identifier{Name: name.Name, Idx: name.Idx})}}
			}
		}
	}
	return nil
}

func (in *instrumenter) refuse(n ast.Node, text string) {
	if in.err == nil {
		line := 1
		if n != nil {
			line = in.file.Position(int(n.Idx0()) - in.file.Base()).Line
		}
		in.err = &scriptError{line, text}
	}
}

func call(hook unistring.String, args ...ast.Expression) *ast.CallExpression {
	var at file.Idx
	if len(args) > 0 {
		at = args[len(args)-1].Idx0()
	}
	return &ast.CallExpression{Callee: &ast.Identifier{Name: hook, Idx: at}, LeftParenthesis: at, ArgumentList: args, RightParenthesis: at}
}

func number(n int) *ast.NumberLiteral {
	return &ast.NumberLiteral{Literal: fmt.Sprint(n), Value: int64(n)}
}

// sequence returns an expression that runs statements, which are expressions, and then e.
func sequence(statements []ast.Statement, e ast.Expression) ast.Expression {
	s := &ast.SequenceExpression{}
	for _, st := range statements {
		s.Sequence = append(s.Sequence, st.(*ast.ExpressionStatement).Expression)
	}
	s.Sequence = append(s.Sequence, e)
	return s
}
