package upstream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stands returns what asks for the standing stream of a server with these answers in turn,
// the last of which it repeats, and the times of the requests.
func stands(t *testing.T, reopened func(), answers ...*http.Response) (ask func(context.Context) (*http.Response, error), asked *[]time.Time) {
	at, err := url.Parse("http://127.0.0.1:1/mcp")
	require.NoError(t, err)
	asked = new([]time.Time)
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		a := *answers[min(len(*asked), len(answers)-1)]
		*asked = append(*asked, time.Now())
		a.Body = io.NopCloser(strings.NewReader(""))
		return &a, nil
	})
	rt := &limitedHTTP{large: newBypass(), base: base, authorizer: &authorizer{server: at}, maxMessage: 1000, maxValues: 1000, unsolicited: &unsolicited{max: 10, maxBytes: 1000}, stream: &serverStream{reopened: reopened, answered: make(chan struct{})}}
	return func(ctx context.Context) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		require.NoError(t, err)
		return rt.RoundTrip(r)
	}, asked
}

func status(code int) *http.Response { return &http.Response{StatusCode: code, Header: http.Header{}} }

func stream() *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}}
}

// A server without the stream is asked once: mcp-go reads a stream on which nothing comes.
func TestServerWithoutStandingStream(t *testing.T) {
	for _, code := range []int{http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusOK, http.StatusNotModified, http.StatusFound, http.StatusTemporaryRedirect} {
		synctest.Test(t, func(t *testing.T) {
			ask, asked := stands(t, nil, status(code))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			resp, err := ask(ctx)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, resp.StatusCode)
			_, err = resp.Body.Read(make([]byte, 1))
			assert.ErrorIs(t, err, context.DeadlineExceeded, "until the connection is closed")
			assert.Len(t, *asked, 1)
		})
	}
}

// A request whose caller has gone is not sent, however long ago the last one was.
func TestStandingStreamOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask, asked := stands(t, nil, status(http.StatusBadGateway), status(http.StatusBadGateway), status(http.StatusMethodNotAllowed))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel) // before the third try
		_, err := ask(ctx)
		assert.Equal(t, context.Canceled, err)
		assert.Len(t, *asked, 2)
		time.Sleep(2 * maxBackoff)
		_, err = ask(ctx)
		assert.Equal(t, context.Canceled, err)
		assert.Len(t, *asked, 2)
	})
}

// Where a redirect leads to, http.Client follows.
func TestStandingStreamIsElsewhere(t *testing.T) {
	moved := status(http.StatusTemporaryRedirect)
	moved.Header.Set("Location", "/other")
	ask, _ := stands(t, nil, moved)
	resp, err := ask(t.Context())
	require.NoError(t, err)
	assert.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode)
}

// A server that fails is asked for the stream less and less often.
func TestStandingStreamFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask, asked := stands(t, nil, status(http.StatusBadGateway))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := ask(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.InDelta(t, 66, len(*asked), 4)
	})
}

// A server that had the stream and then wants another login has it again after that.
func TestStandingStreamWantsALogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask, asked := stands(t, func() {}, stream(), status(http.StatusUnauthorized), status(http.StatusUnauthorized), stream())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for range 2 {
			resp, err := ask(ctx)
			require.NoError(t, err)
			_, err = resp.Body.Read(make([]byte, 1))
			assert.Equal(t, io.EOF, err, "it is the server's")
		}
		assert.Len(t, *asked, 4)
	})
}

// When there is a stream again, changes may have been missed. A server that ends each is
// asked less and less often, unless they last.
func TestStandingStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reopened := 0
		ask, asked := stands(t, func() { reopened++ }, stream(), stream(), stream(), stream(), stream(), status(http.StatusNotFound))
		for range 4 {
			_, err := ask(t.Context())
			require.NoError(t, err)
		}
		assert.Equal(t, 3, reopened)
		for i, least := range []time.Duration{0, time.Second, 2 * time.Second} {
			assert.Equal(t, least, (*asked)[i+1].Sub((*asked)[i]))
		}
		time.Sleep(maxBackoff)
		_, err := ask(t.Context())
		require.NoError(t, err)
		resp, err := ask(t.Context())
		require.NoError(t, err)
		assert.Equal(t, http.StatusNotFound, resp.StatusCode, "the session is over, which mcp-go must know")
		assert.Zero(t, (*asked)[5].Sub((*asked)[4]))
	})
}

// Without any hooks, a server before 2026-07-28 is heard over HTTP. One without the stream is
// no error in the log.
func TestChangesOfASession(t *testing.T) {
	for _, has := range []bool{true, false} {
		var log mcptest.Log
		s := both()
		s.discovered, s.refuses = "", lacksAs404
		change, asked := make(chan struct{}), make(chan struct{}, 10)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				s.ServeHTTP(w, r)
				return
			}
			asked <- struct{}{}
			if !has {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			select {
			case <-change:
			case <-r.Context().Done():
				return
			}
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		srv := newTestOf(t, Config{Server: config.Server{Name: "web", URL: web.URL}, Log: slog.New(slog.NewTextHandler(&log, nil))}, config.Limits{})
		require.NoError(t, srv.Start(t.Context()))
		require.Equal(t, "2025-11-25", srv.connection().client.ProtocolVersion())
		select {
		case <-asked:
		case <-time.After(20 * time.Second):
			require.FailNow(t, "the stream is not asked for")
		}
		if has {
			close(change)
			require.Eventually(t, func() bool { _, lists := srv.listed(); return lists == 2 }, 20*time.Second, time.Millisecond)
		}
		srv.Close()
		web.Close()
		assert.Empty(t, asked)
		assert.NotContains(t, log.String(), "level=ERROR")
		assert.NotContains(t, log.String(), "level=WARN")
	}
}

// When there is a stream again, updates of resources may have been missed as changes may.
func TestSubscribersAreToldOfTheNextStream(t *testing.T) {
	t.Parallel()
	b := newBoard()
	front := mcpserver.NewStreamableHTTPServer(b.MCPServer, mcpserver.WithStateful(true))
	cut := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			ctx, end := context.WithCancel(r.Context())
			defer end()
			go func() {
				select {
				case <-cut:
					end()
				case <-ctx.Done():
				}
			}()
			r = r.WithContext(ctx)
		}
		front.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	srv := started(t, config.Server{Name: "b", URL: web.URL, Protocol: "2025-11-25"}, config.Limits{MaxSubscriptions: 1})
	told := make(chan string, 9)
	_, err := srv.Subscribe(t.Context(), nil, "mem://a", telling(told))
	require.NoError(t, err)
	c := srv.connection()
	cut <- struct{}{}
	select {
	case uri := <-told:
		assert.Equal(t, "mem://a", uri)
	case <-time.After(20 * time.Second):
		assert.Fail(t, "it is not told")
	}
	assert.Same(t, c, srv.connection())
}

// A subscription waits until it is known whether there is a stream, for five seconds at most.
func TestWaitForTheStandingStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		(*serverStream)(nil).await(t.Context())
		s := &serverStream{answered: make(chan struct{})}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		s.await(ended)
		assert.Zero(t, time.Since(begun))
		time.AfterFunc(time.Second, s.answer)
		s.await(t.Context())
		assert.Equal(t, time.Second, time.Since(begun))
		s.answer()
		s.await(t.Context())
		assert.Equal(t, time.Second, time.Since(begun))
		(&serverStream{answered: make(chan struct{})}).await(t.Context())
		assert.Equal(t, 6*time.Second, time.Since(begun))
	})
}

// The standing stream may have more bytes in all than a message, and ends when the server floods it.
func TestStandingStreamIsOfEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "")
		limits := storyLimits()
		limits.MaxMessage, limits.MaxUnasked = 2000, 5
		srv := s.open(Config{}, limits)
		require.NoError(t, srv.Start(t.Context()))
		stream := func() *io.PipeWriter {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.stream
		}
		first := stream()
		note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 500) + `"}}`
		for range 10 {
			s.push(note)
			time.Sleep(time.Minute)
		}
		assert.Same(t, first, stream())
		for range 7 {
			if _, err := fmt.Fprintf(first, "data: %s\n\n", note); err != nil {
				break
			}
		}
		time.Sleep(time.Minute)
		assert.NotSame(t, first, stream())
		assert.Equal(t, Ready, srv.Status().State)
	})
}
