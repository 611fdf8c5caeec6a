package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/limits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type answers struct{ bytes.Buffer }

func (*answers) Close() error { return nil }

// A line that is too long, or has too many values, is answered with an error, and those
// around it are read.
func TestLinesHaveALimit(t *testing.T) {
	bomb := `{"id":7,"x":[` + strings.Repeat("[],", 20) + `[]]}`
	in := "first\n" + strings.Repeat("x", 200_000) + "\nsecond\n" + bomb + "\nthird"
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(in), "bytewise": iotest.OneByteReader(strings.NewReader(in))} {
		t.Run(name, func(t *testing.T) {
			var out answers
			l := limits.Limits{Message: 100_000, Values: 20}
			got, err := io.ReadAll(NewLineReader(in, l, NewLineWriter(&out, nil)))
			require.NoError(t, err)
			assert.Equal(t, "first\nsecond\nthird", string(got))
			refused := strings.Split(strings.TrimSpace(out.String()), "\n")
			require.Len(t, refused, 2)
			assert.JSONEq(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message has more than 100000 bytes: see -max-message"}}`, refused[0])
			assert.JSONEq(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"the message has more than 20 values: see -max-values"}}`, refused[1])
		})
	}
}

// A message has as many bytes as the limit says, its end counted, however the reader's buffer cuts it.
func TestLongestLine(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{10, limits.SmallMessage, limits.SmallMessage + 1, 3 * limits.SmallMessage} {
		for more, end := range []string{"", "\n"} {
			fits := strings.Repeat("x", limit-more) + end
			var out answers
			got, err := io.ReadAll(NewLineReader(strings.NewReader(fits), limits.Limits{Message: limit, Values: 9}, NewLineWriter(&out, nil)))
			require.NoError(t, err)
			assert.Equal(t, len(fits), len(got), limit)
			assert.Zero(t, out.Len(), limit)
			got, err = io.ReadAll(NewLineReader(strings.NewReader("x"+fits), limits.Limits{Message: limit, Values: 9}, NewLineWriter(&out, nil)))
			require.NoError(t, err)
			assert.Empty(t, got, limit)
			assert.Equal(t, 1, strings.Count(out.String(), "\n"), limit)
		}
	}
}

// FuzzLines feeds a client's bytes: what is handed on are its lines within the limits.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n"), 5)
	f.Add([]byte(`{"id":[`+"\n\n\\\"\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = limit&0xff + 1
		var out answers
		l := limits.Limits{Message: limit, Values: limit/2 + 1}
		got, err := io.ReadAll(NewLineReader(bytes.NewReader(data), l, NewLineWriter(&out, nil)))
		require.NoError(t, err)
		refused, want := 0, []byte(nil)
		for line := range bytes.Lines(data) {
			_, tooMany := l.CheckValues(line)
			if len(line) > limit || bytes.HasSuffix(line, []byte("\n")) && tooMany != nil {
				refused++
			} else {
				want = append(want, line...)
			}
		}
		assert.Equal(t, string(want), string(got))
		assert.Equal(t, refused, strings.Count(out.String(), "\n"))
	})
}

// Requests to listen that end without an acknowledgement leave nothing behind, and a later one
// of the same ID has its own.
func TestEndedListensAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLineWriter(&answers{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 100 {
			l.Acknowledged(ctx, fmt.Append(nil, i))
		}
		cancel()
		late := l.Acknowledged(t.Context(), []byte("7"))
		synctest.Wait()
		require.Len(t, l.acks, 1)
		_, err := io.WriteString(l, `{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`+"\n")
		require.NoError(t, err)
		<-late
		assert.Empty(t, l.acks)
	})
}

// A line that is written has its length; one that is not ends the connection to the client, if
// there is somebody to tell.
func TestLinesThatAreNotWritten(t *testing.T) {
	t.Parallel()
	const line = `{"jsonrpc":"2.0","id":1,"result":{}}`
	broken := errors.New("broken pipe")
	told := 0
	for err, want := range map[error]int{nil: len(line), broken: 0} {
		for _, unread := range []func(){nil, func() { told++ }} {
			n, got := NewLineWriter(brokenLine{err}, unread).Write([]byte(line))
			assert.Equal(t, want, n)
			assert.Equal(t, err, got)
		}
	}
	assert.Equal(t, 1, told)
}

type brokenLine struct{ err error }

func (b brokenLine) Write(p []byte) (int, error) { return len(p), b.err }
func (b brokenLine) Close() error                { return nil }

// pipe is the client's end of a line, which may be closed.
type pipe struct {
	answers
	closed bool
}

func (p *pipe) Close() error {
	p.closed = true
	return errors.New("closed")
}

// A notification is one line. What can't be one is not written.
func TestNotificationsAreLines(t *testing.T) {
	t.Parallel()
	p := new(pipe)
	l := NewLineWriter(p, nil)
	assert.True(t, l.Notify("notifications/a", map[string]any{"x": "1\n2"}))
	assert.False(t, l.Notify("notifications/b", func() {}))
	assert.True(t, l.Notify("notifications/c", nil))
	assert.Equal(t, `{"jsonrpc":"2.0","method":"notifications/a","params":{"x":"1\n2"}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/c"}`+"\n", p.String())
	assert.False(t, NewLineWriter(brokenLine{errors.New("broken pipe")}, nil).Notify("notifications/a", nil))
	assert.EqualError(t, l.Close(), "closed")
	assert.True(t, p.closed)
}

// A request to listen goes on until its acknowledgement, or its answer, is written.
func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		`no JSON`: false,
		`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":8}}}`: false,
		`{"method":"notifications/x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`:                          false,
		`{"id":8,"result":{}}`: false,
		`{"id":7,"result":{}}`: true,
		`{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`: true,
	} {
		l := NewLineWriter(new(answers), nil)
		ack := l.Acknowledged(t.Context(), []byte("7"))
		_, err := io.WriteString(l, line+"\n")
		require.NoError(t, err)
		select {
		case <-ack:
			assert.True(t, want, line)
		default:
			assert.False(t, want, line)
		}
	}
}
