package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// A door limits how many connections are open. If there are too many, it closes the one
// that has waited longest: first those that never had an admitted request, then those
// that have none now. So who has no token can't keep out who has one.
type door struct {
	*net.TCPListener
	max int

	mu    sync.Mutex
	inner map[*visit]struct{}
}

func newDoor(l *net.TCPListener, max int) *door {
	return &door{TCPListener: l, max: max, inner: make(map[*visit]struct{})}
}

// A visit is an open connection.
type visit struct {
	*net.TCPConn
	door *door

	// Guarded by door.mu.
	known   bool      // had an admitted request
	working int       // admitted requests that run
	waiting time.Time // since when none runs
}

type visitKey struct{}

// withVisit puts a connection into the context of its requests.
func withVisit(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, visitKey{}, c)
}

// work marks the connection of a request as admitted. It works until the returned
// function is called.
func work(ctx context.Context) (done func()) {
	v, ok := ctx.Value(visitKey{}).(*visit)
	if !ok {
		return func() {}
	}
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.known = true
	v.working++
	return func() {
		v.door.mu.Lock()
		defer v.door.mu.Unlock()
		v.working--
		v.waiting = time.Now()
	}
}

// Accept implements [net.Listener]. It never fails for want of descriptors if it can
// close a connection that waits.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.AcceptTCP()
		if errors.Is(err, syscall.EMFILE) && d.closeOne() {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d.isFull() && !d.closeOne() {
			c.Close() // all others work
			continue
		}
		v := &visit{TCPConn: c, door: d, waiting: time.Now()}
		d.mu.Lock()
		d.inner[v] = struct{}{}
		d.mu.Unlock()
		return v, nil
	}
}

func (d *door) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inner) >= d.max
}

// closeOne closes the connection that has waited longest, and reports whether there is
// one.
func (d *door) closeOne() bool {
	d.mu.Lock()
	var found *visit
	for v := range d.inner {
		switch {
		case v.working > 0:
		case found == nil, found.known && !v.known, found.known == v.known && v.waiting.Before(found.waiting):
			found = v
		}
	}
	d.mu.Unlock()
	if found == nil {
		return false
	}
	found.Close()
	return true
}

// Close implements [net.Conn].
func (v *visit) Close() error {
	v.door.mu.Lock()
	delete(v.door.inner, v)
	v.door.mu.Unlock()
	return v.TCPConn.Close()
}
