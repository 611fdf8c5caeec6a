package codemode

import (
	"github.com/dop251/goja"
)

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
