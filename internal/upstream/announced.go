package upstream

import (
	"context"
	"sync"
	"time"
)

// maxChangeWait is how long a call waits, after its result, for the tools that the server
// announced meanwhile. A tool that the call enabled is there in the model's next request.
const maxChangeWait = 2 * time.Second

// announcedChanges counts the changes of its tools that a server announces over a connection, for the
// calls that wait for them. watch.go lists again.
type announcedChanges struct {
	mu        sync.Mutex
	announced int
	listed    int           // of these, how many had been announced when the last listing began
	news      chan struct{} // closed when listed grows
}

// announce counts a change.
func (t *announcedChanges) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.announced++
}

// count returns how many changes were announced.
func (t *announcedChanges) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.announced
}

// list notes the end of a listing that began when so many changes were announced.
func (t *announcedChanges) list(announced int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listed = max(t.listed, announced)
	if t.news != nil {
		close(t.news)
		t.news = nil
	}
}

// wait returns when so many changes are listed, at the end of ctx, when over is closed, or
// after maxChangeWait.
func (t *announcedChanges) wait(ctx context.Context, announced int, over <-chan struct{}) {
	late := time.After(maxChangeWait)
	for {
		t.mu.Lock()
		if t.listed >= announced {
			t.mu.Unlock()
			return
		}
		if t.news == nil {
			t.news = make(chan struct{})
		}
		news := t.news
		t.mu.Unlock()
		select {
		case <-news:
		case <-over:
			return
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}
