package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An sseTransport is the older transport over HTTP: requests are posted, and all
// answers come as events of one stream.
type sseTransport struct {
	*transport.SSE
	guard
	unauthorized error // of requests with status 401

	gone context.Context // ends with the stream; its cause says why
	lose context.CancelCauseFunc
	end  context.CancelFunc // ends the stream
}

func newSSETransport(cfg *Config, g guard, web *http.Client, log *slog.Logger) (*sseTransport, error) {
	s, err := transport.NewSSE(cfg.URL, transport.WithHTTPClient(web), transport.WithSSELogger(log),
		transport.WithEndpointTimeout(math.MaxInt64), transport.WithResponseTimeout(math.MaxInt64)) // contexts end requests
	if err != nil {
		return nil, err
	}
	t := &sseTransport{SSE: s, guard: g, unauthorized: cfg.Unauthorized(nil), end: func() {}}
	t.gone, t.lose = context.WithCancelCause(context.Background())
	t.SetConnectionLostHandler(func(err error) { t.lose(fmt.Errorf("%w: the event stream ended: %w", errBroken, err)) })
	return t, nil
}

// RequiresLegacyProtocol says that newer versions of the protocol don't go over this
// transport.
func (t *sseTransport) RequiresLegacyProtocol() bool { return true }

// begin opens the stream of c within ctx. It lasts until end.
func (t *sseTransport) begin(ctx context.Context, c *client.Client) error {
	var failed outcome
	life, end := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), failureKey{}, &failed))
	t.end = end
	context.AfterFunc(t.gone, end)
	stop := context.AfterFunc(ctx, end)
	err := c.Start(life)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
	}
	if cause := failed.refused.Load(); err != nil && cause != nil {
		err = *cause
	}
	return t.explain(ctx, err)
}

func (t *sseTransport) Close() error {
	t.lose(transport.ErrTransportClosed)
	t.end()
	return t.SSE.Close()
}

func (t *sseTransport) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	var failed outcome
	// Without a deadline, which mcp-go would race against.
	inner, cancel := context.WithCancel(context.WithoutCancel(context.WithValue(ctx, failureKey{}, &failed)))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	defer context.AfterFunc(t.gone, cancel)()
	response, err := t.send(inner, r, t.SSE.SendRequest)
	switch {
	case err == nil:
		return response, nil
	case ctx.Err() != nil || t.gone.Err() != nil:
	case failed.busy.Load() != nil:
		return nil, failed.busy.Load()
	case failed.err.Load() != nil:
		return nil, fmt.Errorf("%w: %w", errBroken, *failed.err.Load())
	case failed.refused.Load() != nil:
		return nil, *failed.refused.Load()
	}
	return nil, t.explain(ctx, err)
}

func (t *sseTransport) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	return t.explain(ctx, t.SSE.SendNotification(context.WithValue(ctx, failureKey{}, new(outcome)), n))
}

// explain returns why a request failed with err.
func (t *sseTransport) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case t.gone.Err() != nil:
		return context.Cause(t.gone)
	case errors.Is(err, transport.ErrAuthorizationRequired):
		return t.unauthorized
	}
	return text.WithoutURL(err)
}

// An eventBody is the stream of an sseTransport. It passes on each event with its
// data in one line. In place of a message of more than max bytes or maxValues values, there
// is an error response, so that only that request fails. Requests of the server are left out:
// mcp-go takes them for answers. The stream fails if there are too many messages, or
// an event of more than maxLine times max bytes.
type eventBody struct {
	io.Closer
	server      *url.URL
	r           *bufio.Reader
	max         int
	maxValues   int
	unsolicited *unsolicited
	event       []byte // the rest of the current event
}

func newEventBody(body io.ReadCloser, server *url.URL, maxMessage, maxValues int, u *unsolicited) *eventBody {
	return &eventBody{Closer: body, server: server, r: bufio.NewReaderSize(body, 64<<10), max: maxMessage, maxValues: maxValues, unsolicited: u}
}

func (b *eventBody) Read(p []byte) (int, error) { return readFrom(&b.event, p, b.next) }

// next reads an event.
func (b *eventBody) next() error {
	const edge = 256 // bytes at the end of a dropped event to search for its id
	var lines, last []byte
	size, begins := 0, true // a line begins
	for {
		chunk, err := b.r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		size += len(chunk)
		if size/maxLine > b.max {
			return fmt.Errorf("an event has more bytes than %d times the limit of %d", maxLine, b.max)
		}
		if begins && len(bytes.TrimRight(chunk, "\r\n")) == 0 {
			break
		}
		begins = err == nil
		room := min(b.max, math.MaxInt-edge) + edge - len(lines) // the names of fields don't count
		if last == nil {
			lines = append(lines, chunk[:min(room, len(chunk))]...)
		}
		if last != nil || len(chunk) > room {
			last = append(last, chunk...)
			last = last[max(0, len(last)-edge):]
		}
	}
	if err := b.unsolicited.count(min(size, b.max)); err != nil {
		return err
	}
	kind, data := fields(lines)
	if last != nil || len(data) > b.max {
		end := bytes.TrimSpace(append(data[max(0, len(data)-edge):], last...))
		kind, data = "message", bytes.TrimSpace(replacement(data[:min(edge, len(data))], end, tooLarge(b.max)))
	} else if hasMoreValues(data, b.maxValues) {
		kind, data = "message", bytes.TrimSpace(replacement(data, data, tooMany(b.maxValues)))
	}
	switch {
	case len(data) == 0 || kind == "message" && isRequest(data):
		return nil
	case kind == "endpoint":
		if to, err := b.server.Parse(string(data)); err != nil || to.Host != b.server.Host {
			return errors.New("the event stream names another host for requests")
		}
	}
	b.event = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	return nil
}

// fields returns the kind and the data of an event. Line breaks in the data become
// spaces: between the tokens of JSON they mean the same.
func fields(lines []byte) (kind string, data []byte) {
	kind = "message"
	for line := range bytes.Lines(lines) {
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			kind = string(bytes.TrimSpace(value))
		} else if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, ' ')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
	}
	return kind, data
}

// isRequest reports whether a message asks for an answer.
func isRequest(message []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	return bytes.Contains(message, []byte(`"method"`)) && json.Unmarshal(message, &m) == nil && m.Method != nil && m.ID != nil
}
