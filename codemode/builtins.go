package codemode

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

// The limits of what a built-in function takes at once, since nothing can end it before it returns.
const (
	maxLength  = 1 << 20 // elements of an array, or what is used as one
	maxSubject = 1 << 20 // characters in which a regular expression looks
	maxDepth   = 250     // calls of functions in each other
	maxJoined  = 100     // arrays in each other that become one text
)

// removed are the globals that a script does not have: what makes code of text, what escapes the
// meter, and what leads to memory or time outside.
var removed = []string{
	"eval", "Function", "Proxy", "Reflect", "GoError", "BigInt", "WeakMap", "WeakSet", "escape", "unescape",
	"ArrayBuffer", "DataView", "Uint8Array", "Uint8ClampedArray", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array",
	"Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
}

// preparation removes what hangs on prototypes, and returns those that have no name.
const preparation = `(() => {
	const proto = Object.getPrototypeOf;
	for (const f of [function () {}, function* () {}, async () => {}]) delete proto(f).constructor;
	delete Function.prototype.bind;
	delete Function.prototype.caller;
	delete Function.prototype.arguments;
	delete String.raw;
	delete RegExp.prototype.compile;
	delete JSON.rawJSON;
	delete JSON.isRawJSON;
	return [[][Symbol.iterator](), ""[Symbol.iterator](), new Map().keys(), new Set().keys(), "".matchAll(/x/g)].map(proto);
})()`

// Builtins are the functions of the interpreter that a script is given, with their costs.
type builtins struct {
	*meter
	join    []*goja.Object // the arrays that are joined now
	inst    int64          // instructions of the largest regular expression
	objects map[int64]*goja.Object
	parse   func(text string) goja.Value
	texts   *goja.Object // the prototype of texts
}

// get and set are for own properties of what the interpreter has.
func (b *builtins) object(path ...string) *goja.Object {
	o := b.rt.GlobalObject()
	for _, name := range path {
		o = o.Get(name).(*goja.Object)
	}
	return o
}

// A cost function charges for a call before it is made.
type costOf func(call goja.FunctionCall)

// wrap puts a function that charges first in the place of a built-in one, and charges for what it
// returns: see returned.
func (b *builtins) wrap(o *goja.Object, charge costOf, returned func(goja.Value), names ...string) {
	for _, name := range names {
		original, ok := goja.AssertFunction(o.Get(name))
		if !ok {
			panic("codemode: the interpreter has no " + name)
		}
		b.define(o, name, b.charging(original, charge, returned, o == b.texts))
	}
}

func (b *builtins) charging(original goja.Callable, charge costOf, returned func(goja.Value), ofTexts bool) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		call.Arguments = slices.Clone(call.Arguments)
		if ofTexts {
			call.This = onlyText(call.This)
		}
		charge(call)
		v, err := original(call.This, call.Arguments...)
		if err != nil {
			panic(err)
		}
		if returned != nil {
			returned(v)
		}
		return v
	}
}

func (b *builtins) define(o *goja.Object, name string, f any) {
	must(o.DefineDataProperty(name, b.rt.ToValue(f), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// length returns how long v is: a text, or what has a length as arrays do. It refuses what is too long.
func (b *builtins) length(v goja.Value) int64 {
	switch v := v.(type) {
	case nil:
		return 0
	case goja.String:
		return int64(v.Length())
	case *goja.Object:
		if n := v.Get("length"); n != nil {
			if n := n.ToFloat(); n > maxLength {
				b.fail("an array of %.0f elements is too long: %d is the limit", n, maxLength)
			} else if n > 0 {
				return int64(n)
			}
		}
	}
	return 0
}

// keys returns how many properties v has.
func (b *builtins) keys(v goja.Value) int64 {
	switch v := v.(type) {
	case goja.String:
		return int64(v.Length())
	case *goja.Object:
		switch v.ClassName() {
		case "Array":
			b.length(v)
		case "String":
			return int64(len(v.String()))
		}
		return int64(len(v.GetOwnPropertyNames()))
	}
	return 0
}

// integer returns the number that v is. It does not export objects: that would copy all that is in them.
func integer(v goja.Value) (n int64, ok bool) {
	if _, isObject := v.(*goja.Object); v == nil || isObject {
		return 0, false
	}
	switch x := v.Export().(type) {
	case int64:
		return x, true
	case float64:
		return int64(x), x == float64(int64(x))
	}
	return 0, false
}

// texts returns how long all texts among the values are together.
func texts(values []goja.Value) (n int64) {
	for _, v := range values {
		if s, ok := v.(goja.String); ok {
			n += int64(s.Length())
		}
	}
	return n
}

// made charges for a text that an expression has made.
func (b *builtins) made(v goja.Value) {
	if s, ok := v.(goja.String); ok {
		n := int64(s.Length())
		b.spend(n/64, 2*n+bytesOfElement)
	}
}

// array charges for the elements of an array that was made.
func (b *builtins) array(v goja.Value) {
	if _, ok := v.(*goja.Object); ok {
		n := b.length(v)
		b.spend(n/8, 48*n)
	}
}

func (b *builtins) install() {
	rt := b.rt
	b.failed, b.texts = b.object("Error"), b.object("String", "prototype")
	prototypes, err := rt.RunString(preparation)
	must(err)
	for i := range 5 {
		iterator := prototypes.(*goja.Object).Get(strconv.Itoa(i)).(*goja.Object)
		b.wrap(iterator, func(goja.FunctionCall) { b.spend(1, 100) }, nil, "next")
	}
	b.installArrays()
	b.installStrings()
	b.installRegExps()
	b.installObjects()
	b.installDates()
	b.installJSON()
	for _, name := range removed {
		must(rt.GlobalObject().Delete(name))
	}
	define := func(name string, f any) { b.define(rt.GlobalObject(), name, f) }
	define("console", rt.NewObject())
	for _, name := range []string{"log", "info", "warn", "error", "debug"} {
		b.define(b.object("console"), name, func(goja.FunctionCall) goja.Value { return goja.Undefined() })
	}
	rt.SetRandSource(func() float64 { b.fail("there is no chance here: Math.random is not supported"); return 0 })
}

// elements returns the length of an array or a text on which a function of arrays is called. What
// else has a length may say another one when it is asked again.
func (b *builtins) elements(v goja.Value) int64 {
	if o, ok := v.(*goja.Object); ok && o.ClassName() != "Array" {
		b.fail("this works on arrays only: make one with Array.from first")
	}
	return b.length(v)
}

func (b *builtins) installArrays() {
	proto := b.object("Array", "prototype")
	read := func(call goja.FunctionCall) {
		n := b.elements(call.This)
		needle := int64(0)
		if s, ok := call.Argument(0).(goja.String); ok {
			needle = int64(s.Length())
		}
		b.spend(n/4+n*(needle/64), 0)
	}
	write := func(call goja.FunctionCall) {
		n := b.elements(call.This) + int64(len(call.Arguments))
		b.spend(n/4, 2*bytesOfElement*n)
	}
	b.wrap(proto, read, nil, "every", "find", "findIndex", "findLast", "findLastIndex", "forEach", "includes", "indexOf", "lastIndexOf",
		"reduce", "reduceRight", "reverse", "some", "copyWithin", "fill", "pop", "shift", "at")
	b.wrap(proto, write, nil, "filter", "map", "slice", "splice", "with", "toReversed", "toSpliced", "unshift")
	b.wrap(proto, func(call goja.FunctionCall) {
		n := b.elements(call.This)
		for i, a := range call.Arguments {
			if o, ok := a.(*goja.Object); !ok || o.ClassName() != "Array" {
				call.Arguments[i] = b.rt.NewArray(a) // whatever it says of itself
			} else {
				n += b.length(o)
			}
		}
		b.spend(n/4, 2*bytesOfElement*n)
	}, nil, "concat")
	b.wrap(proto, func(call goja.FunctionCall) { // adds to what is there
		b.elements(call.This)
		b.spend(0, 2*bytesOfElement*int64(len(call.Arguments)))
	}, nil, "push")
	b.wrap(proto, func(call goja.FunctionCall) {
		n, long := b.elements(call.This), int64(0)
		if o, ok := call.This.(*goja.Object); ok && goja.IsUndefined(call.Argument(0)) {
			for i := range n {
				b.spend(1, 0)
				if s, ok := o.Get(strconv.FormatInt(i, 10)).(goja.String); ok {
					long += int64(s.Length())
				}
			}
		}
		b.spend((n+long/32)*int64(bits.Len64(uint64(n))), 2*bytesOfElement*n)
	}, nil, "sort", "toSorted")
	b.wrap(proto, func(call goja.FunctionCall) { b.length(call.This) }, nil, "keys", "entries", "values")
	b.define(proto, "flat", func(call goja.FunctionCall) goja.Value {
		depth := 1.0
		if d := call.Argument(0); !goja.IsUndefined(d) {
			depth = d.ToFloat()
		}
		b.elements(call.This)
		return b.rt.NewArray(b.flattened(nil, call.This.ToObject(b.rt), depth, maxJoined)...)
	})
	flatMap, _ := goja.AssertFunction(proto.Get("flatMap"))
	b.define(proto, "flatMap", func(call goja.FunctionCall) goja.Value {
		read(call)
		args := call.Arguments
		if f, ok := goja.AssertFunction(call.Argument(0)); ok {
			args = append([]goja.Value{b.rt.ToValue(b.charging(f, func(goja.FunctionCall) {}, func(v goja.Value) {
				if o, ok := v.(*goja.Object); ok && o.ClassName() == "Array" {
					b.spend(0, 2*bytesOfElement*b.length(o))
				}
				b.spend(0, bytesOfElement)
			}, false))}, args[1:]...)
		}
		return b.must(flatMap(call.This, args...))
	})
	b.define(proto, "join", func(call goja.FunctionCall) goja.Value {
		separator := ","
		if s := call.Argument(0); !goja.IsUndefined(s) {
			separator = s.String()
		}
		return b.joined(call.This, separator)
	})
	b.define(proto, "toLocaleString", func(call goja.FunctionCall) goja.Value { return b.joined(call.This, ",") })
	must(proto.SetSymbol(goja.SymIterator, proto.Get("values")))

	array := b.object("Array")
	original := array
	construct := func(call goja.ConstructorCall) *goja.Object {
		if len(call.Arguments) == 1 {
			if n, ok := integer(call.Argument(0)); ok {
				if n > maxLength {
					b.fail("an array of %d elements is too long: %d is the limit", n, maxLength)
				}
				b.spend(n/64, bytesOfElement*max(n, 0))
			}
		}
		o, err := b.rt.New(original, call.Arguments...)
		if err != nil {
			panic(err)
		}
		if call.This != nil {
			must(o.SetPrototype(call.This.Prototype()))
		}
		return o
	}
	fresh := b.rt.ToValue(construct).(*goja.Object)
	must(fresh.DefineDataProperty("prototype", proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	must(fresh.DefineDataProperty("name", b.rt.ToValue("Array"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	for _, name := range []string{"from", "isArray", "of"} {
		must(fresh.DefineDataProperty(name, array.Get(name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	}
	b.wrap(fresh, func(call goja.FunctionCall) {
		if o, ok := call.Argument(0).(*goja.Object); ok && o.ClassName() != "Array" {
			call.Arguments[0] = b.listed(o)
		}
	}, b.array, "from")
	must(proto.DefineDataProperty("constructor", fresh, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	b.define(b.rt.GlobalObject(), "Array", fresh)
}

func (b *builtins) must(v goja.Value, err error) goja.Value {
	if err != nil {
		panic(err)
	}
	return v
}

// flattened appends the elements of an array, and of those in it down to a depth.
func (b *builtins) flattened(list []any, o *goja.Object, depth float64, most int) []any {
	if most == 0 {
		b.fail("arrays are nested too deep to be flat")
	}
	for i := range b.length(o) {
		e := o.Get(strconv.FormatInt(i, 10))
		b.spend(1, 2*bytesOfElement)
		if inner, ok := e.(*goja.Object); ok && depth >= 1 && inner.ClassName() == "Array" {
			list = b.flattened(list, inner, depth-1, most-1)
		} else if e != nil {
			list = append(list, e)
		}
	}
	if len(list) > maxLength {
		b.fail("an array of %d elements is too long: %d is the limit", len(list), maxLength)
	}
	return list
}

// listed returns what stands for o where its elements are read: what is iterated in its way, else
// an array. Its own properties are read once, for they may say another thing each time.
func (b *builtins) listed(o *goja.Object) goja.Value {
	if iterate, ok := goja.AssertFunction(o.GetSymbol(goja.SymIterator)); ok {
		fresh := b.rt.NewObject()
		must(fresh.SetSymbol(goja.SymIterator, func(goja.FunctionCall) goja.Value { return b.must(iterate(o)) }))
		return fresh
	}
	return b.copied(o)
}

// copied returns the elements of what has a length, as an array.
func (b *builtins) copied(o *goja.Object) *goja.Object {
	var list []any
	for i := range b.length(o) {
		b.spend(1, 2*bytesOfElement)
		e := o.Get(strconv.FormatInt(i, 10))
		if e == nil {
			e = goja.Undefined()
		}
		list = append(list, e)
	}
	return b.rt.NewArray(list...)
}

// joined is the join of arrays. Each element is charged before it is written.
func (b *builtins) joined(this goja.Value, separator string) goja.Value {
	o := this.ToObject(b.rt)
	for _, outer := range b.join {
		if outer == o {
			return b.rt.ToValue("")
		}
	}
	if len(b.join) >= maxJoined {
		b.fail("arrays are nested too deep to be one text")
	}
	b.join = append(b.join, o)
	defer func() { b.join = b.join[:len(b.join)-1] }()
	var text strings.Builder
	for i := range b.length(o) {
		if i > 0 {
			b.spend(1, 2*int64(len(separator)))
			text.WriteString(separator)
		}
		if e := o.Get(strconv.FormatInt(i, 10)); e != nil && !goja.IsUndefined(e) && !goja.IsNull(e) {
			s := e.String()
			b.spend(1+int64(len(s)/64), 2*int64(len(s)))
			text.WriteString(s)
		}
	}
	return b.rt.ToValue(text.String())
}

func (b *builtins) installStrings() {
	proto := b.object("String", "prototype")
	read := func(call goja.FunctionCall) {
		b.spend((texts(call.Arguments)+b.length(call.This))/16, 0)
	}
	write := func(factor int64) costOf {
		return func(call goja.FunctionCall) {
			n := texts(call.Arguments) + b.length(call.This)
			b.spend(n/16, 2*factor*n)
		}
	}
	b.wrap(proto, b.onText(read), nil, "endsWith", "includes", "indexOf", "lastIndexOf", "startsWith")
	b.wrap(proto, b.onText(write(1)), nil, "slice", "substring", "substr", "trim", "trimEnd", "trimStart", "trimLeft", "trimRight")
	b.wrap(proto, b.onText(write(3)), nil, "toLowerCase", "toUpperCase", "toLocaleLowerCase", "toLocaleUpperCase")
	b.wrap(proto, b.onText(write(20)), nil, "normalize", "localeCompare")
	b.wrap(proto, b.onText(func(call goja.FunctionCall) {
		b.large(float64(b.length(call.This)) * max(b.number(call), 0))
	}), nil, "repeat")
	b.wrap(proto, b.onText(func(call goja.FunctionCall) { b.large(b.number(call)) }), nil, "padStart", "padEnd")
	for _, of := range []string{"Object", "Function", "Error", "RegExp", "Symbol"} { // each makes a text of a name
		b.wrap(b.object(of, "prototype"), func(goja.FunctionCall) {}, b.made, "toString")
	}
	b.define(proto, "concat", func(call goja.FunctionCall) goja.Value {
		text := new(goja.StringBuilder)
		for _, v := range append([]goja.Value{call.This}, call.Arguments...) {
			s := v.ToString().(goja.String)
			b.made(s)
			text.WriteString(s)
		}
		return text.String()
	})
}

// onText returns a charge for a function of texts, whose object and arguments are texts from then on:
// an object may be another text each time.
func (b *builtins) onText(charge costOf) costOf {
	return func(call goja.FunctionCall) {
		for i, a := range call.Arguments {
			if o, ok := a.(*goja.Object); ok {
				call.Arguments[i] = o.ToString()
			}
		}
		charge(call)
	}
}

// number returns the first argument as a number, which it is from then on.
func (b *builtins) number(call goja.FunctionCall) float64 {
	if len(call.Arguments) == 0 {
		return 0
	}
	call.Arguments[0] = call.Arguments[0].ToNumber()
	return call.Arguments[0].ToFloat()
}

// large charges for a text of n characters, before it is made.
func (b *builtins) large(n float64) {
	if n > float64(b.options.Memory) {
		n = float64(b.options.Memory)
	}
	if n > 0 {
		b.spend(int64(n)/64, 2*int64(n))
	}
}

var errBacktracking = errors.New("lookarounds (?=…) (?!…) (?<=…) and backreferences are not supported in regular expressions")

// checkPattern returns how many instructions a regular expression has, or why it can't be used. The
// interpreter runs most in a time that is proportional to the text, and all others by
// backtracking, which may take for ever.
func checkPattern(pattern, flags string) (instructions int, err error) {
	re2, err := parser.TransformRegExp(pattern, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	var incompatible parser.RegexpErrorIncompatible
	if errors.As(err, &incompatible) {
		return 0, errBacktracking
	}
	if err != nil {
		return 0, fmt.Errorf("the regular expression is wrong: %w", err)
	}
	if _, err := regexp.Compile(re2); err != nil {
		return 0, fmt.Errorf("the regular expression can't be used: %w", err)
	}
	parsed, err := syntax.Parse(re2, syntax.Perl)
	if err != nil {
		return 0, err
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
	n, err := checkPattern(source, marks)
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

func (b *builtins) installObjects() {
	keys := func(call goja.FunctionCall) {
		n := int64(0)
		for _, a := range call.Arguments {
			n += b.keys(a)
		}
		b.spend(n/4, 200*n)
	}
	b.wrap(b.object("Object"), keys, nil, "entries", "keys", "values", "getOwnPropertyNames", "getOwnPropertyDescriptors",
		"seal", "freeze", "isSealed", "isFrozen", "create")
	b.wrap(b.object("Object"), func(call goja.FunctionCall) {
		if o, ok := call.Argument(0).(*goja.Object); ok && o.ClassName() == "Array" {
			b.fail("an array can't be changed by that function")
		}
		keys(call)
	}, nil, "assign", "defineProperties")
	b.wrap(b.object("Object"), func(call goja.FunctionCall) {
		if o, ok := call.Argument(0).(*goja.Object); ok && o.ClassName() == "Array" {
			b.key(o, call.Argument(1).ToString())
		}
	}, nil, "defineProperty")
	b.wrap(b.object("Object"), func(call goja.FunctionCall) { b.length(call.Argument(0)) }, nil, "fromEntries")
	b.wrap(b.object("Function", "prototype"), func(call goja.FunctionCall) {
		if o, ok := call.Argument(1).(*goja.Object); ok && o.ClassName() != "Array" {
			call.Arguments[1] = b.copied(o)
		}
		n := b.length(call.Argument(1))
		b.spend(n/4, 2*bytesOfElement*n)
	}, nil, "apply")
	for _, name := range []string{"encodeURI", "encodeURIComponent", "decodeURI", "decodeURIComponent"} {
		b.wrap(b.rt.GlobalObject(), func(call goja.FunctionCall) {
			for i, a := range call.Arguments {
				call.Arguments[i] = a.ToString()
			}
			n := texts(call.Arguments)
			b.spend(n/8, 12*n)
		}, nil, name)
	}
	b.wrap(b.object("Promise"), func(call goja.FunctionCall) {
		n := b.length(call.Argument(0))
		b.spend(n, 1000*n)
	}, nil, "all", "allSettled", "any", "race")
	b.wrap(b.object("Promise", "prototype"), func(goja.FunctionCall) { b.spend(10, bytesOfPromise) }, nil, "then", "catch", "finally")
	b.wrap(b.object("Promise"), func(goja.FunctionCall) { b.spend(10, bytesOfPromise) }, nil, "resolve", "reject")
	size := func(v goja.Value) int64 {
		if o, ok := v.(*goja.Object); ok {
			if n := o.Get("size"); n != nil {
				return int64(min(max(n.ToFloat(), 0), maxLength))
			}
		}
		return 0
	}
	b.wrap(b.object("Set", "prototype"), func(call goja.FunctionCall) {
		n := size(call.This) + size(call.Argument(0))
		b.spend(n, 200*n)
	}, nil, "difference", "intersection", "isDisjointFrom", "isSubsetOf", "isSupersetOf", "symmetricDifference", "union")
}

// key charges for the elements that an array may get if one is set by that key.
func (b *builtins) key(o *goja.Object, key goja.Value) {
	if o != nil && o.ClassName() == "Array" && key.String() == "length" {
		b.fail("the length of an array can be assigned to only as in list.length = 0")
	}
	n, ok := integer(key)
	if s, isText := key.(goja.String); isText && s.Length() < 20 {
		var err error
		n, err = strconv.ParseInt(s.String(), 10, 64)
		ok = err == nil
	}
	if !ok || n < 0 {
		return
	}
	has := int64(0)
	if o != nil {
		if o.ClassName() != "Array" {
			return
		}
		has = o.Get("length").ToInteger()
	}
	if n > maxLength {
		b.fail("an array can't have an element %d: %d is the limit", n, maxLength)
	}
	if n > has {
		b.spend(0, bytesOfElement*(n-has))
	}
}
