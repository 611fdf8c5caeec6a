package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An event of a stream counts as one message, however many lines it has.
func TestLimitedBody(t *testing.T) {
	const tooLong, tooMany, manyValues = "more bytes than the limit of 100", "too many lines", "more values than the limit of 20"
	for _, test := range []struct {
		name, body string
		events     bool
		want       string
	}{
		{"a body within the limit", strings.Repeat("x", 100), false, ""},
		{"a body over it", strings.Repeat("x\n\n", 34), false, tooLong},
		{"many events within it", strings.Repeat("data: xxxx\n\n", 50), true, ""},
		{"many with carriage returns", strings.Repeat("data: xxxx\r\n\r\n", 50), true, ""},
		{"an event just within it", "event: message\ndata: " + strings.Repeat("x", 77) + "\n\n", true, ""},
		{"an event of several lines", strings.Repeat("data: xxxx\n", 6) + "\n", true, ""},
		{"an event of many lines", strings.Repeat("data: xxxx\n", 9) + "\n", true, tooMany},
		{"an event of long lines over it", strings.Repeat("data: "+strings.Repeat("x", 40)+"\n", 3) + "\n", true, tooLong},
		{"a long line", strings.Repeat("x", 101), true, tooLong},
		{"values within the limit", strings.Repeat("[", 20), false, ""},
		{"values over it", strings.Repeat("[", 21), false, manyValues},
		{"values of an event within it", "data:[\n" + "data: " + strings.Repeat("[", 19) + "\n\n", true, ""},
		{"values of an event over it", "data:[\n" + "data: " + strings.Repeat("[", 20) + "\n\n", true, manyValues},
		{"values of two events", strings.Repeat("data:"+strings.Repeat("[", 15)+"\r\n\r\n", 2), true, ""},
		{"a quote beside the data hides none", ": \"\nid: \"\ndata: " + strings.Repeat("[", 21) + "\n\n", true, manyValues},
		{"what is beside the data", ":" + strings.Repeat("[", 40) + "\ndate:" + strings.Repeat("[", 30) + "\n\n", true, ""},
		{"values of a result", `{"result":[` + strings.Repeat("[", 40) + `]`, false, ""},
	} {
		b := &limitedBody{ReadCloser: io.NopCloser(iotest.OneByteReader(strings.NewReader(test.body))), max: 100, maxValues: 20, events: test.events, unsolicited: &unsolicited{max: 50, maxBytes: 1000}}
		got, err := io.ReadAll(b)
		if test.want == "" {
			assert.NoError(t, err, test.name)
			assert.Equal(t, test.body, string(got))
		} else {
			assert.ErrorContains(t, err, test.want, test.name)
		}
	}
}

// What the reader of a stream copies is bounded by what it reads.
func TestLinesOfAnEventCost(t *testing.T) {
	const limit = 1 << 20
	for _, line := range []string{"data:x\n", "data:\n:\n", "x\r\n", "data: " + strings.Repeat("x", 1000) + "\n"} {
		lines := &repeated{text: strings.Repeat(line, 1+limit/len(line))}
		b := &limitedBody{ReadCloser: io.NopCloser(io.LimitReader(lines, int64(limit*len(line)))), max: limit, maxValues: limit, events: true, unsolicited: &unsolicited{max: 50, maxBytes: limit}}
		got, err := io.ReadAll(b)
		assert.Error(t, err)
		n := bytes.Count(got, []byte("\n"))
		assert.LessOrEqual(t, n*len(got)/2, 2*copied*limit, "%d lines of %q", n, line[:3])
	}
}

// A repeated reads a text again and again. All at once would take gigabytes.
type repeated struct{ text, rest string }

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Everything that a server lists is bounded: tools, pages, cursors, bytes.
func TestListingIsBounded(t *testing.T) {
	l := Limits{MaxTools: 3, MaxPages: 3, MaxDefinition: 100, MaxListing: 200}
	tool := `{"name":"` + strings.Repeat("x", 70) + `"}`
	for _, test := range []struct {
		name  string
		pages []string
		want  string
	}{
		{"few", []string{`{"tools":[{"name":"a"}],"nextCursor":"1"}`, `{"tools":[{"name":"b"}]}`}, ""},
		{"tools", []string{`{"tools":[{},{}]}`, `{"tools":[{},{}]}`}, "it lists more tools than the limit of 3"},
		{"two lists of one page", []string{`{"tools":[{},{}],"tools":[1,[{},"]"]]}`}, "it lists more tools than the limit of 3"},
		{"members", []string{`{"tools":[]` + strings.Repeat(`,"x":[]`, 1000) + `}`}, "tools/list result: it has more members than the limit of 1000"},
		{"no object", []string{`[{"tools":[1,2,3,4]}]`}, "is a JSON array, want an object"},
		{"pages", slices.Repeat([]string{`{"tools":[],"nextCursor":"1"}`}, 4), "it lists its tools on more pages than the limit of 3"},
		{"cursor", []string{`{"tools":[],"nextCursor":"` + strings.Repeat("x", maxCursor) + `"}`}, "the cursor of a page has more bytes"},
		{"bytes", []string{`{"tools":[` + tool + `,` + tool + `,` + tool + `]}`}, "its tools have more bytes than the limit of 200"},
	} {
		listing := &listing{limits: l}
		var err error
		for _, page := range test.pages {
			if _, err = listing.takePage(json.RawMessage(page)); err != nil {
				break
			}
		}
		if test.want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, test.want, test.name)
	}
}

// A list is not decoded if it has far too many elements or members.
func TestPageIsNotDecoded(t *testing.T) {
	for _, page := range []string{`{"tools":[0` + strings.Repeat(",0", 1<<20) + `]}`, `{"tools":[]` + strings.Repeat(`,"x":0`, 1<<20) + `}`} {
		assert.Less(t, testing.AllocsPerRun(1, func() {
			_, err := (&listing{limits: Limits{MaxTools: 10_000, MaxPages: 9}}).takePage(json.RawMessage(page))
			assert.ErrorContains(t, err, "than the limit of")
		}), 100.0)
	}
}

func TestFrameReader(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, test := range []struct{ name, in, want string }{
		{"short lines", "a\nb\n", "a\nb\n"},
		{"half a line at the end is dropped", "a\nhalf", "a\n"},
		{"id first", `{"jsonrpc":"2.0","id":7,"result":"` + long + "\"}\nb\n",
			`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"a message has more bytes than the limit of 60000"}}` + "\nb\n"},
		{"id last", `{"result":"` + long + "\", \"jsonrpc\":\"2.0\", \"id\": 8}\n",
			`{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"a message has more bytes than the limit of 60000"}}` + "\n"},
		{"id within the result only", `{"result":"` + long + `","x":{"id":9}}` + "\nb\n", "\nb\n"},
		{"values of an error", `{"jsonrpc":"2.0","id":7,"error":{"data":[` + strings.Repeat("[],", 20) + "1]}}\nb\n",
			`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"a message has more values than the limit of 20"}}` + "\nb\n"},
		{"values of a notification", `{"method":"a","params":{"a":[` + strings.Repeat("[],", 20) + "1]}}\nb\n", "\nb\n"},
		{"values of a request, whose id is the server's", `{"id":7,"method":"a","params":{"a":[` + strings.Repeat("[],", 20) + "1]}}\nb\n", "\nb\n"},
		{"values of a result are not decoded here", `{"id":7,"result":[` + strings.Repeat("[],", 20) + "1]}\nb\n", `{"id":7,"result":[` + strings.Repeat("[],", 20) + "1]}\nb\n"},
		{"just over the limit", `{"id":1,"r":"` + long[:60000-14] + "\"}\n", // 60001 bytes with the newline
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"a message has more bytes than the limit of 60000"}}` + "\n"},
		{"just within it", `{"id":1,"r":"` + long[:60000-16] + "\"}\n", `{"id":1,"r":"` + long[:60000-16] + "\"}\n"},
	} {
		f := newFrameReader(strings.NewReader(test.in), 60_000, 20, &unsolicited{max: 10, maxBytes: 1 << 20}, func(error) {})
		var got strings.Builder
		_, err := fmt.Fprint(&got, readAll(f))
		require.NoError(t, err)
		assert.Equal(t, test.want, got.String(), test.name)
	}
}

func readAll(f *frameReader) string {
	var b strings.Builder
	buf := make([]byte, 10)
	for {
		n, err := f.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

const floodRequest = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// mostGoroutines runs f and returns by how many the number of goroutines rose
// at most.
func mostGoroutines(f func()) (most int) {
	before := runtime.NumGoroutine()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return most
		case <-time.After(time.Millisecond):
			most = max(most, runtime.NumGoroutine()-before)
		}
	}
}

// A child that floods us and reads nothing is given up at the limit: before
// initialization, during it, and while it serves.
func TestFloodingChild(t *testing.T) {
	t.Parallel()
	const limit = 100
	want := "it sends more messages unasked than the limit of 100 in a second"
	for name, line := range map[string]string{"requests": floodRequest, "notifications": mcptest.FloodNotification, "junk": "?", "nothing": ""} {
		for _, after := range []string{"", "initialize", "tools/list"} {
			t.Run(name+" after "+after, func(t *testing.T) {
				cfg := child(t, "flood", "flood")
				cfg.Env["FLOOD"], cfg.Env["AFTER"] = line, after
				srv := newTest(t, cfg, Limits{MaxUnasked: limit, Reconnect: -1})
				var err error
				most := mostGoroutines(func() {
					err = srv.Start(t.Context())
					mcptest.Soon(t, func() bool { return srv.Status().State == Down })
				})
				assert.Less(t, most, 3*limit)
				if err != nil { // it may have got this far
					assert.ErrorContains(t, err, want)
				} else {
					assert.Equal(t, "tools/list", after)
				}
				assert.ErrorContains(t, srv.Status().Err, want)
			})
		}
	}
}

// The limit holds for streams over HTTP too, for the answer to a call and for
// the one that we listen to. If the server does not accept our answers to its
// requests, they don't pile up.
func TestFloodingHTTP(t *testing.T) {
	const limit = 10          // one piece that is read has more, however slow the machine is
	var flooding atomic.Value // the method that gets this answer
	flooding.Store("")
	s := mcpserver.NewMCPServer("web", "1", mcpserver.WithToolCapabilities(true))
	s.AddTools(mcptest.Echo("echo", "Echoes"))
	handler := mcpserver.NewStreamableHTTPServer(s)
	url := mcptest.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct{ Method string }
		_ = json.Unmarshal(body, &message)
		switch message.Method {
		case flooding.Load():
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", floodRequest); err != nil {
					return
				}
			}
		case "": // an answer
			<-r.Context().Done()
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			handler.ServeHTTP(w, r)
		}
	}), "127.0.0.1:0")
	want := "it sends more messages unasked than the limit of 10 in a second"
	srv := started(t, config.Server{Name: "web", URL: url}, Limits{MaxUnasked: limit, Reconnect: 10 * time.Millisecond})
	_, err := srv.call(t.Context(), "echo")
	require.NoError(t, err)

	flooding.Store("tools/call")
	most := mostGoroutines(func() { _, err = srv.call(t.Context(), "echo") })
	assert.ErrorIs(t, err, ErrDown)
	assert.ErrorContains(t, err, want)
	assert.Less(t, most, 20*limit, "each answer takes a few, here and at the server")

	flooding.Store("tools/list")
	assert.ErrorContains(t, newTest(t, config.Server{Name: "another", URL: url}, Limits{MaxUnasked: limit}).Start(t.Context()), want)

	flooding.Store("subscriptions/listen")
	listening := started(t, config.Server{Name: "listen", URL: url}, Limits{MaxUnasked: limit, Reconnect: 10 * time.Millisecond})
	mcptest.Soon(t, func() bool { st := listening.Status(); return st.Err != nil && strings.Contains(st.Err.Error(), want) })
	flooding.Store("")
	mcptest.Soon(t, func() bool { _, err := srv.call(t.Context(), "echo"); return err == nil })
}

// With n requests under way, n messages may be answers, whenever the requests
// were made. All others count, second by second.
func TestUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unsolicited{max: 3, maxBytes: 1000}
		many := func(n int) (err error) {
			for range n {
				err = errors.Join(err, u.count(1))
			}
			return err
		}
		assert.NoError(t, many(3))
		assert.Error(t, many(1))
		time.Sleep(time.Second)
		for range 10 {
			u.ask()
		}
		assert.NoError(t, many(3))
		time.Sleep(time.Minute)
		assert.NoError(t, many(13), "late answers, and three more")
		assert.Error(t, many(1))
		for range 10 {
			u.answered()
		}
		time.Sleep(time.Second)
		assert.NoError(t, many(3))
		assert.Error(t, many(1))
	})
}

// The bytes of messages that nobody asked for are bounded too: at once, and in the
// long run.
func TestUnaskedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1600
		u := &unsolicited{max: 1000, maxBytes: limit}
		assert.NoError(t, u.count(limit))
		time.Sleep(time.Second)
		assert.NoError(t, u.count(100))
		assert.EqualError(t, u.count(1), "it sends more bytes unasked than the limit of 1600")
		time.Sleep(time.Hour)
		u.ask()
		u.ask()
		assert.NoError(t, errors.Join(u.count(limit), u.count(limit), u.count(limit)), "two answers, and as much besides")
		u.answered()
		u.answered()
		assert.Error(t, u.count(1))
		time.Sleep(time.Hour)
		for range 1000 {
			u.ask()
			assert.NoError(t, u.count(limit))
			u.answered()
		}
		for range 100 {
			time.Sleep(time.Second)
			assert.NoError(t, u.count(100))
		}
	})
}

// Nothing overflows without a limit.
func TestUnaskedWithoutLimit(t *testing.T) {
	u := &unsolicited{max: math.MaxInt, maxBytes: math.MaxInt}
	for range 100 {
		u.ask()
		assert.NoError(t, u.count(math.MaxInt>>8))
		u.answered()
	}
	f := newFrameReader(strings.NewReader(strings.Repeat("x", 1<<20)+"\n"), math.MaxInt, math.MaxInt, u, func(err error) { assert.NoError(t, err) })
	assert.Len(t, readAll(f), 1<<20+1)
	b := &limitedBody{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("data: x\n", 1000) + "\n")), max: math.MaxInt, maxValues: math.MaxInt, events: true, unsolicited: u}
	_, err := io.ReadAll(b)
	assert.NoError(t, err)
	event := "event: message\ndata: {\"result\":\"" + strings.Repeat("x", 1<<20) + "\"}\n\n"
	got, err := readEvents(event, math.MaxInt)
	assert.ErrorIs(t, err, io.EOF)
	assert.Equal(t, event, got)
}

// Many concurrent calls are not taken for a flood.
func TestManyAnswersAreNoFlood(t *testing.T) {
	srv := started(t, child(t, "child", "plain"), Limits{MaxUnasked: 1})
	errs := make(chan error)
	for range 100 {
		go func() {
			_, err := srv.call(context.WithoutCancel(t.Context()), "big")
			errs <- err
		}()
	}
	for range 100 {
		assert.NoError(t, <-errs)
	}
}

// A notification to a child that does not read ends with its context.
func TestNotificationHeedsContext(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	defer r.Close()
	tr := stdioTransport{transport.NewIO(strings.NewReader(""), w, nil), guard{unsolicited: new(unsolicited)}, nil}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, tr.SendNotification(ctx, mcp.JSONRPCNotification{}), context.DeadlineExceeded)
}

// FuzzStreams reads streams of any bytes: lines come out whole and short or not at
// all, an event costs no more than it may, and nobody waits longer than maxWait.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("{\"id\":1}\n\n"+strings.Repeat("x", 300)+"\n"), "30")
	f.Add([]byte("data: x\r\ndata: y\n\nevent: z\n"), "Wed, 21 Oct 2037 07:28:00 GMT")
	f.Add(bytes.Repeat([]byte("data:\n"), 100), "-1")
	f.Fuzz(func(t *testing.T, data []byte, after string) {
		const limit = 64
		lines := readAll(newFrameReader(bytes.NewReader(data), limit, limit, &unsolicited{max: 1000, maxBytes: 1 << 30}, func(error) {}))
		for line := range strings.Lines(lines) {
			if !strings.Contains(line, tooLarge(limit).Error()) {
				assert.LessOrEqual(t, len(line), limit)
				assert.Contains(t, string(data), line)
			}
		}
		for _, events := range []bool{false, true} {
			b := &limitedBody{ReadCloser: io.NopCloser(iotest.HalfReader(bytes.NewReader(data))), max: limit, maxValues: limit, events: events, unsolicited: &unsolicited{max: 1000, maxBytes: 1 << 30}}
			got, err := io.ReadAll(b)
			assert.True(t, bytes.HasPrefix(data, got))
			if err == nil {
				assert.Len(t, got, len(data))
			}
			assert.LessOrEqual(t, b.size, limit+1)
			assert.LessOrEqual(t, b.cost, 2*limit)
		}
		wait := retryAfter(http.Header{"Retry-After": {after}}, time.Now())
		assert.True(t, 0 <= wait && wait <= maxWait, wait)
	})
}

// A tool is executed as a task only if its server says so, in as many words.
func TestNeedsTask(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"name":"a","execution":{"taskSupport":"required"}}`: true, `{"name":"a","execution":{"taskSupport":"optional"}}`: false, `{"name":"a","execution":{"taskSupport":"forbidden"}}`: false,
		`{"name":"a"}`: false, `{"name":"taskSupport"}`: false, `{"execution":{"taskSupport":5}}`: false,
	} {
		assert.Equal(t, want, needsTask(json.RawMessage(raw)), raw)
	}
}
