package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
)

// A LineReader hands on the messages of the client, each a line, that are within the
// limits. It answers the others with an error.
type LineReader struct {
	in     *bufio.Reader
	limits limits.Limits
	out    *LineWriter
	line   []byte // what is left of the current line
}

// NewLineReader returns one that reads in and answers to out.
func NewLineReader(in io.Reader, l limits.Limits, out *LineWriter) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, limits.SmallMessage), limits: l, out: out}
}

// Read implements [io.Reader].
func (r *LineReader) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		line, err := r.next()
		if bad := new(limits.Error); errors.As(err, &bad) {
			r.out.refuse(line, bad.Reason)
			continue
		}
		if len(line) == 0 && err != nil {
			return 0, err
		}
		r.line = line
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// next returns the next line. Of one that is too long it keeps nothing.
func (r *LineReader) next() (line []byte, err error) {
	var whole []byte
	for length := 0; ; {
		piece, err := r.in.ReadSlice('\n')
		if length += len(piece); length <= r.limits.Message {
			whole = append(whole, piece...)
		} else {
			whole = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case length > r.limits.Message:
			return nil, &limits.Error{Reason: fmt.Sprintf("the message has more than %d bytes: see -max-message", r.limits.Message)}
		case err != nil:
			return whole, err
		}
		_, err = r.limits.CheckValues(whole)
		return whole, err
	}
}

// A LineWriter writes messages from several goroutines, each as one line in one
// call of Write.
type LineWriter struct {
	mu     sync.Mutex
	w      io.WriteCloser
	unread func()                   // called when the client reads no more; may be nil
	acks   map[string]chan struct{} // by the ID of the request to listen: closed when its acknowledgement is written
}

// NewLineWriter returns one that writes to w, and calls unread, if not nil, when the client
// reads no more.
func NewLineWriter(w io.WriteCloser, unread func()) *LineWriter {
	return &LineWriter{w: w, unread: unread}
}

func (l *LineWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, _ := unmarked(line)
	_, err := l.w.Write(out)
	if len(l.acks) > 0 {
		l.acknowledgeLocked(line)
	}
	if err == nil {
		return len(line), nil
	}
	if l.unread != nil {
		l.unread()
	}
	return 0, err
}

// Acknowledged returns a channel that is closed when the acknowledgement of a request to listen
// is written. id is JSON. A request that ends without, with ctx, leaves nothing behind.
func (l *LineWriter) Acknowledged(ctx context.Context, id []byte) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acks == nil {
		l.acks = make(map[string]chan struct{})
	}
	ack := make(chan struct{})
	l.acks[string(id)] = ack
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.acks[string(id)] == ack { // else another request has the ID
			delete(l.acks, string(id))
		}
	})
	return ack
}

func (l *LineWriter) acknowledgeLocked(line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	id := string(m.ID) // of an answer, with which all ends
	if m.Method == mcp.MethodNotificationSubscriptionsAcknowledged {
		id = string(m.Params.Meta[mcp.MetaKeySubscriptionID])
	}
	if ack := l.acks[id]; ack != nil {
		close(ack)
		delete(l.acks, id)
	}
}

// Close ends a waiting Write.
func (l *LineWriter) Close() error { return l.w.Close() }

// Notify implements [Sink]. Unlike messages that mcp-go sends, a message is
// written when notify returns.
func (l *LineWriter) Notify(method string, params any) (written bool) {
	line, err := newNotification(method, params)
	if err == nil {
		_, err = l.Write(append(line, '\n'))
	}
	return err == nil // or the client is gone
}

// refuse answers a message with an error. Of what is not there or not JSON, the ID is
// null.
func (l *LineWriter) refuse(message []byte, reason string) {
	var about struct{ ID json.RawMessage }
	_ = json.Unmarshal(message, &about)
	quoted, _ := json.Marshal(reason)
	id := cmp.Or(string(bytes.TrimSpace(about.ID)), "null")
	_, _ = fmt.Fprintf(l, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", id, mcp.INVALID_REQUEST, quoted)
}

func newNotification(method string, params any) ([]byte, error) {
	return json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, method, params})
}
