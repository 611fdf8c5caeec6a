package codemode

import "github.com/dop251/goja"

// hooks returns what the added code of a script calls, in the order of hookNames.
func (b *builtins) hooks() []goja.Value {
	undefined := goja.Undefined()
	return []goja.Value{
		b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
			b.spend(call.Argument(0).ToInteger(), call.Argument(1).ToInteger())
			return undefined
		}),
		b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
			b.made(call.Argument(0))
			return call.Argument(0)
		}),
		b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
			n := b.keys(call.Argument(0))
			b.spend(n/4, bytesOfMember*n)
			return call.Argument(0)
		}),
		b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
			if o, ok := call.Argument(1).(*goja.Object); ok {
				b.objects[call.Argument(0).ToInteger()] = o
			}
			return call.Argument(1)
		}),
		b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
			// A key that is an object is read once more by the assignment, and may say another then.
			key := call.Argument(1)
			if _, ok := key.(*goja.Object); ok {
				key = key.ToString()
			}
			place := call.Argument(0).ToInteger()
			o := b.objects[place]
			delete(b.objects, place) // else what runs in between could leave another there
			b.key(o, key)
			return key
		}),
		b.rt.ToValue(func(call goja.FunctionCall) goja.Value {
			if n := call.Argument(0).ToFloat(); n > maxLength {
				b.fail("a length of %.0f is too long: %d is the limit", n, maxLength)
			} else if n > 0 {
				b.spend(0, bytesOfElement*int64(n))
			}
			return call.Argument(0)
		}),
		b.rt.ToValue(func(goja.FunctionCall) goja.Value {
			b.depth()
			return undefined
		}),
	}
}
