package weaviatestore

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line is a connection to the server that can be cut or made silent.
type line struct {
	net.Listener
	to string

	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
	silent bool       // guarded by mu
}

// newLine returns a line. It is cut after the test at the latest.
func newLine(t *testing.T) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{Listener: listener, to: addr(t)}
	var wg sync.WaitGroup
	wg.Go(func() { l.serve(&wg) })
	t.Cleanup(func() {
		l.cut()
		wg.Wait()
	})
	return l
}

// store returns a store that reaches the server through the line.
func (l *line) store(t *testing.T, opts Options) *Store {
	t.Helper()
	opts.URL = "http://" + l.Addr().String()
	return open(t, opts)
}

func (l *line) serve(wg *sync.WaitGroup) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.to)
		if err != nil {
			from.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, from, to)
		l.mu.Unlock()
		wg.Go(func() { l.copy(to, from) })
		wg.Go(func() { l.copy(from, to) })
	}
}

// copy forwards data unless the line is silent.
func (l *line) copy(to, from net.Conn) {
	defer to.Close()
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		l.mu.Lock()
		silent := l.silent
		l.mu.Unlock()
		if !silent {
			to.Write(data[:n])
		}
		if err != nil {
			return
		}
	}
}

func (l *line) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

// cut ends all connections and allows no new ones.
func (l *line) cut() {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
}
