package mcphybrid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// call runs a tool, within the call timeout. If the connection breaks, the
// call is made once more over a new one if the tool's annotations say that this
// does no harm.
func (s *server) call(ctx context.Context, d *definition, args json.RawMessage) (*mcp.CallToolResult, error) {
	return withTimeout(ctx, s.limits.callTimeout, func(ctx context.Context) (*mcp.CallToolResult, error) {
		for again := d.repeatable(); ; again = false {
			c, err := s.serving(ctx)
			if err != nil {
				return nil, err
			}
			var r mcp.CallToolRequest
			r.Params.Name = d.name
			r.Params.Arguments = args
			result, err := c.callTool(ctx, r)
			s.done()
			if bad := new(badRequestError); errors.As(err, &bad) {
				c.tellChanged() // a listing shows whether the session is known
			}
			if !isLostIn(ctx, err) {
				return result, s.told(err)
			}
			err = c.explain(err)
			s.lose(c, err)
			if !again {
				return nil, fmt.Errorf("%w: %w", ErrServerDown, s.told(err))
			}
		}
	})
}

// isLostIn is isLost for a call with ctx: if not the caller has ended it, it was
// closed with the connection.
func isLostIn(ctx context.Context, err error) bool {
	return isLost(err) || errors.Is(err, context.Canceled) && ctx.Err() == nil
}

// serving returns the connection, which is not given up for want of calls until
// done is called. It waits for one that is being made, and has
// it made if the server has not run yet or was only just lost. Once an attempt
// has failed, it waits for none; but as somebody needs the server, the next one
// is made no later than after the first step of the backoff.
func (s *server) serving(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	c, attempt, status := s.conn.value, s.conn.flight, s.status
	if c == nil && attempt == nil && status.Failures == 0 && (status.State == StateCached || !status.Retry.IsZero()) {
		attempt = s.connectLocked()
	} else if c == nil && attempt == nil && !status.Retry.IsZero() && time.Since(status.Since) >= s.limits.reconnect {
		s.connectLocked()
	}
	if c != nil {
		s.calls++
	}
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	if attempt == nil {
		return nil, status.down()
	}
	select {
	case <-attempt.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.conn.there {
		return nil, s.status.down()
	}
	s.calls++
	return s.conn.value, nil
}

func (s *server) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.called = time.Now()
}

// down returns [ErrServerDown] with what is known.
func (st ServerStatus) down() error {
	err := ErrServerDown
	if st.Err != nil {
		err = fmt.Errorf("%w: %w", err, st.Err)
	}
	if !st.Retry.IsZero() {
		err = fmt.Errorf("%w; the next attempt to connect is at %s", err, st.Retry.UTC().Format(time.RFC3339Nano))
	}
	return err
}

// withTimeout calls f with a context that ends after d, and says so in the
// error if it was that.
func withTimeout(ctx context.Context, d time.Duration, f func(context.Context) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	inner, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	result, err := f(inner)
	if err != nil && inner.Err() != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("no answer within %v: %w", d, context.DeadlineExceeded)
	}
	return result, err
}
