package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// An intake reads the messages of clients over HTTP, within the limits.
type intake struct {
	limits  limits.Limits
	large   *room // for the bytes of large messages
	decoded *room // for the values of all messages, but for those that have few
}

func newIntake(l limits.Limits) *intake {
	return &intake{limits: l, large: newRoom(l.Messages), decoded: newRoom(l.Messages)}
}

// A message is the body of a request, wholly read.
type message struct {
	*bytes.Reader
	data []byte
}

// Close implements [io.ReadCloser].
func (message) Close() error { return nil }

// withMessage reads the message of each request before next gets it.
func (in *intake) withMessage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			if r.ContentLength != 0 {
				refuse(out, r, http.StatusBadRequest, "this request must have no body", limits.SmallMessage)
				return
			}
			if r.Method == http.MethodGet {
				defer stand(r.Context(), listening)()
			}
			next.ServeHTTP(out, r)
			return
		}
		conn := http.NewResponseController(out)
		late := time.Now().Add(in.limits.Read)
		_ = conn.SetReadDeadline(late)
		ctx, cancel := context.WithDeadline(r.Context(), late)
		defer cancel()
		client := tokens.HolderOf(ctx)
		data, size, err := in.read(ctx, r)
		defer in.large.give(client, size)
		if err == nil {
			size, err = in.decode(ctx, data)
			defer in.decoded.give(client, size)
		}
		if bad := new(limits.Error); errors.As(err, &bad) {
			refuse(out, r, bad.Status, bad.Error(), int64(in.limits.Message))
			return
		} else if err != nil {
			refuse(out, r, http.StatusRequestTimeout, fmt.Sprintf("the message did not come whole within %v", in.limits.Read), 0)
			return
		}
		_ = conn.SetReadDeadline(time.Time{}) // from now on, only to notice that the client leaves
		defer stand(r.Context(), working)()
		r.Body = message{bytes.NewReader(data), data}
		next.ServeHTTP(out, r)
	})
}

// decode waits for room for the values of a message, which has that much of it then. It
// checks how many they are.
func (in *intake) decode(ctx context.Context, data []byte) (size int, err error) {
	values, err := in.limits.CheckValues(data)
	if size = values * text.ValueSize; err != nil || size <= limits.SmallDecoded {
		return 0, err
	}
	size = min(size, in.limits.Messages)
	if err := in.decoded.take(ctx, tokens.HolderOf(ctx), size); err != nil {
		return 0, errNoRoom
	}
	return size, nil
}

var errNoRoom = &limits.Error{Status: http.StatusServiceUnavailable, Reason: "there are too many large messages at once, or too many values in messages: see -max-messages"}

// read reads a message. A large one waits for room among the large ones, and has that
// much of it.
func (in *intake) read(ctx context.Context, r *http.Request) (data []byte, room int, err error) {
	tooLong := &limits.Error{Status: http.StatusRequestEntityTooLarge, Reason: fmt.Sprintf("the message has more than %d bytes: see -max-message", in.limits.Message)}
	if r.ContentLength > int64(in.limits.Message) {
		return nil, 0, tooLong
	}
	small := int64(min(limits.SmallMessage, in.limits.Message))
	data, err = io.ReadAll(io.LimitReader(r.Body, small+1))
	if err != nil || int64(len(data)) <= small {
		return data, 0, err
	}
	size := in.limits.Message
	if r.ContentLength > 0 {
		size = int(r.ContentLength)
	}
	if err := in.large.take(ctx, tokens.HolderOf(ctx), size); err != nil {
		return nil, 0, errNoRoom
	}
	whole := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	whole.Write(data)
	_, err = whole.ReadFrom(io.LimitReader(r.Body, int64(size-len(data)+1)))
	if err == nil && whole.Len() > size {
		err = tooLong
	}
	return whole.Bytes(), size, err
}

// linger is how long a refused client may still send. If its connection closed at once,
// it would get an error while it sends, and not the refusal.
const linger = time.Second / 2

// refuse answers a request before it was read to its end, reads at most n bytes more, and
// has the connection closed.
func refuse(out http.ResponseWriter, r *http.Request, status int, reason string, n int64) {
	conn := http.NewResponseController(out)
	_ = conn.SetReadDeadline(time.Now().Add(linger))
	out.Header().Set("Connection", "close")
	http.Error(out, reason, status)
	_ = conn.Flush()
	_, _ = io.CopyN(io.Discard, r.Body, n)
}
