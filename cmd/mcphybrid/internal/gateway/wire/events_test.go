package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// answer serves a request with what handle does to its EventWriter, and returns the answer.
func answer(handle func(out http.ResponseWriter, w *EventWriter)) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	WithEvents(time.Minute, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { handle(out, EventsOf(r.Context())) })).ServeHTTP(out, httptest.NewRequest("POST", "/", nil))
	return out
}

func asJSON(out http.ResponseWriter, body string) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(out, body)
}

// An answer alone stays as mcp-go writes it.
func TestAnswerAlone(t *testing.T) {
	t.Parallel()
	got := answer(func(out http.ResponseWriter, w *EventWriter) {
		asJSON(out, `{"a":1}`)
		assert.False(t, w.Notify("late", nil), "nothing follows an answer")
	})
	assert.Equal(t, `{"a":1}`, got.Body.String())
	assert.Equal(t, "application/json", got.Header().Get("Content-Type"))
	assert.Empty(t, got.Header().Get(unbuffered))
	got = answer(func(out http.ResponseWriter, _ *EventWriter) { out.WriteHeader(http.StatusAccepted) })
	assert.Equal(t, http.StatusAccepted, got.Code)
	got = answer(func(out http.ResponseWriter, _ *EventWriter) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusNotFound)
	})
	assert.Equal(t, http.StatusNotFound, got.Code, "an answer without a body")
	assert.Equal(t, http.StatusOK, answer(func(http.ResponseWriter, *EventWriter) {}).Code)
}

// A notification before the answer makes it a stream, with the answer as the last event.
func TestNotificationsComeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	got := answer(func(out http.ResponseWriter, w *EventWriter) {
		begun := w.Begun()
		select {
		case <-begun:
			assert.Fail(t, "nothing is written")
		default:
		}
		assert.True(t, w.Notify("notifications/x", map[string]any{"a": 1}))
		<-begun
		<-w.Begun()
		assert.True(t, w.Notify("notifications/y", nil))
		asJSON(out, "{\"b\":2}\n")
		assert.False(t, w.Notify("late", nil))
	})
	assert.Equal(t, http.StatusOK, got.Code)
	assert.Equal(t, eventStream, got.Header().Get("Content-Type"))
	assert.Equal(t, "no", got.Header().Get(unbuffered))
	assert.Equal(t, "no-cache", got.Header().Get("Cache-Control"))
	assert.Regexp(t, `(?s)^event: message\ndata: \{[^\n]*"notifications/x"[^\n]*\}\n\nevent: message\ndata: \{[^\n]*"notifications/y"[^\n]*\}\n\nevent: message\ndata: \{"b":2\}\n\n$`, got.Body.String())
	assert.True(t, got.Flushed)
}

// A stream of mcp-go's stays one, and takes notifications between its events.
func TestStreamsTakeNotifications(t *testing.T) {
	t.Parallel()
	got := answer(func(out http.ResponseWriter, w *EventWriter) {
		out.Header().Set("Content-Type", eventStream)
		out.WriteHeader(http.StatusOK)
		select {
		case <-w.Begun():
			assert.Fail(t, "only the header is written")
		default:
		}
		_, _ = io.WriteString(out, "event: message\ndata: 1\n\n")
		<-w.Begun()
		assert.True(t, w.Notify("notifications/x", nil))
		_, _ = io.WriteString(out, "event: message\ndata: 2\n\n")
	})
	assert.Regexp(t, `^event: message\ndata: 1\n\nevent: message\ndata: [^\n]*notifications/x[^\n]*\n\nevent: message\ndata: 2\n\n$`, got.Body.String())
	assert.Equal(t, "no", got.Header().Get(unbuffered))
}

// What can't be written as JSON, or to a client that is gone, was not written.
func TestNotificationsThatAreNotWritten(t *testing.T) {
	t.Parallel()
	answer(func(_ http.ResponseWriter, w *EventWriter) {
		assert.False(t, w.Notify("x", func() {}))
		assert.True(t, w.Notify("x", nil), "nothing was begun")
	})
	WithEvents(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.False(t, EventsOf(r.Context()).Notify("x", nil))
	})).ServeHTTP(gone{httptest.NewRecorder()}, httptest.NewRequest("POST", "/", nil))
	assert.Nil(t, EventsOf(t.Context()))
}

// gone is a client that is gone.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, errors.New("gone") }
