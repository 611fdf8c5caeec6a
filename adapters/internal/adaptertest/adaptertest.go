// Package adaptertest tests an adapter over the real model client of its runtime. A
// scripted model on loopback answers a conversation of 24 requests and compares the bytes
// of each with those before.
package adaptertest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/modeltest"
	"github.com/mcphybrid/mcphybrid/snapshot"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// System is how the system prompt begins. The session's sections follow.
const System = "You are a helpful assistant.\n\n"

// A Runtime is what is tested: an adapter in its runtime.
type Runtime struct {
	// Begin begins a conversation with the model at url, a base URL without a path. It
	// has the tools of s. Its system prompt is [System] and the sections of s. before is
	// nil at first, and later the conversation that another process began, from which the
	// new one takes the messages.
	Begin func(t *testing.T, url string, s *mcphybrid.Session, before Host) Host

	// Disclosure is that of the sessions. ByBridge, the script is the same but for the
	// names of the tools, and the list of tools is always the first one. ByProvider, the
	// runtime answers OpenAI's tool_search. Chosen is the one that an Automatic session has from its first Turn on.
	Disclosure mcphybrid.Disclosure
	Chosen     mcphybrid.Disclosure

	Forgets    bool // a run that broke off leaves nothing of itself in the conversation
	Streams    bool // the requests ask for a stream
	Sequential bool // the calls of one answer are made one after the other
	NoImages   bool // an image of a result does not get to the model
	NoErrors   bool // nothing marks a result as an error
	Fixed      bool // messages add tools, and the list of tools stays as it was first
	Quotes     bool // the text of a result is sent as a JSON string
	Floats     bool // the conversation has numbers in calls as floats
	Rounds     bool // the tools get them so, too
	NoUsage    bool // the answers do not say what they took
}

// A Host is one conversation in a runtime.
type Host interface {
	// Run sends the user's message and makes the model's calls until it answers without
	// any. It returns that answer. If ctx is cancelled, nothing of the run stays in the
	// conversation. With no message, Run goes on with a run that broke off because the
	// model was away.
	Run(ctx context.Context, message string) (answer string, err error)
}

// by returns how the model gets the tools.
func (r Runtime) by() mcphybrid.Disclosure { return cmp.Or(r.Disclosure, r.Chosen) }

// options returns those of the sessions.
func (r Runtime) options() *mcphybrid.SessionOptions {
	return &mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{"mcp_*__delete_*"}}, Disclosure: r.Disclosure}
}

// manager returns a Manager of the servers that has two tools inline.
func (d *desk) manager(t *testing.T) *mcphybrid.Manager {
	late := &lateServer{on: d.late, called: d.called}
	mgr := mcphybrid.NewManager(&mcphybrid.Options{
		Middleware: []mcphybrid.Middleware{late.watch},
		Inline:     mcphybrid.InlineOptions{Max: 2},
		Servers:    []mcphybrid.ServerConfig{{Name: "notes", InProcess: d.notes}, {Name: "desk", InProcess: d.things}},
	})
	t.Cleanup(func() { mgr.Close() })
	require.NoError(t, mgr.AddTools("code", convertAll))
	require.NoError(t, mgr.Start(t.Context()))
	late.manager = mgr
	return mgr
}

// A lateServer comes while a tool is called, and leaves in a later call.
type lateServer struct {
	on      bool
	called  func()
	manager *mcphybrid.Manager
	calls   atomic.Int32
}

func (l *lateServer) watch(next mcphybrid.Handler) mcphybrid.Handler {
	return func(ctx context.Context, c mcphybrid.ToolCall) (*mcp.CallToolResult, error) {
		if l.called != nil {
			l.called()
		}
		switch n := l.calls.Add(1); {
		case l.on && n == 2:
			if err := l.manager.AddTools(lateName, server.ServerTool{Tool: mcp.NewTool("water_plants"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			}}); err != nil {
				return nil, err
			}
		case l.on && n == 5:
			l.manager.RemoveServer(lateName)
		}
		return next(ctx, c)
	}
}

const lateName = "greenhouse"

// serve serves a model on loopback.
func serve(t *testing.T, model http.Handler) (url string) {
	srv := httptest.NewServer(model)
	t.Cleanup(srv.Close)
	return srv.URL
}

func newScript(r Runtime) *modeltest.Script {
	return &modeltest.Script{
		Steps: steps(r), System: []string{System, "tool_search"},
		Streams: r.Streams, NoImages: r.NoImages, NoErrors: r.NoErrors, Fixed: r.Fixed, Quotes: r.Quotes, Floats: r.Floats,
	}
}

// Run tests a runtime.
func Run(t *testing.T, r Runtime) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	desk := newDesk(r.Sequential)
	desk.late = r.Chosen != mcphybrid.Automatic && r.by() != mcphybrid.ByActivation
	s := newScript(r)
	var model http.Handler = s
	counts := &count{none: r.NoUsage}
	if desk.late { // the runtime asks for whole turns
		caches := &modeltest.Caches{Next: func(got modeltest.Request, err error) (modeltest.Step, error) {
			st, err := s.Play(got, err)
			st.Output = output
			return st, err
		}}
		prefix := &modeltest.Prefix{Next: caches, Script: s}
		told := &told{next: prefix}
		counts.caches = caches
		desk.called = func() { counts.check(t) } // an answer is counted before its calls are made
		model = told
		defer func() {
			assert.NoError(t, prefix.Wrong())
			assert.Zero(t, caches.Lost())
			assert.True(t, told.yes.Load(), "the model was not told of the late server")
		}()
	}
	url := serve(t, model)
	session := counts.add(desk.manager(t).NewSession(r.options()))
	host := r.Begin(t, url, session, nil)
	if r.Chosen != mcphybrid.Automatic {
		defer func() { assert.Equal(t, r.by(), session.Disclosure()) }()
	}
	say := func(message, want string) {
		answer, err := host.Run(ctx, message)
		require.NoError(t, s.Wrong())
		require.NoError(t, err)
		require.Equal(t, want, answer)
	}

	for _, st := range s.Steps {
		if st.Broken || st.Again {
			break
		}
		if st.User != "" {
			say(st.User, s.AnswerTo(st.User))
		}
	}

	// The user stops a run while a tool is at work.
	running, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-desk.waiting:
		case <-ctx.Done():
		}
		stop()
	}()
	_, err := host.Run(running, wait)
	require.NoError(t, s.Wrong())
	require.Error(t, err)
	select {
	case <-desk.stopped:
	case <-ctx.Done():
		require.Fail(t, "the tool was not told that the call is cancelled")
	}
	say(goOn, s.AnswerTo(goOn))

	// The model is away in the middle of a run. Another process goes on.
	_, err = host.Run(ctx, convert)
	require.NoError(t, s.Wrong())
	require.Error(t, err) // some SDKs do not say why
	restored, changed, err := desk.manager(t).RestoreSession(session.Save(), r.options())
	require.NoError(t, err)
	require.Empty(t, changed)
	counts.add(restored)
	host = r.Begin(t, url, restored, host)
	if r.Forgets {
		say(convert, s.AnswerTo(convert))
	} else {
		say("", s.AnswerTo(convert))
	}
	assert.NoError(t, s.End())
	if desk.late {
		counts.check(t)
		assert.True(t, r.NoUsage || restored.Stats().Measured.Cached > 0, "the cache is never read")
	}
}

// output is what each answer reports, in tokens.
const output = 7

// A count compares what sessions have counted with what the answers reported.
type count struct {
	caches *modeltest.Caches
	none   bool // they report nothing

	mu       sync.Mutex
	sessions []*mcphybrid.Session
}

func (c *count) add(s *mcphybrid.Session) *mcphybrid.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = append(c.sessions, s)
	return s
}

// check tests that each answer until now is counted once, and that no request lost the cache.
func (c *count) check(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var want, got snapshot.Measured
	for _, b := range c.caches.Bills() {
		if !c.none {
			want.Requests++
			want.Input += b.Read + b.Written + b.Rest
			want.Cached += b.Read
			want.Written += b.Written
			want.Output += output
		}
	}
	for _, s := range c.sessions {
		m := s.Stats().Measured
		got.Requests += m.Requests
		got.Input += m.Input
		got.Cached += m.Cached
		got.Written += m.Written
		got.Output += m.Output
		got.Losses += m.Losses
		got.Lost += m.Lost
	}
	assert.Equal(t, want, got, "what the sessions have counted")
}

// told passes requests on and listens for the late server.
type told struct {
	next http.Handler
	yes  atomic.Bool
}

func (h *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the host is gone
	}
	if bytes.Contains(body, []byte(lateName)) {
		h.yes.Store(true)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.next.ServeHTTP(w, r)
}
