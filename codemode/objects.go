package codemode

import (
	"strconv"

	"github.com/dop251/goja"
)

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
