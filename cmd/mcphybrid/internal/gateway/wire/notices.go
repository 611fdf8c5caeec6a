// Package wire is what clients of the gateway read and write: lines over standard input and
// output, and answers and events over HTTP. Each can carry notifications.
package wire

import (
	"context"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Sink takes notifications to a client, each whole and in order, and reports whether it
// did. It may wait for the client.
type Sink interface {
	Notify(method string, params any) (written bool)
}

// Notices tell a client what is no answer: that lists have changed, and resources to which it
// is subscribed, and log messages that belong to no call that runs. They wait until the client
// has said that it is ready, and has an open stream.
type Notices struct {
	mu      sync.Mutex
	ready   bool
	due     []notice       // each once
	asked   map[string]int // requests for the list that a method is about, which wait
	streams []Sink         // that are open; the last is the best
	answers int            // how many of streams, the first, end with an answer
	opened  chan struct{}  // closed when a stream is open that stays; nil if nobody waits
	to      Sink           // the stream that is being written to, or nil
	writing notice         // what was written last, by now if to is not nil
	dropped bool           // it is not written again
	written *sync.Cond
}

// A notice is one that waits.
type notice struct {
	method string
	of     string // the client's subscription to which an update belongs, or ""
	uri    string // of what was updated, or ""
	log    *logMessage
}

// A logMessage is one that a server logged.
type logMessage struct {
	params any
	bytes  int // of the data
}

// As many log messages wait for a client at most, and as many bytes of them, but for one that
// is larger alone. If there are more, the oldest are dropped.
const (
	maxLogs     = 100
	maxLogBytes = 1 << 20
)

// maxUpdates is how many updates of resources wait for a client. If there are more, what it
// is subscribed to stands for its parts.
const maxUpdates = 100

const methodLog = string(mcp.MethodNotificationMessage)

// NewNotices returns those of a client that is not ready yet.
func NewNotices() *Notices {
	n := &Notices{asked: make(map[string]int)}
	n.written = sync.NewCond(&n.mu)
	return n
}

// Begin notes that the client is ready.
func (n *Notices) Begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = true
	n.writeLocked()
}

// Begun reports whether the client is ready.
func (n *Notices) Begun() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// Tell sends a notification, unless the same one still waits.
func (n *Notices) Tell(method string) { n.tell(notice{method: method}) }

// TellUpdate says that something was updated to which the client is subscribed by the URI of.
func (n *Notices) TellUpdate(of, uri string) {
	n.tell(notice{method: mcp.MethodNotificationResourceUpdated, of: of, uri: uri})
}

// TellLog sends a log message, of which the data has that many bytes.
func (n *Notices) TellLog(params any, bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	count, sum := 1, bytes
	for i, due := range slices.Backward(n.due) {
		if due.log == nil {
			continue
		}
		if count, sum = count+1, sum+due.log.bytes; count > maxLogs || sum > maxLogBytes {
			n.due = slices.Delete(n.due, i, i+1)
		}
	}
	n.due = append(n.due, notice{method: methodLog, log: &logMessage{params, bytes}})
	n.writeLocked()
}

func (n *Notices) tell(what notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	updates := 0
	for _, due := range n.due {
		if due.log == nil {
			updates++
		}
	}
	if updates >= maxUpdates {
		what.uri = what.of
	}
	if !slices.Contains(n.due, what) {
		n.due = append(n.due, what)
	}
	n.writeLocked()
}

// ForgetUpdate drops what waits because of a subscription.
func (n *Notices) ForgetUpdate(of string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	stale := func(one notice) bool { return one.of == of && of != "" }
	n.due = slices.DeleteFunc(n.due, stale)
	n.dropped = n.dropped || stale(n.writing)
}

// Ask holds back a method while the client waits for a list that it is about. The returned
// function is called just before the list is made. If the method is about nothing else,
// the client need not be told of changes up to then.
func (n *Notices) Ask(method string) (ready func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[method]++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.asked[method]--
		if method != mcp.MethodNotificationResourcesListChanged { // it is about templates, too
			n.due = slices.DeleteFunc(n.due, func(due notice) bool { return due.method == method })
		}
		n.writeLocked()
	}
}

// Waits reports whether the client waits for a list that a method is about.
func (n *Notices) Waits(method string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[method] > 0
}

// Attach has notices written to a stream until the returned function is called. One that
// stays open is better than an answer, which ends.
func (n *Notices) Attach(s Sink, stays bool) (detach func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !stays {
		n.streams = slices.Insert(n.streams, 0, s)
		n.answers++
	} else {
		n.streams = append(n.streams, s)
		if n.opened != nil {
			close(n.opened)
			n.opened = nil
		}
	}
	n.writeLocked()
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.dropLocked(s)
	}
}

func (n *Notices) dropLocked(s Sink) {
	at := slices.Index(n.streams, s)
	if at < 0 {
		return
	}
	if at < n.answers {
		n.answers--
	}
	n.streams = slices.Delete(n.streams, at, at+1)
}

// AwaitStream waits until the client has a stream that stays open, and reports whether it has
// one before ctx ends.
func (n *Notices) AwaitStream(ctx context.Context) bool {
	n.mu.Lock()
	if len(n.streams) > n.answers {
		n.mu.Unlock()
		return true
	}
	if n.opened == nil {
		n.opened = make(chan struct{})
	}
	opened := n.opened
	n.mu.Unlock()
	select {
	case <-opened:
		return true
	case <-ctx.Done():
		return false
	}
}

// settle returns when nothing is being written to a stream.
func (n *Notices) settle(s Sink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.to == s {
		n.written.Wait()
	}
}

func (n *Notices) writeLocked() {
	first := slices.IndexFunc(n.due, func(due notice) bool { return n.asked[due.method] == 0 })
	if !n.ready || n.to != nil || first < 0 || len(n.streams) == 0 {
		return
	}
	what := n.due[first]
	n.due = slices.Delete(n.due, first, first+1)
	n.to, n.writing, n.dropped = n.streams[len(n.streams)-1], what, false
	go n.write(what)
}

// write writes to n.to. What that does not take goes to the next stream.
func (n *Notices) write(what notice) {
	var params any
	switch {
	case what.log != nil:
		params = what.log.params
	case what.uri != "":
		params = map[string]string{"uri": what.uri}
	}
	taken := n.to.Notify(what.method, params)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !taken {
		n.dropLocked(n.to)
		if !n.dropped && !slices.Contains(n.due, what) {
			n.due = slices.Insert(n.due, 0, what)
		}
	}
	n.to = nil
	n.writeLocked()
	n.written.Broadcast()
}
