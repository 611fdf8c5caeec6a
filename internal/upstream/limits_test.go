package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
		{"a quote behind a return hides none", "\rdata: \"\ndata: " + strings.Repeat("[", 21) + "\n\n", true, manyValues},
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

// The stream of a request ends with the first message that mcp-go may take for its answer. That
// which is no answer of a request does not.
func TestStreamEndsWithItsAnswer(t *testing.T) {
	const told = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"id":1}}` + "\n\n"
	for answer, ends := range map[string]bool{
		`data: {"jsonrpc":"2.0","id":1,"result":{"method":"x"}}`:      true,
		`data: {"result":{"a":[]}, "ID" : 1}`:                         true,
		`data: {"\u0069d":1,"error":{}}`:                              true,
		"data: {\ndata: \"id\":1}":                                    true,
		"data: {\"id\":1,\n\rdata: \"method\":\"x\",\ndata: \"x\":1}": true, // no line of data begins with a return
		"\rdata: {\"id\":1}":                                          false,
		`data: {"Method":"x","id":1}`:                                 true,
		`data: {"method":"elicitation/create","id":1}`:                false,
		`data: {"id":1,"method":"elicitation/create"}`:                false,
		`data: {"jsonrpc":"2.0","result":{"id":1}}`:                   false,
		`data: [{"id":1}]`:                                            false,
		"data: ping":                                                  false,
		`id: {"id":1}`:                                                false,
		": nothing":                                                   false,
	} {
		for _, answers := range []bool{true, false} {
			stream := told + answer + "\n\n" + told + "data: the rest"
			b := &limitedBody{ReadCloser: io.NopCloser(strings.NewReader(stream)), max: 1000, maxValues: 1000, events: true, answers: answers, unsolicited: &unsolicited{max: 50, maxBytes: 10000}}
			got, err := io.ReadAll(b)
			require.NoError(t, err, answer)
			want := stream
			if ends && answers {
				want = told + answer + "\n\n"
			}
			assert.Equal(t, want, string(got), answer)
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
	l := config.Limits{MaxTools: 3, MaxPages: 3, MaxDefinition: 100, MaxListing: 200}
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
			_, err := (&listing{limits: config.Limits{MaxTools: 10_000, MaxPages: 9}}).takePage(json.RawMessage(page))
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

// A line may have sixteen times the bytes of a message before it is given up. What was asked for, and
// how much comes unasked, counts for lines as for events.
func TestFrameReaderEnds(t *testing.T) {
	t.Parallel()
	const limit = 20
	line := func(n int) string { return `{"id":7,` + strings.Repeat("x", n-1-len(`{"id":7,`)) + "\n" }
	for name, test := range map[string]struct {
		in, end string // how it is told to end
		lines   int
	}{
		"just read":     {line(limit) + "b\n", "", 2},
		"replaced":      {line(limit+1) + "b\n", "", 2},
		"just replaced": {line(16*limit-1) + "b\n", "", 2},
		"given up":      {line(16*limit) + "b\n", "a line has more bytes than 16 times the limit of 20", 0},
		"too many":      {strings.Repeat("b\n", 6), "it sends more messages unasked than the limit of 5 in a second", 5},
		"half a line":   {"b\nb", "", 1},
	} {
		ends := 0
		f := newFrameReader(iotest.OneByteReader(strings.NewReader(test.in)), limit, limit, &unsolicited{max: 5, maxBytes: 1 << 20}, func(err error) {
			ends++
			assert.Equal(t, test.end, errorText(err), name)
		})
		got := readAll(f)
		assert.Equal(t, test.lines, strings.Count(got, "\n"), name)
		assert.Equal(t, strings.Contains(name, "replaced"), strings.Contains(got, `"id":7,"error"`), name)
		assert.Equal(t, 1, ends, name)
	}
}

// The bytes of a line count as far as they are read, so that a line that is replaced costs no more
// than a message may.
func TestLongLinesCountAsMessages(t *testing.T) {
	t.Parallel()
	u := &unsolicited{max: 50, maxBytes: 100}
	var ended error
	f := newFrameReader(strings.NewReader(strings.Repeat("x", 1000)+"\n"+"b\n"), 100, 100, u, func(err error) { ended = err })
	assert.Equal(t, "\n", readAll(f), "the first one is as much as may come at once")
	assert.ErrorContains(t, ended, "it sends more bytes unasked than the limit of 100")
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
				srv := newTest(t, cfg, config.Limits{MaxUnasked: limit, Reconnect: -1})
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
	srv := started(t, config.Server{Name: "web", URL: url}, config.Limits{MaxUnasked: limit, Reconnect: 10 * time.Millisecond})
	_, err := srv.call(t.Context(), "echo")
	require.NoError(t, err)

	flooding.Store("tools/call")
	most := mostGoroutines(func() { _, err = srv.call(t.Context(), "echo") })
	assert.ErrorIs(t, err, ErrDown)
	assert.ErrorContains(t, err, want)
	assert.Less(t, most, 20*limit, "each answer takes a few, here and at the server")

	flooding.Store("tools/list")
	assert.ErrorContains(t, newTest(t, config.Server{Name: "another", URL: url}, config.Limits{MaxUnasked: limit}).Start(t.Context()), want)

	flooding.Store("subscriptions/listen")
	listening := started(t, config.Server{Name: "listen", URL: url}, config.Limits{MaxUnasked: limit, Reconnect: 10 * time.Millisecond})
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
	srv := started(t, child(t, "child", "plain"), config.Limits{MaxUnasked: 1})
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
	tr := stdioTransport{transport.NewIO(strings.NewReader(""), w, nil), guard{unsolicited: new(unsolicited), large: newBypass()}, nil}
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

// A result is refused that has more bytes or values than it may, whatever it is of.
func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	const result = `{"a":[1,2,3]}` // five values
	check := func(g guard, method string, ctx context.Context, result string) error {
		_, err := g.check(ctx, transport.JSONRPCRequest{Method: method}, &transport.JSONRPCResponse{Result: json.RawMessage(result)}, nil)
		return err
	}
	for name, test := range map[string]struct {
		bytes, values int
		want          string
	}{
		"within both":   {len(result), 5, ""},
		"over in bytes": {len(result) - 1, 5, "a message has more bytes than the limit of 12"},
		"over in size":  {len(result), 4, "a message has more values than the limit of 4"},
	} {
		for _, method := range []string{"tools/call", "server/discover"} {
			err := check(guard{maxMessage: test.bytes, maxValues: test.values}, method, t.Context(), result)
			assert.Equal(t, test.want, errorText(err), name+" "+method)
		}
	}
	wide := config.Limits{MaxTools: 9, MaxPages: 9, MaxDefinition: 1000, MaxListing: 1000}
	listing := func() context.Context { return context.WithValue(t.Context(), listingKey{}, &listing{limits: wide}) }
	const page = `{"tools":[{"name":"a","x":[1,2,3,4,5,6,7,8,9]}],"_meta":{"b":[1,2]}}`
	assert.NoError(t, check(guard{maxMessage: 1000, maxValues: 9}, "tools/list", listing(), page), "elements are not decoded as a whole")
	assert.EqualError(t, check(guard{maxMessage: 1000, maxValues: 8}, "tools/list", listing(), page), "a message has more values than the limit of 8")
	assert.ErrorContains(t, check(guard{maxMessage: 1000, maxValues: 1000}, "tools/list", listing(), `{"tools":5}`), "is not a list")
	assert.NoError(t, check(guard{maxMessage: 1000, maxValues: 1000}, "ping", listing(), `{"tools":5}`), "another request")
	q := new(skillQuery)
	skill := context.WithValue(t.Context(), skillQueryKey{}, q)
	assert.Error(t, check(guard{maxMessage: 1000, maxValues: 1000}, "skills/get", skill, `{}`))
	assert.NoError(t, check(guard{maxMessage: 1000, maxValues: 1000}, "skills/get", skill, `{"skill":{}}`))
	var inputs []string
	for i := range maxInputs + 1 {
		inputs = append(inputs, fmt.Sprintf(`"%d":{}`, i))
	}
	err := check(guard{maxMessage: 10_000, maxValues: 1000}, "tools/call", t.Context(), `{"inputRequests":{`+strings.Join(inputs, ",")+`}}`)
	assert.ErrorContains(t, err, "more inputs at once")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A response passes as it came, be it an error, nothing, or of what was not sent.
func TestResponsesThatPass(t *testing.T) {
	t.Parallel()
	g := guard{maxMessage: 1, maxValues: 1}
	r, err := g.check(t.Context(), transport.JSONRPCRequest{}, nil, io.EOF)
	assert.Nil(t, r)
	assert.Equal(t, io.EOF, err)
	r, err = g.check(t.Context(), transport.JSONRPCRequest{}, nil, nil)
	assert.Nil(t, r)
	assert.NoError(t, err)
	failed := &transport.JSONRPCResponse{Error: &mcp.JSONRPCErrorDetails{Code: -1, Message: "no"}}
	r, err = g.check(t.Context(), transport.JSONRPCRequest{}, failed, nil)
	assert.Same(t, failed, r)
	assert.NoError(t, err)
	failed.Error.Code = mcp.MISSING_REQUIRED_CLIENT_CAPABILITY
	_, err = g.check(t.Context(), transport.JSONRPCRequest{}, failed, nil)
	assert.ErrorAs(t, err, new(*CapabilityError))
}

// Only the stream of events of the older transport is read event by event, and only what mcp-go
// reads as a stream is bounded as one.
func TestHowBodiesAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		older  bool
		method string
		status int
		kind   string
		event  bool // each event by itself
		events bool // bounded one by one
	}{
		"older stream":         {true, http.MethodGet, 200, "text/event-stream", true, false},
		"older page":           {true, http.MethodGet, 200, "text/html", false, false},
		"older answer":         {true, http.MethodPost, 200, "text/event-stream", false, true},
		"answer":               {false, http.MethodPost, 200, "text/event-stream; charset=utf-8", false, true},
		"accepted":             {false, http.MethodPost, 202, "text/event-stream", false, true},
		"refusal":              {false, http.MethodPost, 400, "text/event-stream", false, false},
		"created":              {false, http.MethodPost, 201, "text/event-stream", false, false},
		"JSON":                 {false, http.MethodPost, 200, "application/json", false, false},
		"GET with an outcome":  {false, http.MethodGet, 200, "text/event-stream", false, true},
		"a stream of no type ": {false, http.MethodPost, 200, "", false, false},
	} {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {test.kind}}, Body: http.NoBody}, nil
		})
		rt := &limitedHTTP{large: newBypass(), base: base, authorizer: authorized("http://h/mcp"), maxMessage: 100, maxValues: 10, unsolicited: &unsolicited{max: 10, maxBytes: 100}, older: test.older}
		r, err := http.NewRequestWithContext(context.WithValue(t.Context(), failureKey{}, new(outcome)), test.method, "http://h/mcp", nil)
		require.NoError(t, err)
		resp, err := rt.RoundTrip(r)
		require.NoError(t, err, name)
		body, ok := resp.Body.(*limitedBody)
		if lines, isLines := resp.Body.(*eventLines); isLines {
			body, ok = lines.Closer.(*limitedBody)
		}
		assert.Equal(t, test.event, !ok, name)
		if ok {
			assert.Equal(t, test.events, body.events, name)
			assert.NotNil(t, body.failed, name)
			assert.True(t, body.answers, name)
		}
	}
}

// A refusal to read on in a stream is one for good: mcp-go would ask again each second. What else a
// server says has its own status, and so has the end of a session.
func TestRefusalsToReadOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		older       bool
		method      string
		status, got int
	}{
		"first of them":      {false, http.MethodGet, 400, 405},
		"last of them":       {false, http.MethodGet, 499, 405},
		"of the server":      {false, http.MethodGet, 500, 500},
		"none":               {false, http.MethodGet, 399, 399},
		"end of a session":   {false, http.MethodGet, 404, 404},
		"request":            {false, http.MethodPost, 400, 400},
		"older transport":    {true, http.MethodGet, 400, 400},
		"request as it is":   {false, http.MethodPost, 404, 404},
		"older transport, 4": {true, http.MethodGet, 404, 404},
	} {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: test.status, Header: http.Header{}, Body: http.NoBody}, nil
		})
		rt := &limitedHTTP{large: newBypass(), base: base, authorizer: authorized("http://h/mcp"), maxMessage: 100, maxValues: 10, unsolicited: &unsolicited{max: 10, maxBytes: 100}, older: test.older}
		failed := new(outcome)
		r, err := http.NewRequestWithContext(context.WithValue(t.Context(), failureKey{}, failed), test.method, "http://h/mcp", nil)
		require.NoError(t, err)
		resp, err := rt.RoundTrip(r)
		require.NoError(t, err, name)
		assert.Equal(t, test.got, resp.StatusCode, name)
		assert.Equal(t, int32(test.status), failed.status.Load(), name)
	}
}

// A request to a child that is given up ends at once. A subscription tells the child, and waits a
// second for its answer.
func TestRequestsToAChildThatAreGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		method  string
		context any // has a key in the context
		answers bool
		took    time.Duration
		told    bool
	}{
		"call":                      {"tools/call", nil, false, 0, false},
		"subscription":              {"subscriptions/listen", nil, false, time.Second, true},
		"answered subscription":     {"subscriptions/listen", nil, true, 0, true},
		"subscription to resources": {"completion/complete", resourceStreamKey{}, false, time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			in, answers := io.Pipe()
			said := make(chan string, 9)
			out := writerFunc(func(p []byte) (int, error) {
				said <- string(p)
				if test.answers && strings.Contains(string(p), "notifications/cancelled") {
					go func() { _, _ = io.WriteString(answers, `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`+"\n") }()
				}
				return len(p), nil
			})
			io := transport.NewIO(in, out, nil)
			transport.WithCommandLogger(slog.New(slog.DiscardHandler))(io)
			tr := stdioTransport{io, guard{maxMessage: 1000, maxValues: 1000, unsolicited: new(unsolicited), large: newBypass()}, nil}
			require.NoError(t, tr.Start(t.Context()))
			defer in.Close()
			ctx, cancel := context.WithCancel(t.Context())
			if test.context != nil {
				ctx = context.WithValue(ctx, test.context, true)
			}
			go func() { <-said; cancel() }()
			begun := time.Now()
			r, err := tr.SendRequest(ctx, transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcp.NewRequestId(int64(7)), Method: test.method})
			assert.Equal(t, test.took, time.Since(begun), name)
			if test.answers {
				require.NoError(t, err, name)
				assert.JSONEq(t, `{"a":1}`, string(r.Result), name)
			} else {
				assert.ErrorIs(t, err, context.Canceled, name)
			}
			synctest.Wait()
			assert.Equal(t, test.told, len(said) > 0, name)
			if test.told {
				assert.Contains(t, <-said, `"requestId":7`, name)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
func (writerFunc) Close() error                  { return nil }
