package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
)

// A door is a listener whose connections a test makes. An error of it counts once.
type door struct {
	conns chan net.Conn
	fails chan error
	end   chan struct{}
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case conn := <-d.conns:
		return conn, nil
	case err := <-d.fails:
		return nil, err
	case <-d.end:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error   { close(d.end); return nil }
func (d *door) Addr() net.Addr { return nil }

// What browsers get that come while a login waits, and when.
func TestStoryOfBrowsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		b.WriteString("What browsers get that come while a login waits for one with its state, and after which time.\n\n")
		d := &door{make(chan net.Conn), make(chan error), make(chan struct{})}
		c := &callback{path: callbackPath, listener: d, answers: make(chan url.Values, 1)}
		c.open, c.end = context.WithCancel(t.Context())
		c.running.Go(func() { c.serve("right") })
		begun := time.Now()
		come := func() net.Conn {
			ours, theirs := net.Pipe()
			d.conns <- theirs
			return ours
		}
		read := func(conn net.Conn) string {
			said, err := io.ReadAll(conn)
			require.NoError(t, err)
			return fmt.Sprintf("%q after %v", said, time.Since(begun))
		}
		ask := func(what, request string) {
			begun = time.Now()
			conn := come()
			go func() { _, _ = io.WriteString(conn, request) }() // until enough is read
			fmt.Fprintf(&b, "%s\n  %s\n", what, read(conn))
			select {
			case said := <-c.answers:
				fmt.Fprintf(&b, "  the login gets %s\n", said.Encode())
			default:
			}
		}
		get := func(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n" }
		for _, target := range []string{"/", "/callback", "/callback/", "/callback?state=right", "/callback?state=righ&code=c", "/callback?state=wrong&state=right", "/callback?state=right&error=no", "/callback?state=right&code=c&iss=i", "http://other.example/callback?state=right&code=c"} {
			ask("GET "+target, get(target))
		}
		ask("POST", strings.Replace(get("/callback?state=right"), "GET", "POST", 1))
		ask("HEAD", strings.Replace(get("/callback?state=right"), "GET", "HEAD", 1))
		ask("no HTTP", "hello\r\n\r\n")
		sized := func(n int) string {
			head, end := "GET /callback?state=right HTTP/1.1\r\nHost: h\r\nX: ", "\r\n\r\n"
			return head + strings.Repeat("x", n-len(head)-len(end)) + end
		}
		ask("as long as it may be", sized(maxCallback))
		ask("a byte longer", sized(maxCallback+1))
		for _, request := range []string{"", "GET /callback?state=right HTTP/1.1\r\n"} { // what it gets is no matter
			begun = time.Now()
			conn := come()
			go func() { _, _ = io.WriteString(conn, request) }()
			_, err := io.Copy(io.Discard, conn)
			require.NoError(t, err)
			fmt.Fprintf(&b, "%q, and no more\n  over after %v\n", request, time.Since(begun))
		}

		begun = time.Now()
		var idle []net.Conn
		for range maxCallbacks {
			idle = append(idle, come())
		}
		synctest.Wait()
		fmt.Fprintf(&b, "with %d that say nothing\n  %s\n", maxCallbacks, read(come()))
		_, err := io.WriteString(idle[3], get("/callback?state=right&code=first"))
		require.NoError(t, err)
		fmt.Fprintf(&b, "one of these asks\n  %s\n", read(idle[3]))
		ask("there is room for one", get("/callback?state=right&code=second"))
		fmt.Fprintf(&b, "it counts no more: %d wait\n", len(c.answers))
		begun = time.Now()
		d.fails <- errors.New("too many open files")
		ask("after an error of the listener", get("/"))
		c.close()
		fmt.Fprintf(&b, "closed after %v\n", time.Since(begun))
		for i, conn := range idle {
			if i != 3 {
				conn.Close()
			}
		}
		golden.Compare(t, "browsers.golden", b.String())
	})
}
