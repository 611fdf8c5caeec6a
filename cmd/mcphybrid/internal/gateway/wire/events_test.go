package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
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

// An answer that is not written is an error. Who asks late whether something was written is told too.
func TestAnswersThatAreNotWritten(t *testing.T) {
	t.Parallel()
	for _, asEvent := range []bool{false, true} {
		out := &going{ResponseRecorder: httptest.NewRecorder()}
		WithEvents(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			w := EventsOf(r.Context())
			if asEvent {
				assert.True(t, w.Notify("x", nil))
				<-w.Begun()
			}
			out.gone = true
			w.Header().Set("Content-Type", "application/json")
			n, err := io.WriteString(w, "{}")
			assert.Zero(t, n)
			assert.EqualError(t, err, "gone")
			<-w.Begun()
		})).ServeHTTP(out, httptest.NewRequest("POST", "/", nil))
	}
}

// going is a client that goes.
type going struct {
	*httptest.ResponseRecorder
	gone bool
}

func (g *going) Write(p []byte) (int, error) {
	if g.gone {
		return 1, errors.New("gone")
	}
	return g.ResponseRecorder.Write(p)
}

// Nothing is written to an answer that has ended.
func TestAnswersEnd(t *testing.T) {
	t.Parallel()
	var ended *EventWriter
	got := answer(func(_ http.ResponseWriter, w *EventWriter) {
		ended = w
		assert.True(t, w.Notify("x", nil))
	})
	length := got.Body.Len()
	assert.False(t, ended.Notify("x", nil))
	assert.Equal(t, length, got.Body.Len())
	<-ended.Begun()
}

// gone is a client that is gone.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, errors.New("gone") }

// A request's answer carries notices before it, and none once it has begun.
func TestAnswersCarryNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotices()
		n.Begin()
		got := answer(func(out http.ResponseWriter, w *EventWriter) {
			w.Carry(n, false)
			n.Tell("notifications/a")
			asJSON(out, `{"b":2}`)
			n.Tell("notifications/late")
			synctest.Wait()
		})
		assert.Regexp(t, `(?s)^event: message\ndata: \{[^\n]*"notifications/a"[^\n]*\}\n\nevent: message\ndata: \{"b":2\}\n\n$`, got.Body.String())
		assert.Equal(t, []notice{{method: "notifications/late"}}, due(n), "it goes with another one")
		got = answer(func(out http.ResponseWriter, w *EventWriter) {
			defer n.Attach(new(said), true)()
			w.Carry(n, false)
			assert.Same(t, w, streams(n)[0], "one that stays is better")
			synctest.Wait()
		})
		assert.Contains(t, got.Body.String(), "notifications/late")
		assert.Empty(t, streams(n))
	})
}

// A stream that stays takes notices as soon as it is one, and until it ends. An answer of another kind
// takes none.
func TestStreamsCarryNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, other := NewNotices(), new(said)
		detach := n.Attach(other, true)
		got := answer(func(out http.ResponseWriter, w *EventWriter) {
			w.Carry(n, true)
			assert.Equal(t, []Sink{other}, streams(n), "there is no header yet")
			n.Tell("notifications/a")
			out.Header().Set("Content-Type", eventStream)
			out.WriteHeader(http.StatusOK)
			out.WriteHeader(http.StatusOK)
			assert.Equal(t, []Sink{other, w}, streams(n), "the later one is better")
			n.Begin()
			n.Tell("notifications/b")
			synctest.Wait()
		})
		detach()
		assert.Regexp(t, `(?s)^event: message\ndata: \{[^\n]*"notifications/a"[^\n]*\}\n\nevent: message\ndata: \{[^\n]*"notifications/b"[^\n]*\}\n\n$`, got.Body.String())
		assert.Empty(t, streams(n))
		n.Tell("notifications/c")
		answer(func(out http.ResponseWriter, w *EventWriter) {
			w.Carry(n, true)
			asJSON(out, `{}`)
			assert.Empty(t, streams(n))
		})
		synctest.Wait()
		assert.Equal(t, []notice{{method: "notifications/c"}}, due(n))
	})
}

// To flush an answer sends its header. Before there is one, it sends nothing of ours.
func TestFlush(t *testing.T) {
	t.Parallel()
	got := answer(func(out http.ResponseWriter, w *EventWriter) {
		out.Header().Set("Content-Type", "application/json")
		out.Header().Set("X-Ours", "1")
		out.WriteHeader(http.StatusAccepted)
		w.Flush()
		out.Header().Set("X-Late", "1")
		_, _ = io.WriteString(out, "{}")
	})
	assert.True(t, got.Flushed)
	assert.Equal(t, http.StatusAccepted, got.Code)
	assert.Equal(t, "1", got.Result().Header.Get("X-Ours"))
	assert.Empty(t, got.Result().Header.Get("X-Late"))
	answer(func(out http.ResponseWriter, w *EventWriter) {
		w.Flush()
		assert.False(t, w.begun)
	})
}

// Each write gives the client time of its own to read it.
func TestTimeToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		WithEvents(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			w := EventsOf(r.Context())
			w.Notify("notifications/a", nil)
			time.Sleep(time.Hour)
			asJSON(w, `{}`)
		})).ServeHTTP(out, httptest.NewRequest("POST", "/", nil))
		assert.Equal(t, time.Minute, out.first)
		assert.Equal(t, time.Minute, out.last)
		for _, body := range []string{"", "{}"} {
			out := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			WithEvents(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				w := EventsOf(r.Context())
				w.Header().Set("Content-Type", "application/json")
				if body != "" {
					w.WriteHeader(http.StatusOK)
					w.Flush()
					out.first, out.last = 0, 0
					time.Sleep(time.Hour)
					_, _ = io.WriteString(w, body)
				} else {
					w.WriteHeader(http.StatusAccepted)
				}
			})).ServeHTTP(out, httptest.NewRequest("POST", "/", nil))
			assert.Equal(t, time.Minute, out.first, "%q", body)
		}
	})
}

// deadlines notes how long a client may take to read.
type deadlines struct {
	*httptest.ResponseRecorder
	first, last time.Duration
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last = time.Until(at)
	if d.first == 0 {
		d.first = d.last
	}
	return nil
}

func streams(n *Notices) []Sink {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.streams)
}

func due(n *Notices) []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.due)
}
