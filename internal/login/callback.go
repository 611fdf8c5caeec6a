package login

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hosts"
)

// A callback waits for the browser at the address to which the user is redirected.
type callback struct {
	address  string
	path     string
	listener net.Listener // nil if the address is not of this machine
	running  sync.WaitGroup
	open     context.Context // until close
	end      context.CancelFunc
	answers  chan url.Values
}

// A place is where a login listens. It is free when the login has returned, also if something
// of it still goes on: another login may have to listen there.
type place struct {
	mu       sync.Mutex
	left     bool
	listener net.Listener // nil for none
}

// take notes a listener, which leave closes.
func (p *place) take(listener net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener = listener; p.left && listener != nil {
		listener.Close()
	}
}

func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left = true; p.listener != nil {
		p.listener.Close()
	}
}

const (
	callbackPath    = "/callback"
	callbackTimeout = 10 * time.Second // for one request of a browser
	maxCallbacks    = 16               // requests at once
	maxCallback     = 32 << 10         // bytes of one
)

// A listener that several may close: each Close returns when the address is free. The second Close of
// package net's returns at once.
type listener struct {
	net.Listener
	closed func() error
}

func listenAt(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return listener{l, sync.OnceValue(l.Close)}, nil
}

func (l listener) Close() error { return l.closed() }

// listen returns a callback at the configured address, else at the one for which a
// client is registered if its port is free, else at a new one.
func listen(configured, registered string) (*callback, error) {
	c := &callback{answers: make(chan url.Values, 1)}
	c.open, c.end = context.WithCancel(context.Background())
	if configured != "" {
		u, err := url.Parse(configured)
		if err != nil || u.Host == "" {
			return nil, errors.New("OAuth.RedirectURI is not a URL")
		}
		c.address, c.path = configured, cmp.Or(u.Path, "/")
		if u.Scheme != "http" || !hosts.IsLoopback(u.Hostname()) {
			return c, nil
		}
		c.listener, err = listenAt(u.Host)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: another login may be waiting there; finish it, or end it and try again", err)
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for the browser at OAuth.RedirectURI: %w", err)
		}
		return c, nil
	}
	c.path = callbackPath
	if u, err := url.Parse(registered); err == nil && u.Hostname() == "127.0.0.1" {
		if c.listener, err = listenAt(u.Host); err == nil {
			c.address = registered
			return c, nil
		}
	}
	var err error
	if c.listener, err = listenAt("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w", err)
	}
	c.address = "http://" + c.listener.Addr().String() + callbackPath
	return c, nil
}

// wait opens the page and returns the query with which the browser comes back.
func (c *callback) wait(ctx context.Context, page Page, state string, open Open) (url.Values, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type opened struct {
		redirected string
		err        error
	}
	shown := make(chan opened, 1)
	go func() {
		redirected, err := open(ctx, page)
		shown <- opened{redirected, err}
	}()
	if c.listener != nil {
		c.running.Go(func() { c.serve(state) })
	}
	for {
		select {
		case said := <-c.answers:
			return said, nil
		case o := <-shown:
			switch {
			case o.err != nil:
				return nil, fmt.Errorf("opening the page: %w", o.err)
			case o.redirected != "":
				u, err := url.Parse(o.redirected)
				if err != nil {
					return nil, errors.New("the address that the browser came to is malformed")
				}
				return u.Query(), nil
			case c.listener == nil:
				return nil, errors.New("OAuth.RedirectURI is not of this machine: the hook that opens the page must return the address that the browser came to")
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the browser: %w", ctx.Err())
		}
	}
}

// close ends serve and waits for it.
func (c *callback) close() {
	c.end()
	if c.listener != nil {
		c.listener.Close()
	}
	c.running.Wait()
}

// serve answers browsers until close. Only a request with the state counts.
func (c *callback) serve(state string) {
	slots := make(chan struct{}, maxCallbacks)
	for {
		conn, err := c.listener.Accept()
		if err != nil { // such as too many open files, or close
			select {
			case <-c.open.Done():
				return
			case <-time.After(callbackTimeout / 100):
				continue
			}
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		c.running.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(callbackTimeout))
			defer context.AfterFunc(c.open, func() { _ = conn.SetDeadline(time.Now().Add(callbackTimeout / 100)) })()
			c.answer(conn, state)
		})
	}
}

// answer answers one request.
func (c *callback) answer(conn net.Conn, state string) {
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, maxCallback)))
	status, line := "404 Not Found", "There is nothing here."
	if err == nil && r.Method == http.MethodGet && r.URL.Path == c.path {
		said := r.URL.Query()
		switch {
		case !sameState(said, state):
			status, line = "400 Bad Request", "This is not the login that is waited for. If another one was begun, finish that: the program has shown its page."
		case said.Get("error") != "":
			status, line = "200 OK", "The login was refused. You can close this page."
			c.tell(said)
		default:
			status, line = "200 OK", "You can close this page and go back to the program."
			c.tell(said)
		}
	}
	fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nCache-Control: no-store\r\n"+
		"Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n%s", status, len(line), line)
}

// tell passes on the first answer.
func (c *callback) tell(said url.Values) {
	select {
	case c.answers <- said:
	default:
	}
}
