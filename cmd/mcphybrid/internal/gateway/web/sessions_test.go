package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session ends when nothing was asked, answered or told in it for long. One with a call that
// takes longer stays, and the call has its answer.
func TestSilentSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = time.Minute
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		table := newSessions(10)
		var ended []string
		table.End = func(id string) { ended = append(ended, id) }
		go table.EndSilent(ctx, long)
		said := make(chan string) // to the client that listens
		site := table.withSession(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get(server.HeaderKeySessionID) == "":
				_, _ = io.WriteString(out, table.ResolveSessionIdManager(r).Generate())
			case r.Method == http.MethodGet:
				for {
					select {
					case text := <-said:
						_, _ = io.WriteString(out, text)
						assert.NoError(t, http.NewResponseController(out).Flush())
					case <-r.Context().Done():
						return
					}
				}
			default:
				select {
				case <-time.After(5 * long):
					_, _ = io.WriteString(out, "answered")
				case <-r.Context().Done():
				}
			}
		}))
		ask := func(method, id string) string {
			r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil)
			if id != "" {
				r.Header.Set(server.HeaderKeySessionID, id)
			}
			out := httptest.NewRecorder()
			site.ServeHTTP(out, r)
			return out.Body.String()
		}
		silent, busy, listens := ask(http.MethodPost, ""), ask(http.MethodPost, ""), ask(http.MethodPost, "")
		answer, heard := make(chan string, 1), make(chan string, 1)
		go func() { answer <- ask(http.MethodPost, busy) }()
		go func() { heard <- ask(http.MethodGet, listens) }()
		for range 8 {
			time.Sleep(long / 2)
			said <- "x"
		}
		synctest.Wait()
		assert.Equal(t, []string{silent}, ended)
		require.Equal(t, 2, table.Count())

		time.Sleep(long / 2) // before the answer
		said <- "x"
		assert.Equal(t, "answered", <-answer)
		assert.Equal(t, 2, table.Count())
		time.Sleep(2 * long)
		synctest.Wait()
		assert.Zero(t, table.Count())
		assert.Equal(t, "xxxxxxxxx", <-heard, "the stream ends with the session")
	})
}
