package codemode

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
	"github.com/mcphybrid/mcphybrid/internal/expression"
)

var errBacktracking = errors.New("lookarounds (?=…) (?!…) (?<=…) and backreferences are not supported in regular expressions")

var errTooLarge = errors.New("the regular expression is too large")

// maxInstructions is how many instructions a regular expression may have: x{1000} has 1,000.
const maxInstructions = 1 << 14

// An allowance is what is left of what regular expressions may take. Those that a script is written
// with are read and compiled before it runs, so they share one.
type allowance struct{ reading, instructions int64 }

func newAllowance() *allowance { return &allowance{expression.MaxReading, maxInstructions} }

// checkPattern returns how many instructions a regular expression has, or why it can't be used. The
// interpreter runs most in a time that is proportional to the text, and all others by
// backtracking, which may take for ever.
func checkPattern(pattern, flags string, left *allowance) (instructions int, err error) {
	re2, err := parser.TransformRegExp(pattern, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	var incompatible parser.RegexpErrorIncompatible
	if errors.As(err, &incompatible) {
		return 0, errBacktracking
	}
	if err != nil {
		return 0, fmt.Errorf("the regular expression is wrong: %w", err)
	}
	if strings.Contains(flags, "i") {
		re2 = "(?i)" + re2
	}
	if left.reading -= expression.ReadingCost(re2); left.reading < 0 {
		return 0, errTooLarge
	}
	parsed, err := syntax.Parse(re2, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the regular expression can't be used: %w", err)
	}
	if left.instructions -= expression.SizeOf(parsed).Instructions; left.instructions < 0 {
		return 0, errTooLarge
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// pattern checks what becomes a regular expression.
func (b *builtins) pattern(pattern, flags goja.Value) {
	source, marks := "", ""
	if o, ok := pattern.(*goja.Object); ok && o.ClassName() == "RegExp" {
		source = o.Get("source").String()
	} else if pattern != nil && !goja.IsUndefined(pattern) {
		source = pattern.String()
	}
	if flags != nil && !goja.IsUndefined(flags) {
		marks = flags.String()
	}
	b.spend(int64(len(source)), bytesOfRegExp+100*int64(len(source)))
	n, err := checkPattern(source, marks, newAllowance())
	if err != nil {
		b.fail("%v", err)
	}
	b.spend(0, 100*int64(n))
	b.inst = max(b.inst, int64(n))
}

// search charges for looking through a text by a regular expression. The charge is what that
// may take at most if all is set, and else only checked: the caller charges what it took.
func (b *builtins) search(call goja.FunctionCall, all bool) {
	n := int64(0)
	if len(call.Arguments) > 0 {
		s := call.Arguments[0].ToString()
		call.Arguments[0] = s
		n = int64(s.(goja.String).Length())
	}
	if n > maxSubject {
		b.fail("a text of %d characters is too long for a regular expression: %d is the limit, split it first", n, maxSubject)
	}
	most := n * (1 + b.inst/16)
	if b.fits(most); all {
		b.spend(most, 0)
	}
}

func (b *builtins) installRegExps() {
	b.inst = 100 // those of the script itself are shorter than that, or the next is larger
	original := b.object("RegExp")
	proto := b.object("RegExp", "prototype")
	fresh := b.rt.ToValue(func(call goja.ConstructorCall) *goja.Object {
		b.pattern(call.Argument(0), call.Argument(1))
		o, err := b.rt.New(original, call.Arguments...)
		if err != nil {
			panic(err)
		}
		return o
	}).(*goja.Object)
	must(fresh.DefineDataProperty("prototype", proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	must(fresh.DefineDataProperty("name", b.rt.ToValue("RegExp"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(proto.DefineDataProperty("constructor", fresh, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	b.define(b.rt.GlobalObject(), "RegExp", fresh)

	b.wrap(proto, func(call goja.FunctionCall) { b.search(call, false) }, func(v goja.Value) {
		if o, ok := v.(*goja.Object); ok { // how far it got is the end of the match, more or less
			if at := o.Get("index"); at != nil {
				b.spend(at.ToInteger()/64+16, bytesOfObject+bytesOfElement*b.length(o))
			}
		}
	}, "exec")
	b.wrap(proto, func(call goja.FunctionCall) { b.search(call, true) }, nil, "test")

	strs := b.object("String", "prototype")
	symbols := func(symbol *goja.Symbol, charge costOf, returned func(goja.Value)) {
		f, _ := goja.AssertFunction(proto.GetSymbol(symbol))
		must(proto.SetSymbol(symbol, b.rt.ToValue(b.charging(f, charge, returned, false))))
	}
	all := func(call goja.FunctionCall) { b.search(call, true) }
	symbols(goja.SymMatch, all, b.array)
	symbols(goja.SymMatchAll, all, nil)
	symbols(goja.SymSearch, all, nil)
	symbols(goja.SymSplit, all, b.array)
	replace, _ := goja.AssertFunction(proto.GetSymbol(goja.SymReplace))
	must(proto.SetSymbol(goja.SymReplace, b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
		args := []goja.Value{call.Argument(0), b.replacement(call.Argument(1))}
		b.search(goja.FunctionCall{Arguments: args}, true)
		b.made(args[0])
		return b.must(replace(call.This, args...))
	})))
	for _, name := range []string{"match", "matchAll", "search"} {
		f, _ := goja.AssertFunction(strs.Get(name))
		b.define(strs, name, func(call goja.FunctionCall) goja.Value {
			what := call.Argument(0)
			if o, ok := what.(*goja.Object); !ok || o.ClassName() != "RegExp" {
				if !goja.IsUndefined(what) {
					what = what.ToString()
				}
				b.pattern(what, nil)
			}
			return b.must(f(onlyText(call.This), what))
		})
	}
	for _, name := range []string{"replace", "replaceAll"} {
		f, _ := goja.AssertFunction(strs.Get(name))
		b.define(strs, name, func(call goja.FunctionCall) goja.Value {
			this, what, with := onlyText(call.This), call.Argument(0), b.replacement(call.Argument(1))
			if o, ok := what.(*goja.Object); ok && o.ClassName() == "RegExp" {
				return b.must(f(this, what, with))
			}
			what = what.ToString()
			long := int64(b.length(this))
			b.spend(long/8, 2*long)
			return b.must(f(this, what, with))
		})
	}
	split, _ := goja.AssertFunction(strs.Get("split"))
	b.define(strs, "split", func(call goja.FunctionCall) goja.Value {
		args := slices.Clone(call.Arguments)
		this := onlyText(call.This)
		if o, ok := call.Argument(0).(*goja.Object); (!ok || o.ClassName() != "RegExp") && !goja.IsUndefined(call.Argument(0)) {
			args[0] = args[0].ToString()
			s := this.String()
			parts := int64(strings.Count(s, args[0].String())) + 1
			b.spend(parts+int64(len(s))/16, 64*parts+2*int64(len(s)))
		}
		return b.must(split(this, args...))
	})
}

// onlyText returns the text of an object on which a function of texts is called.
func onlyText(this goja.Value) goja.Value {
	if o, ok := this.(*goja.Object); ok {
		return o.ToString()
	}
	return this
}

// replacement returns a function that returns what takes the place of a match, and charges for that.
func (b *builtins) replacement(v goja.Value) goja.Value {
	f, ok := goja.AssertFunction(v)
	if !ok {
		template := v.String()
		f = func(_ goja.Value, args ...goja.Value) (goja.Value, error) { return b.expanded(template, args), nil }
	}
	return b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
		b.spend(1, bytesOfObject)
		s := b.must(f(goja.Undefined(), call.Arguments...)).ToString()
		b.made(s)
		return s
	})
}

// expanded returns a replacement text with what its signs $ stand for. args are the match, its
// groups, its place, the whole text and, if groups have names, these.
func (b *builtins) expanded(template string, args []goja.Value) goja.Value {
	if !strings.Contains(template, "$") {
		return b.rt.ToValue(template)
	}
	n := len(args)
	named, _ := args[n-1].(*goja.Object)
	if named != nil {
		n--
	}
	whole, at := args[n-1].(goja.String), int(args[n-2].ToInteger())
	groups := args[:n-2]
	out := new(goja.StringBuilder)
	put := func(v goja.Value) {
		if v != nil && !goja.IsUndefined(v) {
			s := v.ToString().(goja.String)
			b.made(s)
			out.WriteString(s)
		}
	}
	for template != "" {
		sign := strings.IndexByte(template, '$')
		if sign < 0 || sign == len(template)-1 {
			put(b.rt.ToValue(template))
			break
		}
		put(b.rt.ToValue(template[:sign]))
		rest := template[sign+1:]
		used := 1
		switch c := rest[0]; {
		case c == '$':
			put(b.rt.ToValue("$"))
		case c == '&':
			put(groups[0])
		case c == '`':
			put(whole.Substring(0, at))
		case c == '\'':
			put(whole.Substring(min(at+groups[0].(goja.String).Length(), whole.Length()), whole.Length()))
		case c == '<' && named != nil && strings.Contains(rest, ">"):
			used = strings.Index(rest, ">") + 1
			put(named.Get(rest[1 : used-1]))
		case c >= '0' && c <= '9':
			group, digits := int(c-'0'), 1
			if len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' && 10*group+int(rest[1]-'0') < len(groups) {
				group, digits = 10*group+int(rest[1]-'0'), 2
			}
			if used = digits; group > 0 && group < len(groups) {
				put(groups[group])
			} else {
				put(b.rt.ToValue("$" + rest[:digits]))
			}
		default:
			used = 0
			put(b.rt.ToValue("$"))
		}
		template = rest[used:]
	}
	return out.String()
}
