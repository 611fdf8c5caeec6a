package broker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/ask"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names returns hooks that answer with a root that says who answers, and for what
// tool.
func names(who string) ask.Hooks {
	return ask.Hooks{Roots: func(_ context.Context, from ask.Asker) ([]mcp.Root, error) {
		return []mcp.Root{{URI: "file:///" + who, Name: from.User + "/" + from.Server + "/" + from.Tool}}, nil
	}}
}

func newDesk(t *testing.T, h ask.Hooks, change func(*Config)) *Broker {
	cfg := Config{Server: "srv", User: "owner", Log: slog.New(slog.DiscardHandler),
		Options: ask.Options{Hooks: h, Timeout: time.Hour, MaxPerCall: 100, MaxAtOnce: 100, MaxBytes: 1000}}
	if change != nil {
		change(&cfg)
	}
	d := New(cfg)
	t.Cleanup(d.Close)
	return d
}

// answers returns who answers a question, and as what.
func answers(t *testing.T, d *Broker, ctx context.Context) string {
	r, err := d.ListRoots(ctx, mcp.ListRootsRequest{})
	if err != nil {
		return err.Error()
	}
	require.Len(t, r.Roots, 1)
	return strings.TrimPrefix(r.Roots[0].URI, "file:///") + " " + r.Roots[0].Name
}

// A question reaches the caller who caused it, whoever else calls. If that can't be
// known, it reaches no caller.
func TestCauses(t *testing.T) {
	d := newDesk(t, names("default"), nil)
	caller := func(user string) context.Context {
		c := NewCaller(user, names(user), d.cfg.Hooks)
		t.Cleanup(c.End)
		return WithCaller(t.Context(), c)
	}
	ann, bob := caller("ann"), caller("bob")
	const nobody = "default owner/srv/"
	none := t.Context()

	assert.Equal(t, nobody, answers(t, d, none))
	a, endA := d.Begin(ann, "t1")
	assert.Equal(t, "ann ann/srv/t1", answers(t, d, none), "she is the only one")
	assert.Equal(t, nobody, answers(t, d, WithRequest(none)), "another request caused it")
	a2, endA2 := d.Begin(ann, "t2")
	assert.Equal(t, "ann ann/srv/", answers(t, d, none), "of one of two calls")
	assert.Equal(t, "ann ann/srv/t2", answers(t, d, WithRequest(a2)))

	b, endB := d.Begin(bob, "t3")
	assert.Equal(t, nobody, answers(t, d, none), "hers or his")
	assert.Equal(t, "ann ann/srv/t1", answers(t, d, WithRequest(a)))
	assert.Equal(t, "bob bob/srv/t3", answers(t, d, b))
	// The id of a task comes with the server's answer, which may be read after the question.
	related := context.WithValue(none, relatedKey{}, "task")
	assert.Equal(t, errEnded.Error(), answers(t, d, related))
	d.SetTask(b, "")
	assert.Equal(t, "bob bob/srv/t3", answers(t, d, related))
	d.SetTask(a, "")
	assert.Equal(t, nobody, answers(t, d, related), "hers or his")
	d.SetTask(a, "other")
	d.SetTask(b, "task")
	assert.Equal(t, "bob bob/srv/t3", answers(t, d, context.WithValue(none, relatedKey{}, "task")))
	assert.Equal(t, errEnded.Error(), answers(t, d, context.WithValue(none, relatedKey{}, "gone")))

	// A call that has ended asks no one, not even its caller.
	endA(true)
	endA2(true)
	assert.Equal(t, errEnded.Error(), answers(t, d, a))
	assert.Equal(t, "bob bob/srv/t3", answers(t, d, none))
	endB(false)
	assert.Equal(t, nobody, answers(t, d, none))

	// The server may still work on his call, which he gave up.
	a, endA = d.Begin(ann, "t1")
	assert.Equal(t, nobody, answers(t, d, none))
	assert.Equal(t, "ann ann/srv/t1", answers(t, d, a))
	_, endB = d.Begin(bob, "t3")
	endA(true)
	assert.Equal(t, "bob bob/srv/t3", answers(t, d, none), "in either case it is his")
	endB(true)

	// A call without a session is the host's own.
	c, end := d.Begin(none, "t4")
	defer end(true)
	assert.Equal(t, nobody, answers(t, d, none), "his or the host's")
	other := newDesk(t, names("default"), nil)
	assert.Equal(t, nobody, answers(t, other, c), "a call of another broker")
}

// There are limits for each call, for a minute without calls, and for all at once.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, names("x"), func(c *Config) { c.MaxPerCall = 3 })
		for range 2 {
			for range 3 {
				assert.Contains(t, answers(t, d, t.Context()), "x")
			}
			assert.Equal(t, "there are more questions than the limit of 3 for a call", answers(t, d, t.Context()))
			time.Sleep(time.Minute)
		}
		ctx, end := d.Begin(t.Context(), "t")
		for range 3 {
			assert.Contains(t, answers(t, d, ctx), "x")
		}
		time.Sleep(time.Minute)
		assert.Contains(t, answers(t, d, ctx), "limit of 3")
		end(true)

		// A hook that ignores its context counts until it returns.
		let := make(chan struct{})
		d = newDesk(t, ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { <-let; return nil, nil }},
			func(c *Config) { c.MaxAtOnce, c.Timeout = 2, time.Minute })
		for range 2 {
			assert.Equal(t, errNoReply.Error(), answers(t, d, t.Context()))
		}
		assert.Equal(t, "there are more questions at once than the limit of 2", answers(t, d, t.Context()))
		close(let)
		synctest.Wait()
		_, err := d.ListRoots(t.Context(), mcp.ListRootsRequest{})
		assert.NoError(t, err)

		_, err = d.CreateMessage(t.Context(), mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{SystemPrompt: strings.Repeat("x", 1000)}})
		assert.ErrorContains(t, err, "bytes, more than the limit of 1000")
	})
}

// A question ends with its call, its session, its broker, or when the server takes it
// back. Until then, the time limit of the call stands still.
func TestQuestionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		hang := ask.Hooks{Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		for name, end := range map[string]func(d *Broker, c *Caller, call func(bool)){
			"call":    func(_ *Broker, _ *Caller, call func(bool)) { call(false) },
			"session": func(_ *Broker, c *Caller, _ func(bool)) { c.End() },
			"broker":  func(d *Broker, _ *Caller, _ func(bool)) { d.Close() },
			"timeout": func(*Broker, *Caller, func(bool)) { time.Sleep(time.Hour) },
			"withdrawn": func(d *Broker, _ *Caller, _ func(bool)) {
				var n mcp.JSONRPCNotification
				n.Params.AdditionalFields = map[string]any{"requestId": 7}
				d.Withdraw(n)
			},
		} {
			d := newDesk(t, hang, nil)
			c := NewCaller("ann", hang, hang)
			_, err := hostcode.Within(WithCaller(t.Context(), c), time.Minute, func(ctx context.Context) (int, error) {
				during, call := d.Begin(ctx, "t")
				defer call(true)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = d.Handle(rootsOf(d))(during, request(7, mcp.MethodListRoots, nil))
				}()
				synctest.Wait()
				begun := time.Now()
				assert.EqualValues(t, 1, running.Load(), name)
				time.Sleep(30 * time.Minute)
				assert.NoError(t, ctx.Err(), name)
				end(d, c, call)
				<-done
				if name != "timeout" {
					assert.Equal(t, 30*time.Minute, time.Since(begun), name)
				}
				synctest.Wait()
				assert.EqualValues(t, 0, running.Load(), name)
				return 0, nil
			})
			assert.NoError(t, err, name)
			assert.Zero(t, d.open)
			assert.Empty(t, d.taken)
			c.End()
			d.Close()
		}
	})
}

// A question that does not come through Handle, as in process, ends for the same
// reasons, each of which is enough alone.
func TestQuestionsInProcessEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := ask.Hooks{Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) { <-ctx.Done(); return nil, ctx.Err() }}
		for name, end := range map[string]func(d *Broker, c *Caller, call func(bool), withdraw func()){
			"call":    func(_ *Broker, _ *Caller, call func(bool), _ func()) { call(false) },
			"session": func(_ *Broker, c *Caller, _ func(bool), _ func()) { c.End() },
			"broker":  func(d *Broker, _ *Caller, _ func(bool), _ func()) { d.Close() },
			"request": func(_ *Broker, _ *Caller, _ func(bool), withdraw func()) { withdraw() },
			"timeout": func(*Broker, *Caller, func(bool), func()) { time.Sleep(time.Hour) },
		} {
			d := newDesk(t, hang, nil)
			c := NewCaller("ann", hang, hang)
			_, call := d.Begin(WithCaller(t.Context(), c), "t")
			request, withdraw := context.WithCancel(t.Context())
			begun, over := time.Now(), make(chan string, 1)
			go func() { over <- answers(t, d, request) }()
			synctest.Wait()
			time.Sleep(time.Minute)
			assert.Empty(t, over, name)
			end(d, c, call, withdraw)
			assert.Equal(t, errNoReply.Error(), <-over, name)
			if name != "timeout" {
				assert.Equal(t, time.Minute, time.Since(begun), name)
			}
			synctest.Wait()
			assert.Empty(t, d.cfg.Counter.waiting)
			call(true)
			withdraw()
			c.End()
			d.Close()
		}
	})
}

// After the end, no hook is bothered.
func TestNobodyIsAskedAfterTheEnd(t *testing.T) {
	asked := 0
	counts := ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { asked++; return nil, nil }}
	d := newDesk(t, counts, nil)
	c := NewCaller("ann", counts, counts)
	during, call := d.Begin(WithCaller(t.Context(), c), "t")
	_, err := d.ListRoots(during, mcp.ListRootsRequest{})
	require.NoError(t, err)
	c.End()
	assert.Equal(t, errEnded.Error(), answers(t, d, during), "the session is closed")
	call(true)
	gone, withdraw := context.WithCancel(t.Context())
	withdraw()
	assert.Equal(t, errEnded.Error(), answers(t, d, gone), "the question is taken back")
	d.Close()
	assert.Equal(t, errEnded.Error(), answers(t, d, t.Context()), "the connection is lost")
	said, err := d.Elicit(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, URL: "https://example.com"}})
	assert.Equal(t, errEnded, err)
	assert.Nil(t, said)
	assert.Equal(t, 1, asked)
	assert.Empty(t, d.cfg.Counter.waiting)
}

// A server has no more questions for it that it connects again.
func TestLimitsHoldOverConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		hang := ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { <-let; return nil, nil }}
		tally := new(Counter)
		next := func(h ask.Hooks) *Broker {
			return newDesk(t, h, func(c *Config) { c.Counter, c.MaxAtOnce, c.MaxPerCall, c.Timeout = tally, 2, 5, time.Second })
		}
		for range 2 {
			d := next(hang)
			assert.Equal(t, errNoReply.Error(), answers(t, d, t.Context()))
			d.Close()
		}
		assert.Equal(t, "there are more questions at once than the limit of 2", answers(t, next(hang), t.Context()))
		close(let)
		synctest.Wait()
		for range 2 {
			assert.Contains(t, answers(t, next(names("x")), t.Context()), "x")
		}
		assert.Contains(t, answers(t, next(names("x")), t.Context()), "limit of 5 for a call")
	})
}

// The questions for one user leave room for those for others.
func TestQuestionsOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		hang := ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) {
			<-let
			return []mcp.Root{{URI: "file:///x"}}, nil
		}}
		d := newDesk(t, names("default"), func(c *Config) { c.MaxAtOnce = 2 })
		call := func(user string, h ask.Hooks) context.Context {
			c := NewCaller(user, h, h)
			t.Cleanup(c.End)
			ctx, end := d.Begin(WithRequest(WithCaller(t.Context(), c)), "tool")
			t.Cleanup(func() { end(true) })
			return ctx
		}
		for range 2 { // sessions of one user
			ctx := call("ann", hang)
			go answers(t, d, ctx)
		}
		synctest.Wait()
		assert.Equal(t, "there are more questions at once than the limit of 2", answers(t, d, call("ann", names("x"))))
		assert.Contains(t, answers(t, d, call("bob", names("bob"))), "bob")
		assert.Contains(t, answers(t, d, call("", names("system"))), "system")
		assert.Contains(t, answers(t, d, WithRequest(t.Context())), "default")
		close(let)
		synctest.Wait()
		assert.Contains(t, answers(t, d, call("ann", names("ann"))), "ann")
		assert.Empty(t, d.cfg.Counter.waiting)
	})
}

// A hook's failure is logged for the host. The server learns nothing of it.
func TestFailures(t *testing.T) {
	var log strings.Builder
	withLog := func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	sample := func(answer *mcp.CreateMessageResult, fail func() error) error {
		d := newDesk(t, ask.Hooks{Sample: func(context.Context, ask.Asker, mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return answer, fail()
		}}, withLog)
		_, err := d.CreateMessage(t.Context(), mcp.CreateMessageRequest{})
		return err
	}
	assert.Equal(t, errNoReply, sample(nil, func() error { return errors.New("secret") }))
	assert.Contains(t, log.String(), "error=secret")
	assert.Equal(t, errNoReply, sample(nil, func() error { panic("bug") }))
	assert.Contains(t, log.String(), `error="ask.Hooks.Sample: panic: bug"`)
	for _, none := range []*mcp.CreateMessageResult{nil, {}} {
		log.Reset()
		assert.Equal(t, errNoReply, sample(none, func() error { return nil }))
		assert.Contains(t, log.String(), "it returned neither an answer nor an error")
	}
	log.Reset()
	assert.ErrorIs(t, sample(nil, func() error { return ask.ErrDeclined }), ask.ErrDeclined)
	assert.Empty(t, log.String())

	d := newDesk(t, ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) {
		return []mcp.Root{{URI: "https://example.com"}}, nil
	}}, withLog)
	assert.Equal(t, errNoReply.Error(), answers(t, d, t.Context()))
	_, err := d.CreateMessage(t.Context(), mcp.CreateMessageRequest{})
	assert.ErrorIs(t, err, ask.ErrDeclined, "there is no hook for it")
}

// The calls that may have caused a question stay those, whoever calls next.
func TestCausesAreNotShared(t *testing.T) {
	d := newDesk(t, names("default"), nil)
	c := NewCaller("ann", names("ann"), d.cfg.Hooks)
	t.Cleanup(c.End)
	ctx := WithCaller(t.Context(), c)
	_, endFirst := d.Begin(ctx, "t1")
	_, endSecond := d.Begin(ctx, "t2")
	d.mu.Lock()
	causes, err := d.causesLocked(t.Context())
	d.mu.Unlock()
	require.NoError(t, err)
	require.Len(t, causes, 2)
	endFirst(true)
	_, endThird := d.Begin(ctx, "t3")
	require.NotNil(t, causes[0])
	assert.Equal(t, []string{"t1", "t2"}, []string{causes[0].tool, causes[1].tool})
	endSecond(true)
	endThird(true)
}

// The list of roots is a JSON list, also of a host that has none, and the host's own stays.
func TestListOfRoots(t *testing.T) {
	var roots []mcp.Root
	d := newDesk(t, ask.Hooks{Roots: func(context.Context, ask.Asker) ([]mcp.Root, error) { return roots, nil }}, nil)
	r, err := d.ListRoots(t.Context(), mcp.ListRootsRequest{})
	require.NoError(t, err)
	assert.NotNil(t, r.Roots)
	roots = []mcp.Root{{URI: "file:///a"}}
	r, err = d.ListRoots(t.Context(), mcp.ListRootsRequest{})
	require.NoError(t, err)
	roots[0].URI = "file:///b"
	assert.Equal(t, "file:///a", r.Roots[0].URI)
}

// A question for which there is no hook takes no room from others.
func TestQuestionsOfNobodyTakeNoRoom(t *testing.T) {
	t.Parallel()
	d := newDesk(t, names("x"), func(c *Config) { c.MaxAtOnce = 1 })
	for range 3 {
		_, err := d.CreateMessage(t.Context(), mcp.CreateMessageRequest{})
		assert.ErrorIs(t, err, ask.ErrDeclined)
	}
	assert.Contains(t, answers(t, d, t.Context()), "x owner")
}

// A hook gets the values of the call that caused its question, also where the question comes over
// the connection; what the client works with ends when the server is answered.
func TestContextsOfHooks(t *testing.T) {
	t.Parallel()
	type key struct{}
	var got any
	d := newDesk(t, ask.Hooks{Roots: func(ctx context.Context, _ ask.Asker) ([]mcp.Root, error) {
		got = ctx.Value(key{})
		return nil, nil
	}}, nil)
	_, end := d.Begin(context.WithValue(t.Context(), key{}, "the call's"), "tool")
	var worked context.Context
	handle := d.Handle(func(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		worked = ctx
		assert.NoError(t, ctx.Err())
		return rootsOf(d)(ctx, r)
	})
	for _, want := range []any{"the call's", "the connection's"} {
		_, err := handle(context.WithValue(t.Context(), key{}, "the connection's"), request(1, mcp.MethodListRoots, nil))
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.ErrorIs(t, worked.Err(), context.Canceled)
		end(true)
	}
}
