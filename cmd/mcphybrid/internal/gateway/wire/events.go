package wire

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

type eventWriterKey struct{}

// An EventWriter is the answer to an HTTP request. A notification before the
// answer makes it a stream of events, with mcp-go's answer as the last one.
// mcp-go could do that itself, but loses some notifications.
type EventWriter struct {
	http.ResponseWriter
	header http.Header   // as mcp-go sets it
	within time.Duration // how long the client may take to read what is written at once

	// What else it carries. Set and called by the request's own goroutine only.
	notices *Notices // or nil
	stays   bool     // it is no answer
	leave   func()   // ends that, or nil

	mu     sync.Mutex
	status int           // of an answer that is not there yet, which may change it; or 0
	begun  bool          // the header is sent
	first  chan struct{} // closed when something follows the header; or nil
	wrote  bool
	stream bool // the answer is a stream of events
	over   bool // the answer is complete
}

// WithEvents puts an EventWriter into the context of each request.
func WithEvents(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w := &EventWriter{ResponseWriter: out, header: out.Header().Clone(), within: within}
		defer w.end()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), eventWriterKey{}, w)))
	})
}

// EventsOf returns the answer to the request of ctx, or nil if it is none of HTTP.
func EventsOf(ctx context.Context) *EventWriter {
	w, _ := ctx.Value(eventWriterKey{}).(*EventWriter)
	return w
}

const eventStream = "text/event-stream"

// unbuffered is the header by which nginx and others are told to pass on each event at
// once.
const unbuffered = "X-Accel-Buffering"

// Header returns mcp-go's header. We must not read it before it is complete.
func (w *EventWriter) Header() http.Header { return w.header }

func (w *EventWriter) WriteHeader(status int) {
	w.settle()
	w.mu.Lock()
	if w.status = status; w.header.Get("Content-Type") != "application/json" {
		w.beginLocked()
	}
	open := w.stays && w.stream
	w.mu.Unlock()
	if open && w.leave == nil {
		w.leave = w.notices.Attach(w, true)
	}
}

// Carry has notices written with the answer, before it or, if it stays open, to it.
func (w *EventWriter) Carry(n *Notices, stays bool) {
	w.notices, w.stays = n, stays
	if !stays {
		w.leave = n.Attach(w, false)
	}
}

// settle returns when no notice is being written before an answer.
func (w *EventWriter) settle() {
	if w.notices != nil && !w.stays {
		w.notices.settle(w)
	}
}

func (w *EventWriter) end() {
	if w.leave != nil {
		w.leave()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status != 0 { // an answer without a body
		w.beginLocked()
	}
	w.over = true
}

func (w *EventWriter) beginLocked() {
	if w.begun {
		return
	}
	w.extendLocked()
	w.begun, w.stream = true, w.header.Get("Content-Type") == eventStream
	for key, values := range w.header {
		w.ResponseWriter.Header()[key] = values
	}
	if w.stream {
		w.ResponseWriter.Header().Set(unbuffered, "no")
	}
	w.ResponseWriter.WriteHeader(cmp.Or(w.status, http.StatusOK))
}

// Begun returns a channel that is closed when the first event, or the answer, is written.
func (w *EventWriter) Begun() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		w.first = make(chan struct{})
		if w.wrote {
			close(w.first)
		}
	}
	return w.first
}

// wroteLocked notes that something is written.
func (w *EventWriter) wroteLocked() {
	if !w.wrote && w.first != nil {
		close(w.first)
	}
	w.wrote = true
}

// Write writes mcp-go's output: an event, or an answer, which becomes an event
// in a stream.
func (w *EventWriter) Write(p []byte) (int, error) {
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	answer, refusal := unmarked(p)
	if refusal != nil {
		w.status = refusal.status(w.status)
	}
	w.beginLocked()
	w.extendLocked()
	var err error
	if !w.stream || w.header.Get("Content-Type") == eventStream {
		_, err = w.ResponseWriter.Write(answer)
	} else {
		err = w.eventLocked(answer)
		w.over = true // nothing follows the answer
	}
	w.wroteLocked()
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements [http.Flusher].
func (w *EventWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status != 0 {
		w.beginLocked()
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// extendLocked gives the client time to read what comes now.
func (w *EventWriter) extendLocked() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.within))
}

// Unwrap is for [http.ResponseController].
func (w *EventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Notify implements [Sink].
func (w *EventWriter) Notify(method string, params any) (written bool) {
	message, err := newNotification(method, params)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.over || w.begun && !w.stream {
		return false
	}
	if !w.begun {
		w.begun, w.stream = true, true
		w.ResponseWriter.Header().Set("Content-Type", eventStream)
		w.ResponseWriter.Header().Set("Cache-Control", "no-cache")
		w.ResponseWriter.Header().Set(unbuffered, "no")
		w.ResponseWriter.WriteHeader(http.StatusOK)
	}
	defer w.wroteLocked()
	return w.eventLocked(message) == nil // or the client is gone, which ends its request
}

// eventLocked writes a message, which is one line.
func (w *EventWriter) eventLocked(message []byte) error {
	w.extendLocked()
	_, err := fmt.Fprintf(w.ResponseWriter, "event: message\ndata: %s\n\n", bytes.TrimSpace(message))
	if err == nil {
		err = http.NewResponseController(w.ResponseWriter).Flush()
	}
	return err
}
