package jq

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// plain are the functions that make no large values, with the numbers of their arguments.
// Their arguments are expressions, which are bounded themselves.
var plain = arities("length/0 not/0 empty/0 error/0 error/1 type/0 has/1 in/1 any/0 any/1 any/2 all/0 all/1 all/2 " +
	"first/0 first/1 last/0 last/1 nth/2 limit/2 skip/2 until/2 while/2 repeat/1 range/1 range/2 range/3 isempty/1 " +
	"min/0 max/0 select/1 recurse/0 recurse/1 " +
	"numbers/0 strings/0 arrays/0 objects/0 booleans/0 nulls/0 iterables/0 scalars/0 values/0 " +
	"startswith/1 endswith/1 floor/0 ceil/0 round/0 sqrt/0 abs/0 toarray/0 true/0 false/0 null/0")

// making are those whose values are counted, once each is made of a value that was counted.
var making = arities("keys/0 keys_unsorted/0 to_entries/0 from_entries/0 with_entries/1 map/1 path/1 paths/0 paths/1 " +
	"reverse/0 add/0 flatten/0 flatten/1 tostring/0 tojson/0 ascii_downcase/0 ascii_upcase/0 ltrimstr/1 rtrimstr/1 trim/0 ltrim/0 rtrim/0")

// ours are those that count before they make something.
var ours = arities("contains/1 fromjson/0 join/1 split/1 test/1 tonumber/0")

// byKeys are those that compare keys, which an expression makes. The keys are counted.
var byKeys = arities("min_by/1 max_by/1 sort_by/1 group_by/1 unique_by/1")

// sorting are those that compare what they get.
var sorting = arities("sort/0 unique/0")

// places are those whose argument says where something is.
var places = arities("nth/1 getpath/1")

// Functions are the functions of jq that an expression may call, in order, each with the number
// of its arguments. Beside these there are paths, slices, operators, if, reduce, foreach, try,
// variables, strings with \(…), and the formats @json, @text, @csv and @tsv. Assignments,
// definitions, the environment, the clock and other inputs are left out. What works on much at
// once is bounded: an array of more than 250,000 elements can't be sorted, nor one of more than a
// few be looked for in another, texts of more than [MaxInput] bytes are not read by fromjson, and a
// regular expression may have 8 KiB, of which a class like \pL takes 64 bytes and a range of letters
// beyond ASCII without regard to case 4 KiB.
func Functions() []string {
	var all []string
	for _, some := range []map[string]bool{plain, making, ours, byKeys, sorting, places} {
		all = slices.AppendSeq(all, maps.Keys(some))
	}
	slices.Sort(all)
	return all
}

func arities(list string) map[string]bool {
	m := make(map[string]bool)
	for _, name := range strings.Fields(list) {
		m[name] = true
	}
	return m
}

// The names of what an expression calls in place of operators and functions. No expression can
// name them, since they are not in [Functions].
const (
	counted  = "mcphybrid_counted"
	plus     = "mcphybrid_plus"
	minus    = "mcphybrid_minus"
	times    = "mcphybrid_times"
	divided  = "mcphybrid_divided"
	prefixed = "mcphybrid_"
)

var operators = map[gojq.Operator]string{gojq.OpAdd: plus, gojq.OpSub: minus, gojq.OpMul: times, gojq.OpDiv: divided}

// A bounder rewrites an expression so that what it makes is counted.
type bounder struct{ err error }

func (b *bounder) refuse(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *bounder) queries(list ...*gojq.Query) {
	for _, q := range list {
		b.query(q)
	}
}

func (b *bounder) query(q *gojq.Query) {
	if q == nil || b.err != nil {
		return
	}
	if q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0 {
		b.refuse("modules and definitions of functions are not available")
		return
	}
	b.term(q.Term)
	b.queries(q.Left, q.Right)
	b.patterns(q.Patterns)
	switch name := operators[q.Op]; {
	case name != "":
		*q = gojq.Query{Term: call(name, q.Left, q.Right)}
	case q.Op >= gojq.OpAssign && q.Op <= gojq.OpUpdateAlt:
		b.refuse("assignments are not available: make an object or array with what you want of it")
	}
}

func call(name string, args ...*gojq.Query) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}
}

// count makes t one whose values are counted.
func count(t *gojq.Term) {
	made, suffixes := *t, t.SuffixList
	made.SuffixList = nil
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: then(&gojq.Query{Term: &made}, counted), SuffixList: suffixes}
}

func (b *bounder) term(t *gojq.Term) {
	if t == nil || b.err != nil {
		return
	}
	b.index(t.Index)
	for _, s := range t.SuffixList {
		b.index(s.Index)
	}
	b.query(t.Query)
	switch t.Type {
	case gojq.TermTypeFunc:
		b.function(t)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			b.variable(kv.Key)
			b.string(kv.KeyString)
			b.queries(kv.KeyQuery, kv.Val)
		}
		count(t)
	case gojq.TermTypeArray:
		b.query(t.Array.Query)
		count(t)
	case gojq.TermTypeUnary:
		b.term(t.Unary.Term)
	case gojq.TermTypeFormat:
		b.format(t)
	case gojq.TermTypeString:
		if b.string(t.Str); t.Str.Queries != nil {
			count(t)
		}
	case gojq.TermTypeIf:
		b.queries(t.If.Cond, t.If.Then, t.If.Else)
		for _, e := range t.If.Elif {
			b.queries(e.Cond, e.Then)
		}
	case gojq.TermTypeTry:
		b.queries(t.Try.Body, t.Try.Catch)
	case gojq.TermTypeReduce:
		b.queries(t.Reduce.Query, t.Reduce.Start, t.Reduce.Update)
		b.patterns([]*gojq.Pattern{t.Reduce.Pattern})
	case gojq.TermTypeForeach:
		b.queries(t.Foreach.Query, t.Foreach.Start, t.Foreach.Update, t.Foreach.Extract)
		b.patterns([]*gojq.Pattern{t.Foreach.Pattern})
	case gojq.TermTypeLabel:
		b.query(t.Label.Body)
	}
}

func (b *bounder) format(t *gojq.Term) {
	switch t.Format {
	case "@json", "@text", "@csv", "@tsv":
	default:
		b.refuse("the format %s is not available; @json, @text, @csv and @tsv are", t.Format)
	}
	if t.Str != nil {
		b.refuse("the format %s is not available before a string", t.Format)
	}
	count(t)
}

func (b *bounder) function(t *gojq.Term) {
	f := t.Func
	b.queries(f.Args...)
	if strings.HasPrefix(f.Name, "$") {
		b.variable(f.Name)
		return
	}
	key := fmt.Sprintf("%s/%d", f.Name, len(f.Args))
	switch {
	case making[key]:
		count(t)
	case ours[key]:
		f.Name = prefixed + f.Name
	case byKeys[key]: // as gojq defines it, with keys that are counted
		each := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: f.Args[0]}}}
		f.Name, f.Args[0] = "_"+f.Name, then(&gojq.Query{Term: call("map", each)}, counted)
		count(t)
	case sorting[key]:
		*t = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: t.SuffixList,
			Query: &gojq.Query{Left: &gojq.Query{Term: call(prefixed + "few")}, Op: gojq.OpPipe, Right: then(&gojq.Query{Term: call(f.Name)}, counted)}}
	case places[key]:
		f.Args[0] = then(f.Args[0], prefixed+f.Name)
	case !plain[key]:
		b.refuse("the function %s is not available%s", key, like(key))
	}
}

// variable checks the name of a variable, or another one.
func (b *bounder) variable(name string) {
	if strings.HasPrefix(name, "$__") || name == "$ENV" {
		b.refuse("the variable %s is not available", name)
	}
}

// like tells of functions that begin alike.
func like(key string) string {
	name, _, _ := strings.Cut(key, "/")
	var near []string
	for _, f := range Functions() {
		if of, _, _ := strings.Cut(f, "/"); of == name || len(name) >= 4 && strings.HasPrefix(of, name[:4]) {
			near = append(near, f)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; there is " + strings.Join(near, " and ")
}

func (b *bounder) index(x *gojq.Index) {
	if x == nil {
		return
	}
	b.string(x.Str)
	b.queries(x.Start, x.End)
	if x.Start != nil && !x.IsSlice {
		x.Start = then(x.Start, prefixed+"nth")
	}
}

// then returns a query whose values go through a function.
func then(q *gojq.Query, name string) *gojq.Query {
	return &gojq.Query{Left: q, Op: gojq.OpPipe, Right: &gojq.Query{Term: call(name)}}
}

func (b *bounder) patterns(list []*gojq.Pattern) {
	for _, p := range list {
		if p == nil {
			continue
		}
		b.patterns(p.Array)
		for _, o := range p.Object {
			b.string(o.KeyString)
			b.query(o.KeyQuery)
			b.patterns([]*gojq.Pattern{o.Val})
		}
	}
}

// string bounds a string with \(…): each part is counted when it is added.
func (b *bounder) string(s *gojq.String) {
	if s == nil || s.Queries == nil {
		return
	}
	b.queries(s.Queries...)
	for i, q := range s.Queries {
		if q.Term != nil && q.Term.Type == gojq.TermTypeString && q.Term.Str != nil && q.Term.Str.Queries == nil {
			continue // what stands between them
		}
		s.Queries[i] = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: then(q, prefixed+"part")}}
	}
}

// functions are what expressions call in place of operators and functions.
func (s *spending) functions() (list []gojq.CompilerOption) {
	add := func(name string, args int, f func(v any, args []any) any) {
		list = append(list, gojq.WithFunction(name, args, args, f))
	}
	add(counted, 0, func(v any, _ []any) any { return s.spend(v) })
	add(plus, 2, func(_ any, a []any) any { return s.plus(a[0], a[1]) })
	add(minus, 2, func(_ any, a []any) any { return s.minus(a[0], a[1]) })
	add(times, 2, func(_ any, a []any) any { return numbers(times, a[0], a[1]) })
	add(divided, 2, func(_ any, a []any) any { return numbers(divided, a[0], a[1]) })
	add(prefixed+"part", 0, func(v any, _ []any) any { return part(v) })
	add(prefixed+"few", 0, func(v any, _ []any) any { return few(v) })
	add(prefixed+"nth", 0, func(v any, _ []any) any { return at(v) })
	add(prefixed+"getpath", 0, func(v any, _ []any) any { return atPath(v) })
	add(prefixed+"fromjson", 0, func(v any, _ []any) any { return s.fromJSON(v) })
	add(prefixed+"tonumber", 0, func(v any, _ []any) any { return toNumber(v) })
	add(prefixed+"contains", 1, func(v any, a []any) any { return contains(v, a[0]) })
	add(prefixed+"join", 1, func(v any, a []any) any { return s.join(v, a[0]) })
	add(prefixed+"split", 1, func(v any, a []any) any { return s.split(v, a[0]) })
	add(prefixed+"test", 1, func(v any, a []any) any { return test(v, a[0]) })
	return list
}
