package codemode

import (
	"slices"
	"strconv"

	"github.com/dop251/goja"
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

func (b *builtins) must(v goja.Value, err error) goja.Value {
	if err != nil {
		panic(err)
	}
	return v
}
