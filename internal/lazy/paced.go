package lazy

import (
	"sync"
	"time"
)

// A Paced does work in a goroutine of its own: at once, or if it did some less than an
// interval ago, once for all that was asked for since. Its fields are fixed; the rest is
// ready for use.
type Paced struct {
	Every time.Duration
	Work  func() (done bool) // if nothing was to be done, the next need not wait

	mu      sync.Mutex
	asked   bool
	running chan struct{} // closed when the goroutine ends; nil if there is none
	closing chan struct{} // closed by Close; made with the goroutine
	closed  bool
}

// Ask has the work done once more. It does not wait. After Close it does nothing.
func (p *Paced) Ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.asked = true
	if p.running == nil {
		p.running, p.closing = make(chan struct{}), make(chan struct{})
		go p.run(p.running, p.closing)
	}
}

func (p *Paced) run(ended, closing chan struct{}) {
	defer close(ended)
	for p.next() {
		if !p.Work() {
			continue
		}
		select {
		case <-time.After(p.Every):
		case <-closing:
		}
	}
}

// next reports whether there is work to do. If not, the goroutine ends.
func (p *Paced) next() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.asked
	p.asked = false
	if !due {
		p.running = nil
	}
	return due
}

// Close does at once what was asked for, and waits until it is done.
func (p *Paced) Close() {
	p.mu.Lock()
	running := p.running
	if running != nil && !p.closed {
		close(p.closing)
	}
	p.closed = true
	p.mu.Unlock()
	if running != nil {
		<-running
	}
}
