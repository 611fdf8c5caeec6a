package codemode

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// maxNesting is how deep JSON may be nested that a script reads or writes.
const maxNesting = 500

func (b *builtins) installJSON() {
	object := b.object("JSON")
	parse, _ := goja.AssertFunction(object.Get("parse"))
	b.define(object, "parse", func(call goja.FunctionCall) goja.Value {
		b.readable(call.Argument(0).String())
		return b.must(parse(call.This, call.Arguments...))
	})
	b.parse = func(text string) goja.Value {
		b.readable(text)
		return b.must(parse(goja.Undefined(), b.rt.ToValue(text)))
	}
	b.define(object, "stringify", func(call goja.FunctionCall) goja.Value {
		w := &writer{b: b, indent: indentOf(call.Argument(2))}
		if o, ok := call.Argument(1).(*goja.Object); ok {
			if f, ok := goja.AssertFunction(o); ok {
				w.replace = f
			} else if o.ClassName() == "Array" {
				w.only = make(map[string]bool)
				for i := range b.length(o) {
					b.spend(1, bytesOfMember)
					w.only[o.Get(strconv.FormatInt(i, 10)).String()] = true
				}
			}
		}
		if !w.value(nil, "", call.Argument(0)) {
			return goja.Undefined()
		}
		return b.rt.ToValue(string(w.out))
	})
}

// text returns v as JSON, or "" for what has none, as undefined.
func (b *builtins) text(v goja.Value) string {
	w := &writer{b: b}
	w.value(nil, "", v)
	return string(w.out)
}

// readable charges for the values that a JSON text becomes, and refuses one that is nested too deep.
func (b *builtins) readable(text string) {
	depth, deepest, bytes := 0, 0, int64(2*len(text))
	inText := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
			bytes += bytesOfObject
		case c == '}' || c == ']':
			depth--
		case c == ',':
			bytes += bytesOfElement
		case c == ':':
			bytes += bytesOfMember
		}
	}
	if deepest > maxNesting {
		b.fail("the JSON is nested deeper than %d", maxNesting)
	}
	b.spend(int64(len(text))/8, bytes)
}

func indentOf(v goja.Value) string {
	if s, ok := v.(goja.String); ok {
		return s.Substring(0, min(s.Length(), 10)).String()
	}
	n, _ := integer(v)
	return strings.Repeat(" ", int(min(max(n, 0), 10)))
}

// A writer writes JSON as JSON.stringify does, and charges for each value before it is written.
type writer struct {
	out     []byte
	b       *builtins
	replace goja.Callable
	only    map[string]bool
	indent  string
	within  []*goja.Object
}

// value writes a member of holder, and reports whether it has a text.
func (w *writer) value(holder *goja.Object, key string, v goja.Value) bool {
	w.b.spend(1, 16)
	if o, ok := v.(*goja.Object); ok {
		if f, ok := goja.AssertFunction(o.Get("toJSON")); ok {
			v = w.b.must(f(o, w.b.rt.ToValue(key)))
		}
	}
	if w.replace != nil {
		if holder == nil {
			holder = w.b.rt.NewObject()
			must(holder.Set("", v))
		}
		v = w.b.must(w.replace(holder, w.b.rt.ToValue(key), v))
	}
	switch v := v.(type) {
	case nil:
		return false
	case goja.String:
		w.string(v.String())
		return true
	case *goja.Symbol:
		return false
	case *goja.Object:
		switch v.ClassName() {
		case "Function":
			return false
		case "String":
			w.string(v.String())
			return true
		case "Number":
			return w.value(nil, key, v.ToNumber())
		case "Boolean":
			return w.value(nil, key, w.b.rt.ToValue(v.Export()))
		}
		if _, ok := goja.AssertFunction(v); ok {
			return false
		}
		w.object(v)
		return true
	}
	switch x := v.Export().(type) {
	case nil:
		if goja.IsUndefined(v) {
			return false
		}
		w.raw("null")
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			w.raw("null")
		} else {
			w.raw(v.String())
		}
	default:
		w.raw(v.String())
	}
	return true
}

func (w *writer) raw(s string) {
	w.b.spend(int64(len(s))/64, 2*int64(len(s)))
	w.out = append(w.out, s...)
}

func (w *writer) string(s string) {
	w.b.spend(int64(len(s))/16, 2*int64(len(s)))
	var line strings.Builder
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	must(e.Encode(s))
	w.raw(strings.TrimSuffix(line.String(), "\n"))
}

func (w *writer) object(o *goja.Object) {
	for _, outer := range w.within {
		if outer == o {
			w.b.fail("a value that contains itself has no JSON")
		}
	}
	if len(w.within) >= maxNesting {
		w.b.fail("the value is nested deeper than %d", maxNesting)
	}
	w.within = append(w.within, o)
	defer func() { w.within = w.within[:len(w.within)-1] }()
	if o.ClassName() == "Array" {
		w.raw("[")
		n := w.b.length(o)
		for i := range n {
			w.next(i > 0)
			if !w.value(o, strconv.FormatInt(i, 10), o.Get(strconv.FormatInt(i, 10))) {
				w.raw("null")
			}
		}
		w.end(n > 0, "]")
		return
	}
	w.raw("{")
	some := false
	w.b.spend(0, bytesOfElement*w.b.keys(o))
	for _, key := range o.Keys() {
		if w.only != nil && !w.only[key] {
			continue
		}
		before := len(w.out)
		w.next(some)
		w.string(key)
		w.raw(":")
		if w.indent != "" {
			w.raw(" ")
		}
		if !w.value(o, key, o.Get(key)) {
			w.out = w.out[:before]
			continue
		}
		some = true
	}
	w.end(some, "}")
}

func (w *writer) next(comma bool) {
	if comma {
		w.raw(",")
	}
	if w.indent != "" {
		w.raw("\n" + strings.Repeat(w.indent, len(w.within)))
	}
}

func (w *writer) end(some bool, bracket string) {
	if some && w.indent != "" {
		w.raw("\n" + strings.Repeat(w.indent, len(w.within)-1))
	}
	w.raw(bracket)
}
