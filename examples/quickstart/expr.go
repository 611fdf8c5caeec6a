package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var constants = map[string]float64{"pi": math.Pi, "e": math.E, "phi": math.Phi}

var functions = map[string]func(float64) float64{
	"abs": math.Abs, "sqrt": math.Sqrt, "cbrt": math.Cbrt, "exp": math.Exp,
	"ln": math.Log, "log": math.Log10, "log2": math.Log2,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
	"asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"floor": math.Floor, "ceil": math.Ceil, "round": math.Round,
}

var binaryFunctions = map[string]func(x, y float64) float64{
	"min": math.Min, "max": math.Max, "pow": math.Pow, "hypot": math.Hypot, "atan2": math.Atan2,
}

// An evaluator computes an expression while parsing it by recursive descent:
//
//	sum     = product { ("+" | "-") product } .
//	product = unary { ("*" | "/" | "%") unary } .
//	unary   = { "+" | "-" } power .
//	power   = primary [ "^" unary ] .
//	primary = number | name | name "(" sum { "," sum } ")" | "(" sum ")" .
type evaluator struct {
	rest      string // still to parse
	variables map[string]float64
	err       error // the first one
}

func evaluate(expression string, variables map[string]float64) (float64, error) {
	e := evaluator{rest: expression, variables: variables}
	x := e.sum()
	if e.peek(); e.rest != "" {
		e.fail("unexpected %q", e.rest)
	}
	return x, e.err
}

// fail records an error and skips the rest of the expression.
func (e *evaluator) fail(format string, args ...any) float64 {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
	e.rest = ""
	return 0
}

// peek skips space and returns the next byte, or 0 at the end.
func (e *evaluator) peek() byte {
	e.rest = strings.TrimLeft(e.rest, " \t\r\n")
	if e.rest == "" {
		return 0
	}
	return e.rest[0]
}

// accept consumes the next byte if it is c.
func (e *evaluator) accept(c byte) bool {
	if e.peek() != c {
		return false
	}
	e.rest = e.rest[1:]
	return true
}

func (e *evaluator) expect(c byte) {
	if !e.accept(c) {
		e.fail("missing %q", c)
	}
}

func (e *evaluator) sum() float64 {
	x := e.product()
	for {
		switch {
		case e.accept('+'):
			x += e.product()
		case e.accept('-'):
			x -= e.product()
		default:
			return x
		}
	}
}

func (e *evaluator) product() float64 {
	x := e.unary()
	for {
		switch {
		case e.accept('*'):
			x *= e.unary()
		case e.accept('/'):
			x /= e.divisor()
		case e.accept('%'):
			x = math.Mod(x, e.divisor())
		default:
			return x
		}
	}
}

func (e *evaluator) divisor() float64 {
	x := e.unary()
	if x == 0 {
		return e.fail("division by zero")
	}
	return x
}

func (e *evaluator) unary() float64 {
	switch {
	case e.accept('+'):
		return e.unary()
	case e.accept('-'):
		return -e.unary()
	}
	return e.power()
}

func (e *evaluator) power() float64 {
	x := e.primary()
	if e.accept('^') {
		return math.Pow(x, e.unary())
	}
	return x
}

func (e *evaluator) primary() float64 {
	c := e.peek()
	switch {
	case e.accept('('):
		x := e.sum()
		e.expect(')')
		return x
	case c == '.' || isDigit(c):
		return e.number()
	case isLetter(c):
		name := e.take(func(c byte) bool { return isLetter(c) || isDigit(c) })
		if e.accept('(') {
			return e.call(name)
		}
		if x, ok := e.variables[name]; ok {
			return x
		}
		if x, ok := constants[name]; ok {
			return x
		}
		return e.fail("unknown variable %q", name)
	case c == 0:
		return e.fail("unexpected end of the expression")
	}
	return e.fail("unexpected %q", e.rest)
}

func (e *evaluator) number() float64 {
	isPart := func(c byte) bool { return c == '.' || isDigit(c) }
	literal := e.take(isPart)
	if exponent := strings.TrimLeft(e.rest, "eE"); len(e.rest)-len(exponent) == 1 {
		unsigned := strings.TrimLeft(exponent, "+-")
		if sign := exponent[:len(exponent)-len(unsigned)]; len(sign) <= 1 && unsigned != "" && isDigit(unsigned[0]) {
			e.rest = unsigned
			literal += "e" + sign + e.take(isDigit)
		}
	}
	x, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return e.fail("bad number %q", literal)
	}
	return x
}

// call evaluates the arguments of a function, up to the closing parenthesis,
// and applies it.
func (e *evaluator) call(name string) float64 {
	args := []float64{e.sum()}
	for e.accept(',') {
		args = append(args, e.sum())
	}
	e.expect(')')
	if f := functions[name]; f != nil && len(args) == 1 {
		return f(args[0])
	}
	if f := binaryFunctions[name]; f != nil && len(args) == 2 {
		return f(args[0], args[1])
	}
	return e.fail("unknown function %s with %d arguments", name, len(args))
}

// take consumes the bytes that are part of a token.
func (e *evaluator) take(isPart func(byte) bool) string {
	n := 0
	for n < len(e.rest) && isPart(e.rest[n]) {
		n++
	}
	token := e.rest[:n]
	e.rest = e.rest[n:]
	return token
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
