package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Tool says how to call a tool.
type Tool struct {
	Name       string // the server's own
	Repeatable bool   // a second call does no harm
	Task       bool   // it is executed as a task only

	Bar Precheck // asked right before the call is sent
}

// A Precheck returns why a request must not be made, or nil. It is asked when the server is
// connected, and so has listed what it has now. A nil Precheck permits all.
type Precheck func() error

// A barredError is why a request was not made.
type barredError struct{ error }

func (e barredError) Unwrap() error { return e.error }

// About returns the error of a request with what the request was about. An error of a
// [Precheck] says that itself.
func About(err error, kind, id, server string) error {
	if barred := (barredError{}); errors.As(err, &barred) {
		return barred.error
	}
	return fmt.Errorf("mcphybrid: %s %q of server %q: %w", kind, text.Line(id, text.MaxName), server, err)
}

// Call runs a tool within the call timeout. If the connection breaks and the
// tool is repeatable, Call tries once more over a new connection. Errors contain
// no secrets; the error is [ErrDown] if the server can't be reached, and a
// [PausedError] if it does not answer calls. If the server announces before the result that
// its tools have changed, Call waits until they are listed, for [maxChangeWait] at most.
func (s *Server) Call(ctx context.Context, tool Tool, args json.RawMessage) (*mcp.CallToolResult, error) {
	wait := func() {}
	result, err := s.request(ctx, tool.Name, tool.Repeatable, tool.Bar, func(during context.Context, c *conn) (any, error) {
		var r mcp.CallToolRequest
		r.Params.Name = tool.Name
		r.Params.Arguments = args
		before := c.tools.count()
		result, err := c.callTool(during, r, tool.Task)
		if after := c.tools.count(); after > before && during.Err() == nil {
			wait = func() { c.tools.wait(ctx, after, c.over) }
		}
		return result, err
	})
	wait()
	r, _ := result.(*mcp.CallToolResult)
	return r, err
}

// Read reads the resource with that URI, as Call runs a repeatable tool.
func (s *Server) Read(ctx context.Context, bar Precheck, uri string) (*mcp.ReadResourceResult, error) {
	result, err := s.request(ctx, "", true, bar, func(ctx context.Context, c *conn) (any, error) {
		var r mcp.ReadResourceRequest
		var end func()
		r.Params.URI = uri
		r.Params.Meta, end = c.meta(ctx)
		defer end()
		return c.client.ReadResource(ctx, r)
	})
	r, _ := result.(*mcp.ReadResourceResult)
	return r, err
}

// Prompt fills in the prompt with that name, as Call runs a repeatable tool.
func (s *Server) Prompt(ctx context.Context, bar Precheck, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	result, err := s.request(ctx, "", true, bar, func(ctx context.Context, c *conn) (any, error) {
		var r mcp.GetPromptRequest
		var end func()
		r.Params.Name, r.Params.Arguments = name, args
		r.Params.Meta, end = c.meta(ctx)
		defer end()
		return c.client.GetPrompt(ctx, r)
	})
	r, _ := result.(*mcp.GetPromptResult)
	return r, err
}

// Complete asks for values of an argument, as Call runs a repeatable tool.
func (s *Server) Complete(ctx context.Context, bar Precheck, p mcp.CompleteParams) (*mcp.CompleteResult, error) {
	result, err := s.request(ctx, "", true, bar, func(ctx context.Context, c *conn) (any, error) {
		return c.client.Complete(ctx, mcp.CompleteRequest{Params: p})
	})
	r, _ := result.(*mcp.CompleteResult)
	return r, err
}

// A request sends one request over a connection and returns its result.
type request func(context.Context, *conn) (any, error)

// request makes a request within the call timeout. tool is the tool that it calls, or
// "". If again is set, it may be made once more over the next connection. A call that wants a person
// to open a page first is made once more after that, in any case. The result is that of send, or nil.
func (s *Server) request(ctx context.Context, tool string, again bool, bar Precheck, send request) (any, error) {
	passage, err := s.circuit.enter()
	if err != nil {
		return nil, err
	}
	result, err := s.attempt(ctx, tool, again, bar, send)
	s.circuit.leave(ctx, passage, err)
	s.mu.Lock()
	s.noteLocked() // calls may be refused from now on, or sent again
	s.mu.Unlock()
	return result, err
}

func (s *Server) attempt(ctx context.Context, tool string, again bool, bar Precheck, send request) (any, error) {
	return hostcode.Within(ctx, s.limits.CallTimeout, func(ctx context.Context) (any, error) {
		for ; ; again = false {
			c, err := s.serving(ctx, true)
			if err != nil {
				return nil, err
			}
			if bar != nil {
				if err := bar(); err != nil {
					s.done()
					return nil, barredError{err}
				}
			}
			during, end := c.broker.Begin(ctx, tool)
			result, err := send(during, c)
			if first := (mcp.URLElicitationRequiredError{}); errors.As(err, &first) && c.broker.Open(during, first.Elicitations) {
				result, err = send(during, c)
			}
			end(ctx.Err() == nil && !isLostIn(ctx, err))
			s.done()
			if bad := new(badRequestError); errors.As(err, &bad) {
				c.tellChanged() // a listing shows whether the server still knows the session
			}
			if errors.Is(err, ErrUnauthorized) && !errors.As(err, new(scopeError)) { // else the login is good for other calls
				s.refused(c, err)
			}
			if !isLostIn(ctx, err) {
				return result, s.told(err)
			}
			err = c.explain(err)
			s.lose(c, err)
			if !again {
				return nil, fmt.Errorf("%w: %w", ErrDown, s.told(err))
			}
		}
	})
}

// refused records that the server refused a call over c with status 401. The
// connection stays: other calls may be under way.
func (s *Server) refused(c *conn, err error) {
	s.mu.Lock()
	if current, _ := s.conn.Peek(); current == c {
		s.setLocked(Unauthorized, s.told(err))
	}
	s.mu.Unlock()
	c.tellChanged() // a listing shows when it is over
}

// Connect returns when the server is connected. Like a call, it waits for a
// connection and starts one if need be.
func (s *Server) Connect(ctx context.Context) error {
	if _, err := s.serving(ctx, false); err != nil {
		return err
	}
	s.done()
	return nil
}

// isLostIn is isLost for a call with ctx. A call canceled by anyone except its
// caller was canceled because the connection closed.
func isLostIn(ctx context.Context, err error) bool {
	return isLost(err) || errors.Is(err, context.Canceled) && ctx.Err() == nil
}

// serving returns the connection and keeps it from resting until done is called.
// It waits for an attempt under way. It begins one if the server has not run yet
// or was just lost. After a failed attempt it returns an error at once, and begins
// the next attempt if the first step of the backoff has passed. An attempt that is urgent does
// not wait for its turn.
func (s *Server) serving(ctx context.Context, urgent bool) (*conn, error) {
	s.mu.Lock()
	c, attempt := s.conn.Peek()
	status := s.status
	if c == nil && attempt == nil && status.Failures == 0 && (status.State == Cached || !status.Retry.IsZero()) {
		attempt = s.connectLocked()
	} else if c == nil && attempt == nil && !status.Retry.IsZero() && time.Since(status.entered) >= max(s.limits.Reconnect, waitOf(status.Err)) {
		s.connectLocked()
	}
	if c == nil && attempt != nil && urgent {
		s.turn.hurry()
	}
	if c != nil || attempt != nil {
		s.calls++ // before the attempt ends, or the connection might rest before this goroutine goes on
	}
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	if attempt == nil {
		return nil, status.down()
	}
	var err error
	select {
	case <-attempt.Done():
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, _ = s.conn.Peek(); c != nil && err == nil {
		return c, nil
	}
	s.calls--
	if err == nil {
		err = s.status.down()
	}
	return nil, err
}

// done ends the use of a connection that serving returned.
func (s *Server) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.called = time.Now()
}

// callTool sends a tools/call request with the options of its context.
func (c *conn) callTool(ctx context.Context, r mcp.CallToolRequest, asTask bool) (*mcp.CallToolResult, error) {
	var end func()
	r.Params.Meta, end = c.meta(ctx)
	defer end()
	r.Header = c.mirror(r.Params.Name, r.Params.Arguments)
	if asTask {
		return c.callTask(ctx, r)
	}
	large := &taken{least: largeResult}
	result, err := c.client.CallTool(context.WithValue(ctx, takenKey{}, large), r)
	if err == nil && large.raw != nil {
		return parseResult(large.raw)
	}
	return result, err
}
