package codemode

import (
	"cmp"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
)

// hostile are scripts that try to get out, to hog, to hang, or to call what is not permitted, and
// what each is told.
var hostile = []struct{ name, script, want string }{
	// Out.
	{"require", `return require("fs").readFileSync("/etc/passwd")`, "require is not defined"},
	{"import", `import fs from "fs"; return 1`, "Unexpected"},
	{"dynamic import", `return import("fs")`, "Unexpected"},
	{"process", `return process.env`, "process is not defined"},
	{"fetch", `return fetch("http://127.0.0.1")`, "fetch is not defined"},
	{"the constructor of functions", `return (() => {}).constructor("return this")()`, "Not a function"},
	{"that of async functions", `return Object.getPrototypeOf(async () => {}).constructor("return 1")()`, ""},
	{"that of generators", `return Object.getPrototypeOf(function* () {}).constructor("yield 1")()`, ""},
	{"that of a tool", `return tools.mcp_shop__echo.constructor("return 1")()`, "Not a function"},
	{"eval", `return eval("1")`, "eval is not defined"},
	{"indirect eval", `return (0, globalThis["ev" + "al"])("1")`, ""},
	{"Function", `return new Function("return 1")()`, "Function is not defined"},
	{"a bracket too many", "return 1 }); globalThis.x = (async () => {", "} has no partner"},
	{"a source map", "return nothing //# sourceMappingURL=file:///etc/passwd", "nothing is not defined"},
	{"the clock", `return Date.now()`, "no clock"},
	{"the clock by a new date", `return new Date()`, "no clock"},
	{"the clock by a function", `return Date()`, "no clock"},
	{"the clock by the old constructor", `return new (Object.getPrototypeOf(new Date(0)).constructor)()`, "no clock"},
	{"chance", `return Math.random()`, "no chance"},
	{"timers", `await new Promise(r => setTimeout(r, 10))`, "setTimeout is not defined"},
	{"a Go error", `return new GoError("x")`, "GoError is not defined"},
	{"with", `with ({}) { return 1 }`, "with is not supported"},
	{"another global step", `globalThis["\u0000step"] = () => 0; for (;;);`, "steps"},

	// Hang.
	{"an endless loop", `for (;;) {}`, "steps"},
	{"one that catches", `for (;;) { try { for (;;); } catch (e) {} finally { continue } }`, "steps"},
	{"one in a finally", `try { return 1 } finally { while (true); }`, "steps"},
	{"one in a getter", `return {get a() { for (;;); }}`, "steps"},
	{"one in a toString", `return "" + {toString() { for (;;); }}`, "steps"},
	{"one in a comparison", `return [2, 1].sort(() => { for (;;); })`, "steps"},
	{"one in a toJSON", `return {toJSON() { for (;;); }}`, "steps"},
	{"one in an argument", `return tools.mcp_shop__echo({get text() { for (;;); }})`, "steps"},
	{"one in a then", `await {then() { for (;;); }}`, "steps"},
	{"one in a default", `(function f(a = f()) {})()`, "nested"},
	{"one in a generator", `return [...(function* () { for (;;) yield 1 })()]`, "MB of values"},
	{"one of promises", `const f = () => Promise.resolve().then(f); await f()`, ""},
	{"one of asynchronous calls", `async function f() { await 0; return f() } await f()`, ""},
	{"recursion", `const f = () => f() + 1; return f()`, "may be nested 250 deep"},
	{"recursion by a text", `const o = {toString() { return "" + o }}; return "" + o`, "nested"},
	{"recursion by a getter", `const o = {get a() { return this.a }}; return o.a`, "nested"},
	{"a promise that nothing resolves", `await new Promise(() => {})`, "nothing resolves"},
	{"backtracking", `return /^(?=(a+)+$)/.test("a".repeat(50) + "b")`, "lookarounds"},
	{"backreferences", `return new RegExp("(a*)*\\1$").test("a".repeat(50) + "b")`, "lookarounds"},
	{"backtracking by a text", `return "a".match("(?!b)(a+)+$")`, "lookarounds"},
	{"many repetitions", `return new RegExp("(x{1000}){1000}")`, "can't be used"},
	{"ranges of letters without regard to case", `return /` + strings.Repeat(`[\u0080-\ufffe]`, 1000) + `/i.test("x")`, "too large"},
	{"such ranges by a text", `return new RegExp("[\u0080-\ufffe]".repeat(1e4), "i").test("x")`, "too large"},
	{"such ranges by a pattern", `return new RegExp(/[\u0080-\ufffe][\u0080-\ufffe]/, "i").test("x") + new RegExp(new RegExp("[\u0080-\ufffe]".repeat(1e2)), "i").test("x")`, "too large"},
	{"one such range in each of many", `return [` + strings.Repeat(`/[\u0080-\ufffe]/i,`, 1000) + `].length`, "too large"},
	{"instructions of many", `return [` + strings.Repeat(`/`+strings.Repeat("x{1000}", 16)+`/,`, 200) + `].length`, "too large"},
	{"many instructions", `return /` + strings.Repeat("x{1000}", 1000) + `/.test("x")`, "too large"},
	{"a large pattern on a large text", `const r = new RegExp("[a-z]{500}".repeat(1) + "b"); const s = "a".repeat(1e6); for (;;) r.test(s)`, "steps"},
	{"the search of a long text", `const s = "a".repeat(1e6), l = Array(1e5).fill("a".repeat(1e6) + "b"); for (;;) l.includes(s + "c")`, ""},
	{"sorting long texts", `const l = Array(1e5).fill(0).map((_, i) => i % 2 ? "a".repeat(1e3) : "b"); for (;;) l.sort()`, ""},

	// Hog.
	{"a long text", `return "x".repeat(1e9).length`, "MB of values"},
	{"a long text by padding", `return "x".padEnd(1e10).length`, "MB of values"},
	{"a text that doubles", `let s = "x"; for (;;) s += s`, "MB of values"},
	{"a text that doubles by a template", "let s = 'x'; for (;;) s = `${s}${s}`", "MB of values"},
	{"a text that doubles by concat", `let s = "x"; for (;;) s = s.concat(s, s)`, "MB of values"},
	{"many prefixes", `const l = []; let s = ""; for (;;) { s += "0123456789"; l.push(s) }`, "MB of values"},
	{"a text by join", `return Array(1e6).join("0123456789".repeat(100)).length`, "MB of values"},
	{"a text by join of one", `const s = "x".repeat(1e6); return Array(1e6).fill(s).join("").length`, ""},
	{"a text by nested arrays", `let a = ["xxxxxxxxxx"]; for (let i = 0; i < 40; i++) a = [a, a]; return "" + a`, ""},
	{"a text by replace", `return "a".repeat(1e5).replace(/a/g, "b".repeat(1e5)).length`, ""},
	{"a text by replaceAll", `return "a".repeat(1e5).replaceAll("a", "b".repeat(1e5)).length`, "MB of values"},
	{"a text by its own parts", "return 'a'.repeat(1e5).replace(/a/g, '$`$`$`').length", ""},
	{"a text by a function", `const b = "b".repeat(1e6); return "a".repeat(1e5).replace(/a/g, () => b).length`, ""},
	{"JSON of what is there often", `let a = ["x"]; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify(a).length`, ""},
	{"the result is there often", `let a = ["x"]; for (let i = 0; i < 40; i++) a = [a, a]; return a`, ""},
	{"JSON of what is in itself", `const a = []; a.push(a); return a`, "contains itself"},
	{"deep JSON", `return JSON.parse("[".repeat(1e6))`, "nested deeper"},
	{"deep values", `let a = []; for (let i = 0; i < 2e4; i++) a = [a]; return a`, "nested deeper"},
	{"deep values as a text", `let a = []; for (let i = 0; i < 2e4; i++) a = [a]; return "" + a`, "nested too deep"},
	{"deep values, flat", `let a = []; for (let i = 0; i < 2e4; i++) a = [a]; return a.flat(Infinity).length + "".repeat(1) && (() => { throw Error("flat") })()`, "flat"},
	{"dense JSON", `return JSON.parse("[" + "{},".repeat(5e6) + "0]").length`, "MB of values"},
	{"a long array", `return new Array(1e9).fill(0)`, "too long"},
	{"a long array by its length", `const a = []; a.length = 4e9; return [...a]`, "too long"},
	{"a long array by a key", `const a = []; a[3e9] = 1; return a.map(x => x)`, "an element 3000000000"},
	{"arrays by a key", `const l = []; for (;;) { const a = []; a[4096] = 1; l.push(a) }`, "MB of values"},
	{"arrays by a key, hidden", `const l = [], full = Array(5000).fill(0); const f = d => { (d ? l[l.push([]) - 1] : full)[d ? (f(0), 4096) : 1] = 1 }; for (;;) f(1)`, "MB of values"},
	{"arrays by a key that changes", `const l = []; for (;;) { const a = []; let n = 0; a[{toString: () => n++ ? 4096 : 0}] = 1; l.push(a) }`, "MB of values"},
	{"arrays by a length and a key", `const l = []; for (;;) { const a = []; a.length = 4097; a[4096] = 1; l.push(a) }`, "MB of values"},
	{"arrays by assign", `const l = []; for (;;) l.push(Object.assign([], {length: 5000, 4096: 1}))`, "can't be changed"},
	{"an array from a length", `return Array.from({length: 1e9})`, "too long"},
	{"an array by concat", `let a = [1]; for (;;) a = a.concat(a, a)`, ""},
	{"an array by spread", `let a = [1]; for (;;) a = [...a, ...a]`, ""},
	{"an array by push", `const a = [1]; for (;;) a.push(...a)`, ""},
	{"an array by flatMap", `const b = Array(1e5).fill(0); return b.flatMap(() => b).length`, "MB of values"},
	{"an array by flat", `const b = Array(1e5).fill(0); return Array(1e5).fill(b).flat().length`, ""},
	{"a text by repeat of an object", `const o = {toString: () => "x".repeat(1e6)}; return String.prototype.repeat.call(o, 1e6).length`, "MB of values"},
	{"a text of an object that changes", `let n = 0; const o = {toString: () => n++ ? "x".repeat(1e6) : "x"}; return String.prototype.repeat.call(o, 1e6).length === 1e6 && (() => { throw Error("asked once") })()`, "asked once"},
	{"an array of a length that changes", `let n = 0; return Array.prototype.fill.call({get length() { return n++ ? 1e9 : 1 }}, 0)`, "arrays only"},
	{"an array from a length that changes", `let n = 0; const a = Array.from({get length() { return n++ ? 1e9 : 1 }}); throw Error(a.length)`, "1"},
	{"arguments of a length that changes", `let n = 0; const f = (...a) => a.length; throw Error(f.apply(null, {get length() { return n++ ? 1e9 : 1 }}))`, "1"},
	{"concat of what claims to be an array", `const a = [].concat({[Symbol.isConcatSpreadable]: true, length: 1e9}); throw Error(a.length)`, "1"},
	{"flat of what changes", `const big = Array(1e5).fill([]).map(() => Array(100).fill(0)); const a = []; for (let i = 0; i < 100; i++) { let n = 0; Object.defineProperty(a, i, {get: () => n++ ? big : [], enumerable: true}) }; for (;;) a.flat(3)`, "MB of values"},
	{"names of objects", `const o = {[Symbol.toStringTag]: "x".repeat(1e5)}, a = []; for (;;) a.push(Object.prototype.toString.call(o))`, "MB of values"},
	{"messages of errors", `const e = new Error("x".repeat(1e5)), a = []; for (;;) a.push(e.toString())`, "MB of values"},
	{"the text of a function", `const f = () => "ä` + strings.Repeat("x", 10000) + `", a = []; for (;;) a.push(f.toString())`, "MB of values"},
	{"functions of tools", `const a = []; for (;;) a.push(tools.mcp_shop__echo)`, "MB of values"},
	{"a replacement by its own exec", `const r = /x/g; let n = 0; r.exec = () => ({index: 0, 0: "", length: 1, groups: undefined}); return "x".replace(r, "y".repeat(1e6)).length`, "MB of values"},
	{"objects", `const a = []; for (;;) a.push({})`, "MB of values"},
	{"functions", `const a = []; for (;;) a.push(() => 1)`, "MB of values"},
	{"classes", `const a = []; for (;;) a.push(class { a() {} })`, "MB of values"},
	{"instances of many fields", `class A { ` + fields(500) + ` }; const a = []; for (;;) a.push(new A())`, "MB of values"},
	{"copies of an object", `const o = {}; for (let i = 0; i < 1e4; i++) o["k" + i] = 1; const a = []; for (;;) a.push({...o})`, "MB of values"},
	{"rests of an object", `const o = {}; for (let i = 0; i < 1e4; i++) o["k" + i] = 1; const a = []; for (;;) { const {k1, ...r} = o; a.push(r) }`, "MB of values"},
	{"rests of an argument", `const o = {}; for (let i = 0; i < 1e4; i++) o["k" + i] = 1; const a = []; const f = ({k1, ...r}) => a.push(r); for (;;) f(o)`, "MB of values"},
	{"a map", `const m = new Map(); for (let i = 0;; i++) m.set(i, i)`, "MB of values"},
	{"an object as a map", `const m = {}; for (let i = 0;; i++) m["k" + i] = i`, "MB of values"},
	{"promises", `const a = []; for (;;) a.push((async () => { await new Promise(() => {}) })())`, "MB of values"},
	{"generators", `const a = []; for (;;) { const g = (function* () { yield 1 })(); g.next(); a.push(g) }`, "MB of values"},
	{"errors with deep stacks", `const a = []; const f = d => { if (d) f(d - 1); else for (;;) try { null.x } catch (e) { a.push(e) } }; f(200)`, "MB of values"},
	{"failed promises with deep stacks", `const a = []; const g = async () => null.x; const f = d => { if (d) f(d - 1); else for (;;) a.push(g()) }; f(200)`, "MB of values"},
	{"parts of a text", `const a = []; const s = "x".repeat(1e5); for (;;) a.push(s.split(""))`, "MB of values"},
	{"matches", `const a = []; const s = "x".repeat(1e5); for (;;) a.push(s.match(/x/g))`, ""},
	{"characters", `const a = []; const s = "ä".repeat(1e5); for (;;) a.push([...s])`, ""},
	{"the keys of a text", `const a = []; const s = "x".repeat(1e5); for (;;) a.push(Object.keys(s))`, "MB of values"},
	{"patterns", `const a = []; for (let i = 0;; i++) a.push(new RegExp("[a-z]{900}x" + i))`, ""},
	{"big integers", `return 2n ** 10000000000n`, "BigInt is not supported"},
	{"typed arrays", `return new Uint8Array(1e10)`, "Uint8Array is not defined"},
	{"proxies in proxies", `let p = {}; for (;;) p = new Proxy(p, {})`, "Proxy is not defined"},
	{"bound functions", `let f = () => 1; for (;;) f = f.bind(null)`, "bind"},
	{"a chain of prototypes", `let o = {}; for (;;) o = Object.create(o)`, "MB of values"},
	{"a chain of classes", `let C = class {}; for (let i = 0; i < 500; i++) C = class extends C {}; for (;;) new C()`, ""},
	{"generators in generators", `let g = [1][Symbol.iterator](); for (let i = 0; i < 5000; i++) g = (function* (p) { yield* p })(g); g.next(); for (;;);`, ""},
	{"a chain of lookups", `let o = {}; for (let i = 0; i < 2000; i++) o = Object.create(o); for (;;) o.x`, ""},
	{"promises of promises", `let p = new Promise(() => {}); for (;;) { const q = p; p = new Promise(r => r(q)) }`, "MB of values"},
	{"a getter of a getter", `const f = n => ({get a() { return n > 0 ? f(n - 1).a : 1 }}); return f(1e5).a`, "nested"},
	{"a rest in a loop", `for (const {a, ...r} of [{}]) r`, "not supported here"},
	{"a length in a pattern", `const l = []; [l.length] = [1e9]`, "only as in"},
	{"a field that is a length", `class A extends Array { length = 1e9 }; return [...new A()]`, "field"},
	{"deep source", "return " + strings.Repeat("[", 14000) + strings.Repeat("]", 14000), "nested too deep"},
	{"deep source of signs", "return " + strings.Repeat("- ", 14000) + "1", "nested too deep"},
	{"deep source of functions", "return " + strings.Repeat("a=>", 9000) + "1", "nested too deep"},
	{"a long script", "return 1" + strings.Repeat(" ", maxScript), "more than the limit"},
	{"all names", `for (;;) Object.keys(tools)`, ""},

	// What is not permitted.
	{"a tool that is denied", `return tools.mcp_shop__secret()`, "not permitted"},
	{"one by another name", `return tools["mcp_shop__" + "secret"]({})`, "not permitted"},
	{"one that is unknown", `return tools.mcp_shop__ecko()`, "Did you mean mcp_shop__echo"},
	{"one that changes names", `tools.mcp_shop__echo = () => 1; return tools.mcp_shop__secret()`, "not permitted"},
	{"a meta tool", `return tools.mcp_tool_search({query: "a"})`, "no tool named"},
	{"a script in a script", `return tools.mcp_code__run_script({script: "return 1"})`, "can't run another"},
	{"wrong arguments", "const a = 1;\nreturn tools.mcp_shop__stock({articel: 1})", "line 2"},
	{"arguments in a row", `return tools.mcp_shop__stock("a", "b")`, "takes one argument"},
	{"a text as arguments", `return tools.mcp_shop__stock("a")`, "takes an object"},
	{"deep arguments", `let a = {}; for (let i = 0; i < 1e4; i++) a = {a}; return tools.mcp_shop__echo(a)`, "nested deeper"},
	{"too many calls", `for (;;) tools.mcp_shop__echo()`, "more than 100 calls"},
	{"too many failed calls", `for (;;) try { tools.mcp_shop__broken() } catch {}`, "more than 100 calls"},
	{"too many searches", `for (;;) search("echo")`, "more than 100 calls"},
	{"a failed call", "\n\nconst a = tools.mcp_shop__broken();\nreturn a", "in line 3: mcp_shop__broken failed: out of paper"},
	{"what it throws is long", `throw new Error("x".repeat(1e6))`, "…"},
	{"it throws nothing", `throw undefined`, "undefined"},
	{"it throws what throws", `throw {get message() { throw 1 }}`, "without a message"},
	{"it throws what hangs", `throw {get message() { for (;;); }}`, "ended"},
	{"types", `const a: number = 1; return a`, "without types"},
	{"then", `return tools.mcp_shop__stock({article: "a"}).then(x => x)`, "try and catch"},
	{"syntax", "return 1\n)", "line 2"},
}

func fields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("f" + strings.Repeat("i", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26)) + " = {}; ")
	}
	return b.String()
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}

// peak runs f and returns by how much memory rose at most, as sampled each millisecond.
func peak(f func()) uint64 {
	runtime.GC()
	before, highest := heap(), uint64(0)
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				highest = max(highest, heap())
			}
		}
	}()
	f()
	close(done)
	<-sampled
	return max(highest, before) - before
}

// Each hostile script ends in words, and leaves nothing behind.
func TestHostile(t *testing.T) {
	limits := Options{Steps: 2_000_000, Memory: 32 << 20, Time: time.Minute} // so that time decides nothing
	switch {
	case testing.Short():
		limits.Memory = 16 << 20
	case os.Getenv("MCPHYBRID_LONG") != "":
		limits = Options{Time: 10 * time.Minute}
	}
	mgr := shop(t, nil, &limits)
	s := mgr.NewSession(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{"*__secret"}}})
	runIn(t, s, "return 1")
	settled := func() (goroutines int, bytes uint64) {
		for range 12 { // a stack shrinks by half each time
			runtime.GC()
		}
		return runtime.NumGoroutine(), heap()
	}
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			goroutines, bytes := settled()
			var got string
			var failed bool
			begun := time.Now()
			most := peak(func() { got, failed = runIn(t, s, test.script) })
			took := time.Since(begun)
			after, left := settled()
			assert.True(t, failed, "it is refused")
			assert.Contains(t, got, test.want)
			assert.Less(t, len(got), 2*maxError)
			assert.LessOrEqual(t, after, goroutines+1, "goroutines") // those of the test itself
			assert.Less(t, left, bytes+2<<20, "bytes that are left")
			assert.Less(t, most, uint64(2*cmp.Or(limits.Memory, defaultMemory)+32<<20), "bytes meanwhile")
			t.Logf("%6d ms %5d MB  %s", took.Milliseconds(), most>>20, strings.SplitN(got, "\n", 2)[0][:min(len(strings.SplitN(got, "\n", 2)[0]), 160)])
		})
	}
}
