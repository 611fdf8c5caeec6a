package codemode

import (
	"context"
	"errors"
	"fmt"

	"github.com/dop251/goja"
	"github.com/mcphybrid/mcphybrid"
)

// A run is one script that runs, on one goroutine.
type run struct {
	*builtins
	ctx     context.Context
	session *mcphybrid.Session
	done    []string // the tools that were called, in order
}

// runScript runs a script and returns what it returns: a text as it is, anything else as JSON. The
// error is for the model.
func runScript(ctx context.Context, session *mcphybrid.Session, script string, o Options) (returned string, err error) {
	program, err := parse(script)
	if err != nil {
		return "", fmt.Errorf("the script was not run: %w%s", err, advice(err.Error()))
	}
	compiled, err := goja.CompileAST(program, false)
	if err != nil {
		return "", fmt.Errorf("the script was not run: %w", err)
	}
	rt := goja.New()
	rt.SetMaxCallStackSize(maxDepth)
	m := &meter{rt: rt, options: o, left: o.Time}
	r := &run{builtins: &builtins{meter: m, objects: make(map[int64]*goja.Object)}, ctx: ctx, session: session}
	stop := context.AfterFunc(ctx, func() { rt.Interrupt(context.Cause(ctx)) })
	defer stop()
	defer func() { // a defect of the interpreter must not be one of the host
		switch x := recover().(type) {
		case nil:
		case *goja.InterruptedError:
			returned, err = "", r.failure(x)
		default:
			returned, err = "", r.failure(fmt.Errorf("the interpreter failed: %v", x))
		}
	}()
	r.install()
	r.offer()
	m.steps, m.made = 0, 0
	m.run()
	defer m.pause()
	v, err := rt.RunProgram(compiled)
	if err != nil {
		return "", r.failure(err)
	}
	f, _ := goja.AssertFunction(v)
	v, err = f(goja.Undefined(), r.hooks()...)
	if err == nil {
		err = m.ended
	}
	if err != nil {
		return "", r.failure(err)
	}
	p, _ := v.Export().(*goja.Promise)
	switch p.State() {
	case goja.PromiseStatePending:
		return "", r.failure(errors.New("it awaits a promise that nothing resolves: there are no timers or events here"))
	case goja.PromiseStateRejected:
		return "", r.failure(&thrownError{p.Result()})
	}
	if ex := rt.Try(func() { returned = r.output(p.Result()) }); ex != nil {
		return "", r.failure(ex)
	}
	if m.ended != nil {
		return "", r.failure(m.ended)
	}
	return returned, nil
}

const textNothing = "The script returned nothing. Only what it returns is shown to you; console.log shows nothing."

// output writes what a script returned.
func (r *run) output(v goja.Value) string {
	if s, ok := v.(goja.String); ok && s.Length() > 0 { // an empty one is "", since providers refuse a result without a text
		return s.String()
	}
	if s := r.text(v); s != "" {
		return s
	}
	return textNothing
}
