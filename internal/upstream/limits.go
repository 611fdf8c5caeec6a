package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Limits bound what a server may send and how long it may take.
type Limits struct {
	StartTimeout time.Duration // to start and list its tools, and to list them again
	CallTimeout  time.Duration

	MaxMessage    int // bytes
	MaxDefinition int // bytes
	MaxTools      int // of the server
	MaxPages      int // of its tools/list result
	MaxUnasked    int // messages within a second

	Reconnect time.Duration // before the first attempt to connect again; negative for none
	Refresh   time.Duration // between listings; negative for none
	Idle      time.Duration // without a call, until it is stopped; 0 for ever
}

// tooLarge is the error of a request whose answer is larger than the limit.
// Whatever the transport, such a message is not read into memory as a whole,
// and costs its own request only.
func tooLarge(limit int) error {
	return fmt.Errorf("a message has more bytes than the limit of %d", limit)
}

// An unasked counts the messages that a server sends over one connection, but
// for as many as may be answers, second by second. A message is a line of a
// child's or an event of a stream, whatever it holds.
type unasked struct {
	max int

	mu       sync.Mutex
	begun    time.Time // of the second
	sent     int       // messages in it
	due      int       // answers that may be among them
	underWay int       // requests
}

// ask says that a request is made, answered that it has ended.
func (u *unasked) ask() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.underWay++
	u.due++
}

func (u *unasked) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.underWay--
}

// count counts a message. Once there is an error, the connection is to be
// given up.
func (u *unasked) count() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now(); now.Sub(u.begun) >= time.Second {
		u.begun, u.sent, u.due = now, 0, u.underWay
	}
	if u.sent++; u.sent-u.due > u.max {
		return fmt.Errorf("it sends more messages unasked than the limit of %d in a second", u.max)
	}
	return nil
}

// A frameReader reads lines, one message each, from a child. A message of
// more than max bytes is not passed on; in its place comes an error response
// to the same request, so that only that request fails. Too many messages are
// the end of the stream.
type frameReader struct {
	r       *bufio.Reader
	max     int
	unasked *unasked
	end     func(error) // called at the end of the stream; nil if the child has ended it
	line    []byte      // the rest of the current line
}

func newFrameReader(r io.Reader, maxMessage int, u *unasked, end func(error)) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), max: maxMessage, unasked: u, end: end}
}

func (f *frameReader) Read(p []byte) (int, error) {
	if len(f.line) == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.line)
	f.line = f.line[n:]
	return n, nil
}

// next reads a line. Any end of the stream, and half a line at the end, is
// [io.EOF]: the connection is over.
func (f *frameReader) next() error {
	const edge = 256 // bytes at either end of a dropped line that may name its id
	var line []byte  // the line; once it is too long, its first bytes
	var last []byte  // its last bytes, once it is too long
	size := 0
	for {
		chunk, err := f.r.ReadSlice('\n')
		size += len(chunk)
		if size <= f.max {
			line = append(line, chunk...)
		} else {
			if size-len(chunk) <= f.max {
				last = slices.Clone(line[max(0, len(line)-edge):])
				line = append(line, chunk[:min(edge, len(chunk))]...)
				line = line[:min(edge, len(line))]
			}
			last = append(last, chunk...)
			last = last[max(0, len(last)-edge):]
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			f.end(nil)
			return io.EOF
		}
		if err := f.unasked.count(); err != nil {
			f.end(err)
			return io.EOF
		}
		if f.line = line; size > f.max {
			f.line = oversizeResponse(line, last, f.max)
		}
		return nil
	}
}

// The id of a JSON-RPC message, where peers put it: first or last, next to
// "jsonrpc". mcp-go numbers its requests.
var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*([0-9]+)\s*,`)
	lastID  = regexp.MustCompile(`[,{]\s*"id"\s*:\s*([0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$`)
)

// oversizeResponse returns the line that stands in for one too long, of which
// the first and the last bytes are given: an error response if the id of the
// request can be seen there, else an empty line.
func oversizeResponse(first, last []byte, limit int) []byte {
	m := firstID.FindSubmatch(first)
	if m == nil {
		m = lastID.FindSubmatch(last)
	}
	if m == nil {
		return []byte("\n")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m[1], tooLarge(limit).Error())
	return append(b.Bytes(), '\n')
}

// limitedHTTP bounds what a server can send over HTTP, and how long it can keep
// what it need not answer.
type limitedHTTP struct {
	base       *http.Transport
	maxMessage int
	unasked    *unasked
}

func (t *limitedHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	failed, _ := r.Context().Value(failureKey{}).(*failure)
	answer := failed != nil && r.Method == http.MethodPost && r.Response == nil && failed.sent.Swap(true)
	if answer {
		failed = nil
	}
	if answer || r.Method == http.MethodDelete {
		// An answer to a request of the server's, of which there may be many,
		// or the end of a session, sent on Close: a server that hangs must
		// not hold that up. What it says to it has no body that anyone reads.
		ctx, cancel := context.WithTimeout(r.Context(), termGrace)
		defer cancel()
		r = r.WithContext(ctx)
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		failed.note(err)
		return nil, err
	}
	failed.noteStatus(resp.StatusCode)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	resp.Body = &limitedBody{
		ReadCloser: resp.Body,
		failed:     failed,
		max:        t.maxMessage,
		left:       t.maxMessage,
		unasked:    t.unasked,
		events:     kind == "text/event-stream",
	}
	return resp, nil
}

// A limitedBody fails once a message has more than max bytes: the whole body,
// or an event of a stream, which may itself go on for ever, but not bring too
// many.
type limitedBody struct {
	io.ReadCloser
	failed    *failure
	max, left int
	unasked   *unasked
	events    bool
	inLine    bool // since the last line break, something came
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.failed.note(err)
	}
	for _, c := range p[:n] {
		b.left--
		switch {
		case !b.events:
		case c == '\n' && !b.inLine: // an empty line ends an event
			b.left = b.max
			if err := b.unasked.count(); err != nil {
				b.failed.note(err)
				return 0, err
			}
		case c == '\n':
			b.inLine = false
		case c != '\r':
			b.inLine = true
		}
		if b.left < 0 {
			return 0, tooLarge(b.max)
		}
	}
	return n, err
}
