package codemode

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

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
