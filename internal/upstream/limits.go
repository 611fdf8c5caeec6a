package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"
)

// MaxInstructions is how many bytes of a server's instructions are kept. More are cut off,
// with an ellipsis.
const MaxInstructions = 2 << 10

// maxBackoff is the longest delay before an attempt, unless Reconnect is longer.
const maxBackoff = time.Minute

// backoff returns how long to wait after that many failures beyond the first, if the first
// wait is reconnect. Each doubles it.
func backoff(reconnect time.Duration, failures int) time.Duration {
	n := min(max(failures, 0), 16)
	if most := max(maxBackoff, reconnect); reconnect > most>>n {
		return most
	}
	return reconnect << n
}

// tooLarge is the error of a request whose answer exceeds the limit. No transport
// reads such a message into memory as a whole, and only its own request fails.
func tooLarge(limit int) error {
	return fmt.Errorf("a message has more bytes than the limit of %d", limit)
}

// tooMany is the error of a request whose answer would take too much memory decoded.
func tooMany(limit int) error {
	return fmt.Errorf("a message has more values than the limit of %d", limit)
}

// An unsolicited limits the messages per second that a server sends over one
// connection without a request, and their bytes. It counts all messages and
// allows for the answers that were due. A message is a line from a child or an
// event of a stream.
type unsolicited struct {
	max      int // messages
	maxBytes int // bytes of one answer, and of the others at once

	mu       sync.Mutex
	begun    time.Time // start of the current second
	sent     int       // messages in this second
	due      int       // answers expected in this second
	underWay int       // requests without an answer
	bytes    int       // of messages; those of answers and of long ago are taken off again
	counted  time.Time // when bytes was last reduced
}

// forgiven is the part of maxBytes that is taken off within a second.
const forgiven = 16

// ask counts a new request.
func (u *unsolicited) ask() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.underWay++
	u.due++
}

// answered counts the end of a request.
func (u *unsolicited) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.underWay--
	u.bytes = max(u.bytes-u.maxBytes, 0)
}

// count counts a message of that many bytes, at most maxBytes. After an error,
// the caller must close the connection.
func (u *unsolicited) count(bytes int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if now.Sub(u.begun) >= time.Second {
		u.begun, u.sent, u.due = now, 0, u.underWay
	}
	if u.sent++; u.sent-u.due > u.max {
		return fmt.Errorf("it sends more messages unasked than the limit of %d in a second", u.max)
	}
	left := float64(u.bytes) - now.Sub(u.counted).Seconds()*float64(u.maxBytes)/forgiven
	u.bytes, u.counted = int(max(left, 0))+bytes, now
	if (u.bytes-1)/u.maxBytes > u.underWay {
		return fmt.Errorf("it sends more bytes unasked than the limit of %d", u.maxBytes)
	}
	return nil
}

// maxLine is how long a line of a child may be, in multiples of
// [config.Limits.MaxMessage]. A child that sends a longer one may never end it.
const maxLine = 16

// A frameReader reads messages from a child, one per line. It replaces a message
// of more than max bytes, or of too many values, by an error response with the same id,
// so that only that request fails. It ends the stream if there are too many messages, or
// a line of more than maxLine times max bytes.
type frameReader struct {
	r           *bufio.Reader
	max         int
	maxValues   int
	unsolicited *unsolicited
	end         func(error) // called at the end of the stream; with nil if the child ended it
	begins      func()      // called with the first message, or nil
	large       *bypass     // of large results, or nil
	line        []byte      // the rest of the current line
}

func newFrameReader(r io.Reader, maxMessage, maxValues int, u *unsolicited, end func(error)) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), max: maxMessage, maxValues: maxValues, unsolicited: u, end: end}
}

func (f *frameReader) Read(p []byte) (int, error) { return readFrom(&f.line, p, f.next) }

// readFrom reads rest, which next fills when it is empty.
func readFrom(rest *[]byte, p []byte, next func() error) (int, error) {
	for len(*rest) == 0 {
		if err := next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, *rest)
	if *rest = (*rest)[n:]; len(*rest) == 0 {
		*rest = nil // it may be as long as a message, and the next may never come
	}
	return n, nil
}

// next reads a line. It returns [io.EOF] if the stream ends for any reason, even
// within a line.
func (f *frameReader) next() error {
	const edge = 256 // bytes at each end of a dropped line to search for its id
	var line []byte  // the line; once it is too long, its first bytes
	var last []byte  // its last bytes, once it is too long
	size := 0
	for {
		chunk, err := f.r.ReadSlice('\n')
		size += len(chunk)
		if size <= f.max {
			line = appendTo(line, chunk, f.max)
		} else {
			if size-len(chunk) <= f.max {
				last = slices.Clone(line[max(0, len(line)-edge):])
				line = append(line, chunk[:min(edge, len(chunk))]...)
				line = line[:min(edge, len(line))]
			}
			last = append(last, chunk...)
			last = last[max(0, len(last)-edge):]
		}
		if size/maxLine >= f.max {
			f.end(fmt.Errorf("a line has more bytes than %d times the limit of %d", maxLine, f.max))
			return io.EOF
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			f.end(nil)
			return io.EOF
		}
		if err := f.unsolicited.count(min(size, f.max)); err != nil {
			f.end(err)
			return io.EOF
		}
		if f.begins != nil && (size > f.max || isMessage(line)) {
			f.begins()
			f.begins = nil
		}
		switch f.line = line; {
		case size > f.max:
			f.line = replacement(line, last, tooLarge(f.max))
		case hasMoreValues(line, f.maxValues):
			f.line = replacement(line, line, tooMany(f.maxValues))
		case f.large != nil:
			f.line = f.large.take(line)
		}
		return nil
	}
}

// appendTo appends a chunk to a message of at most max bytes. It doubles the room for it, where
// append would leave four times as much garbage.
func appendTo(message, chunk []byte, max int) []byte {
	if room := len(message) + len(chunk); len(message) > 0 && room > cap(message) {
		message = append(make([]byte, 0, min(2*room, max)), message...)
	}
	return append(message, chunk...)
}

// isMessage reports whether a line is a message of JSON-RPC.
func isMessage(line []byte) bool {
	var message struct {
		JSONRPC string `json:"jsonrpc"`
	}
	return json.Unmarshal(line, &message) == nil && message.JSONRPC != ""
}

// firstID and lastID find the id of a JSON-RPC message at its start or end, next
// to "jsonrpc", where peers put it. The ids of mcp-go are integers.
var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*([0-9]+)\s*,`)
	lastID  = regexp.MustCompile(`[,{]\s*"id"\s*:\s*([0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2.0"\s*)?\}\s*$`)
)

// replacement returns the line that replaces one that is not read for the given reason. It is
// an error response if the first or last bytes of the line contain the id, else
// an empty line, as in place of a request: its id is the server's.
func replacement(first, last []byte, reason error) []byte {
	m := firstID.FindSubmatch(first)
	if m == nil {
		m = lastID.FindSubmatch(last)
	}
	if m == nil || isRequest(first) {
		return []byte("\n")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%q}}`, m[1], reason.Error())
	return append(b.Bytes(), '\n')
}

// limitedHTTP limits how much a server can send over HTTP, and how long it can
// hold requests that need no answer.
type limitedHTTP struct {
	base        http.RoundTripper
	authorizer  *authorizer
	maxMessage  int
	maxValues   int
	unsolicited *unsolicited
	older       bool          // for an sseTransport
	stream      *serverStream // nil if older
	replies     replies
	large       *bypass
}

func (t *limitedHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	failed, _ := r.Context().Value(failureKey{}).(*outcome)
	if r.Method == http.MethodGet && failed == nil && !t.older {
		return t.stand(r)
	}
	answer := r.Method == http.MethodPost && r.Response == nil && (failed == nil || failed.sent.Swap(true))
	if answer { // nobody reads the body of the response
		failed = nil
		ctx, done := t.replies.bound(r.Context())
		defer done()
		r = r.WithContext(ctx)
	} else if r.Method == http.MethodDelete { // it ends the session on Close, which a server that hangs must not delay
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), termGrace)
		defer cancel()
		r = r.WithContext(ctx)
	}
	resp, err := t.authorizer.send(r, t.base, failed)
	if err != nil {
		return nil, err
	}
	failed.noteStatus(resp)
	if !t.older && r.Method == http.MethodGet && resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusNotFound {
		resp.StatusCode = http.StatusMethodNotAllowed // mcp-go would ask for the stream again each second
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if t.older && r.Method == http.MethodGet && kind == "text/event-stream" {
		resp.Body = newEventBody(resp.Body, t.authorizer.server, t.maxMessage, t.maxValues, t.unsolicited)
		return resp, nil
	}
	limited := &limitedBody{
		ReadCloser:  resp.Body,
		failed:      failed,
		max:         t.maxMessage,
		maxValues:   t.maxValues,
		unsolicited: t.unsolicited,
		events:      kind == "text/event-stream" && isRead(resp.StatusCode),
		answers:     true,
	}
	resp.Body = limited
	if limited.events {
		resp.Body = &eventLines{Closer: limited, r: bufio.NewReaderSize(limited, 64<<10), large: t.large, max: t.maxMessage}
	}
	if !t.older && r.Method == http.MethodPost && lacksMethod(resp) {
		resp.StatusCode = http.StatusBadRequest // mcp-go reads what it says, and does not end the session
	}
	return resp, nil
}

// isRead reports whether mcp-go reads the events in an answer with that status. Others it
// takes for one message, whatever their type.
func isRead(status int) bool { return status == http.StatusOK || status == http.StatusAccepted }

// copied is how many bytes of an event the reader may copy for each byte that
// the event may have.
const copied = 16

var errTooManyLines = errors.New("an event of a stream has too many lines")

// A limitedBody fails when a message has more than max bytes, or more than maxValues
// values. A message is the whole body or one event of a stream. A stream may last forever
// but fails if it has too many events.
//
// For each line of an event, mcp-go copies the lines before. So a line costs its
// bytes and the copiedth part of what the event had before it. An event may cost
// max in all.
//
// The stream of a request ends with its answer: for a third one, mcp-go would have a
// goroutine wait for ever.
type limitedBody struct {
	io.ReadCloser
	failed      *outcome
	max         int
	maxValues   int
	unsolicited *unsolicited
	events      bool
	answers     bool // it is the stream of a request

	size   int          // bytes of the current message
	values valueCounter // of its data
	before int          // bytes of its lines before the current one
	cost   int          // of copying these
	line   int          // bytes of the current line, without returns before them
	data   bool         // it begins as a line of data does
	back   bool         // it begins with a return
	over   bool         // there was an answer
}

const dataField = "data:"

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.over {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.failed.note(err)
	}
	for i, c := range p[:n] {
		if err := b.take(c); err != nil {
			return 0, err
		}
		if b.over {
			return i + 1, nil
		}
	}
	return n, err
}

// take counts one byte of the body.
func (b *limitedBody) take(c byte) error {
	if b.size++; b.size > b.max {
		return b.failed.refuse(tooLarge(b.max))
	}
	switch {
	case !b.events:
		b.values.take(c)
	case c == '\n' && b.line == 0: // an empty line ends an event
		err := b.unsolicited.count(b.size + b.cost)
		b.over = b.answers && b.values.mayAnswer()
		b.size, b.before, b.cost, b.back = 0, 0, 0, false
		b.values.reset()
		if err != nil {
			b.failed.note(err)
		}
		return err
	case c == '\n':
		b.line, b.back = 0, false
		b.cost += b.before / copied
		if b.before = b.size; b.cost > b.max-b.size {
			return b.failed.refuse(errTooManyLines)
		}
	case b.line >= len(dataField):
		if b.data {
			b.values.take(c)
		}
	case c == '\r' && b.line == 0:
		b.back = true
	default:
		b.data = (b.line == 0 || b.data) && c == dataField[b.line] && !b.back
		b.line++
	}
	if b.values.n > b.maxValues {
		return b.failed.refuse(tooMany(b.maxValues))
	}
	return nil
}
