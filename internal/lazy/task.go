package lazy

import (
	"sync"
	"time"
)

// A Task is work of which one goroutine at a time does its part, without a lock: what
// it calls may ask for it again. The zero value is ready for use.
type Task struct {
	mu      sync.Mutex
	running bool
	again   bool
	over    chan struct{} // closed when running becomes false; nil if nobody waits for that
}

// Do calls work. If another call of Do is under way, in another goroutine or further
// up in this one, then that call does the work once more when it has done it, and
// this one returns at once.
func (t *Task) Do(work func()) {
	t.mu.Lock()
	t.again = true
	if t.running {
		t.mu.Unlock()
		return
	}
	t.running = true
	defer func() { // also after a panic
		t.running = false
		if t.over != nil {
			close(t.over)
			t.over = nil
		}
		t.mu.Unlock()
	}()
	for t.again {
		t.again = false
		func() {
			t.mu.Unlock()
			defer t.mu.Lock()
			work()
		}()
	}
}

// Wait waits until no call of Do is under way, at most for d, and reports whether that is
// so. Work that asks for it waits for itself.
func (t *Task) Wait(d time.Duration) bool {
	t.mu.Lock()
	if t.running && t.over == nil {
		t.over = make(chan struct{})
	}
	over := t.over
	t.mu.Unlock()
	if over == nil {
		return true
	}
	select {
	case <-over:
		return true
	case <-time.After(d):
		return false
	}
}
