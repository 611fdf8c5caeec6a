package upstream

import "time"

// A relistDelay is how soon lists are read again because another process has others. A server may
// word its lists anew each time: then each listing of one process causes one of every other.
// So all but the first wait, each twice as long as the one before.
type relistDelay struct {
	most time.Duration // of a wait; an hour if it is not above 0
	next time.Duration // the wait after last
	last time.Time
}

const (
	firstPace = time.Second // a Cache is saved as often
	quiet     = time.Minute // after which, at the least, the next listing is a first one
)

// wait returns how long the next listing waits.
func (p *relistDelay) wait() time.Duration {
	if time.Since(p.last) > max(4*p.next, quiet) {
		p.next = 0
	}
	return time.Until(p.last.Add(p.next))
}

// listed notes that the lists are read now.
func (p *relistDelay) listed() {
	most := p.most
	if most <= 0 {
		most = time.Hour
	}
	p.next, p.last = min(max(2*p.next, firstPace), most), time.Now()
}
