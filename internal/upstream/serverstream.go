package upstream

import (
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A serverStream is the stream that is no answer to a request: that of GET. A server before protocol
// 2026-07-28 announces changes there, and may ask. mcp-go opens it after each end, a second
// later, for ever, and logs each failure as an error. But for await, its methods are called
// by mcp-go's one goroutine for the stream.
type serverStream struct {
	reopened func()        // is called when there is a stream again: changes may have been missed
	opened   bool          // there was one
	answered chan struct{} // closed once it is known whether there is one
	once     sync.Once
	tried    time.Time
	wait     time.Duration // before the next try, unless the last one was maxBackoff ago
}

// maxStandingWait is how long a subscription waits for the stream. A server that has none
// tells of updates beside its answers.
const maxStandingWait = 5 * time.Second

// await waits until it is known whether there is a stream, so that a subscription misses no
// update. s may be nil.
func (s *serverStream) await(ctx context.Context) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxStandingWait)
	defer cancel()
	select {
	case <-s.answered:
	case <-ctx.Done():
	}
}

func (s *serverStream) answer() { s.once.Do(func() { close(s.answered) }) }

// again waits until it is time for the next try.
func (s *serverStream) again(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.tried.IsZero():
	case time.Since(s.tried) >= maxBackoff:
		s.wait = 0
	default:
		t := time.NewTimer(s.wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.wait = min(max(2*s.wait, time.Second), maxBackoff)
	}
	s.tried = time.Now()
	return nil
}

// stand answers the request for the stream. While the server fails, stand tries again. If
// the server has no such stream, the answer is one on which nothing comes.
func (t *limitedHTTP) stand(r *http.Request) (*http.Response, error) {
	s := t.stream
	for {
		if err := s.again(r.Context()); err != nil {
			return nil, err
		}
		resp, err := t.authorizer.send(r, t.base, nil)
		if err != nil {
			continue
		}
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		switch code := resp.StatusCode; {
		case slices.Contains(redirects, code) && resp.Header.Get("Location") != "":
			return resp, nil
		case code == http.StatusOK && kind == "text/event-stream":
			if s.opened {
				s.reopened()
			}
			s.opened = true
			s.answer()
			resp.Body = &limitedBody{ReadCloser: resp.Body, max: t.maxMessage, maxValues: t.maxValues, unsolicited: t.unsolicited, events: true}
			return resp, nil
		case code == http.StatusNotFound && s.opened: // the session is over
			return resp, nil
		case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusUnauthorized && s.opened: // somebody may log in
			resp.Body.Close()
		default:
			resp.Body.Close()
			s.answer()
			return silent(r), nil
		}
	}
}

// redirects are what http.Client follows to a Location.
var redirects = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// silent returns an answer to r that is a stream on which nothing comes, until r's context ends.
func silent(r *http.Request) *http.Response {
	body, end := io.Pipe()
	context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: body, Request: r,
	}
}
