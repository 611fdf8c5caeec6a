package natsstore

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A line is what connections go through. The zero value works.
type line struct {
	mu    sync.Mutex
	conns []*call
	gone  bool
}

// Dial implements [nats.CustomDialer].
func (l *line) Dial(network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil, errors.New("the line is cut")
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	c := &call{Conn: conn, wrote: make(chan struct{}, 1)}
	l.conns = append(l.conns, c)
	return c, nil
}

// hangUp ends all connections.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}

// cut ends all connections for good.
func (l *line) cut() {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	l.hangUp()
}

// A call is a connection over a line. Its end can lose what the server answers.
type call struct {
	net.Conn
	wrote chan struct{} // gets a value when something was written while it is deaf

	mu   sync.Mutex
	deaf bool
}

func (c *call) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		c.mu.Lock()
		deaf := c.deaf
		c.mu.Unlock()
		if err != nil || !deaf {
			return n, err
		}
	}
}

func (c *call) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		select {
		case c.wrote <- struct{}{}:
		default:
		}
	}
	return n, err
}

// A request whose answer is lost with the connection is asked again over the next one, and not
// when it would have had to be answered at the latest.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	l := new(line)
	s, err := Open(t.Context(), e.connect(t, nats.SetCustomDialer(l)), nil)
	require.NoError(t, err)
	sessions := s.Sessions()
	var revision uint64
	lose := func(ask func()) {
		l.mu.Lock()
		c := l.conns[len(l.conns)-1]
		l.mu.Unlock()
		c.mu.Lock()
		c.deaf = true
		c.mu.Unlock()
		over := make(chan struct{})
		go func() {
			defer close(over)
			ask()
		}()
		<-c.wrote
		l.hangUp()
		<-over
	}
	ctx := t.Context() // without a limit, so an answer that never comes would take as long as nats.go waits
	for _, revise := range []string{"one", "two"} {
		lose(func() {
			revision, err = sessions.Put(ctx, "x", []byte(revise), revision)
			assert.NoError(t, err)
		})
		lose(func() {
			state, now, err := sessions.Get(ctx, "x")
			assert.NoError(t, err)
			assert.Equal(t, revise, string(state))
			assert.Equal(t, revision, now)
		})
	}
}
