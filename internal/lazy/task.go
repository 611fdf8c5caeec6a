package lazy

import "sync"

// A Task is work of which one goroutine at a time does its part, without a lock: what
// it calls may ask for it again. The zero value is ready for use.
type Task struct {
	mu      sync.Mutex
	running bool
	again   bool
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
