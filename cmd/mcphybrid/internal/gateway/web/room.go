package web

import (
	"context"
	"slices"
	"sync"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
)

// A room is memory that the messages of all clients share. A client is the holder of a
// token; all who need none are one. It has at most half of the room, or one message that
// takes more. Messages that wait get room in turns, one of each client.
type room struct {
	half int // bytes

	mu    sync.Mutex
	free  int                    // bytes
	has   map[*tokens.Holder]int // bytes of each client that has any
	lines []*line                // of clients that wait; the first is next
}

// A line is the messages of a client that wait for room.
type line struct {
	client  *tokens.Holder
	waiting []*claim // not empty
}

// A claim is what a message needs.
type claim struct {
	bytes   int
	granted chan struct{} // closed once it has them
}

func newRoom(bytes int) *room {
	return &room{half: bytes / 2, free: bytes, has: make(map[*tokens.Holder]int)}
}

// take waits until a client may have n bytes more. They must be given back.
func (r *room) take(ctx context.Context, client *tokens.Holder, n int) error {
	c := &claim{n, make(chan struct{})}
	r.mu.Lock()
	if i := r.lineLocked(client); i >= 0 {
		r.lines[i].waiting = append(r.lines[i].waiting, c)
	} else {
		r.lines = append(r.lines, &line{client, []*claim{c}})
	}
	r.grantLocked()
	r.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-c.granted: // at the same moment
		r.giveLocked(client, n)
	default:
		r.leaveLocked(client, c)
	}
	return ctx.Err()
}

// give takes back n bytes of a client.
func (r *room) give(client *tokens.Holder, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveLocked(client, n)
}

func (r *room) giveLocked(client *tokens.Holder, n int) {
	r.free += n
	if r.has[client] -= n; r.has[client] == 0 {
		delete(r.has, client)
	}
	r.grantLocked()
}

// grantLocked gives what is free to those that wait. One that may have its bytes but for
// others' lets nobody pass, so that large claims are met too.
func (r *room) grantLocked() {
	for i := 0; i < len(r.lines); {
		l := r.lines[i]
		next := l.waiting[0]
		has := r.has[l.client]
		if has > 0 && has+next.bytes > r.half {
			i++
			continue
		}
		if next.bytes > r.free {
			return
		}
		r.free -= next.bytes
		r.has[l.client] = has + next.bytes
		close(next.granted)
		r.lines = slices.Delete(r.lines, i, i+1)
		if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
			r.lines = append(r.lines, l)
		}
	}
}

// leaveLocked takes a claim out of its line, where it is. If it was the next one, the others of
// its client wait behind those of other clients: it has had its turn.
func (r *room) leaveLocked(client *tokens.Holder, c *claim) {
	i := r.lineLocked(client)
	l := r.lines[i]
	next := l.waiting[0] == c
	l.waiting = slices.DeleteFunc(l.waiting, func(other *claim) bool { return other == c })
	if next {
		r.lines = slices.Delete(r.lines, i, i+1)
	}
	if next && len(l.waiting) > 0 {
		r.lines = append(r.lines, l)
	}
	r.grantLocked() // it may have kept others from passing
}

// lineLocked returns where the line of a client is, or -1.
func (r *room) lineLocked(client *tokens.Holder) int {
	return slices.IndexFunc(r.lines, func(l *line) bool { return l.client == client })
}
