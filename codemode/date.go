package codemode

import (
	"time"

	"github.com/dop251/goja"
)

// dateLayouts are the texts that become a date. A text without a zone is in UTC, so that a script
// does not depend on where it runs.
var dateLayouts = []string{
	time.RFC3339Nano, "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01",
	"2006", time.RFC1123, time.RFC1123Z, "Jan 2, 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006", "2006/01/02", "01/02/2006", "Mon Jan 2 2006",
}

const noClock = "there is no clock here: take the time from a tool, or from what you know"

// utc makes each function of dates in the zone of the machine one in UTC.
const utc = `(() => {
	const p = Date.prototype;
	for (const name of Object.getOwnPropertyNames(p)) {
		const m = /^(get|set)UTC(.*)$/.exec(name);
		if (m) p[m[1] + m[2]] = p[name];
	}
	p.getTimezoneOffset = () => 0;
	p.toString = p.toUTCString;
	p.toLocaleString = p.toISOString;
	p.toDateString = p.toLocaleDateString = function () { return this.toISOString().slice(0, 10) };
	p.toTimeString = p.toLocaleTimeString = function () { return this.toISOString().slice(11, 19) };
})()`

func (b *builtins) installDates() {
	_, err := b.rt.RunString(utc)
	must(err)
	original := b.object("Date")
	proto := b.object("Date", "prototype")
	universal, _ := goja.AssertFunction(original.Get("UTC"))
	parse := func(v goja.Value) goja.Value {
		text := v.String()
		for _, layout := range dateLayouts {
			if t, err := time.Parse(layout, text[:min(len(text), 100)]); err == nil {
				return b.rt.ToValue(t.UnixMilli())
			}
		}
		return goja.NaN()
	}
	fresh := b.rt.ToValue(func(call goja.ConstructorCall) *goja.Object {
		var ms goja.Value
		switch len(call.Arguments) {
		case 0:
			b.fail(noClock)
		case 1:
			v := call.Argument(0)
			if o, ok := v.(*goja.Object); ok {
				if o.ClassName() == "Date" {
					v = o.ToNumber()
				} else {
					v = o.ToString()
				}
			}
			if ms = v; goja.IsString(v) {
				ms = parse(v)
			}
		default:
			ms = b.must(universal(goja.Undefined(), call.Arguments...))
		}
		o, err := b.rt.New(original, ms.ToNumber())
		if err != nil {
			panic(err)
		}
		return o
	}).(*goja.Object)
	must(fresh.DefineDataProperty("prototype", proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	must(fresh.DefineDataProperty("name", b.rt.ToValue("Date"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	b.define(fresh, "UTC", original.Get("UTC"))
	b.define(fresh, "parse", func(call goja.FunctionCall) goja.Value { return parse(call.Argument(0)) })
	b.define(fresh, "now", func(goja.FunctionCall) goja.Value { b.fail(noClock); return nil })
	must(proto.DefineDataProperty("constructor", fresh, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	b.define(b.rt.GlobalObject(), "Date", fresh)
}
