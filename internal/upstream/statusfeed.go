package upstream

import "context"

// maxUnheard is how many states wait to be told. Of more, the oldest are left out.
const maxUnheard = 64

// statusFeed tells somebody of each state that a server enters.
type statusFeed struct {
	tell    func(context.Context, Status) // nil if nobody listens
	last    Status                        // told or waiting
	waiting []Status                      // in order
	running bool                          // a goroutine tells them
}

// OnStatus has tell called with each state that the server enters from now on, in their
// order and one after the other, without a lock. Its context ends with the server. Call
// OnStatus before anything else.
func (s *Server) OnStatus(tell func(context.Context, Status)) { s.feed.tell = tell }

// noteLocked notes the state if it is another than before. The caller holds mu.
func (s *Server) noteLocked() {
	st, h := s.circuit.status(s.status), &s.feed
	if h.tell == nil || s.life.Err() != nil || st.State == h.last.State && st.Since.Equal(h.last.Since) && st.entered.Equal(h.last.entered) {
		return
	}
	h.last = st
	if h.waiting = append(h.waiting, st); len(h.waiting) > maxUnheard {
		h.waiting = h.waiting[1:]
	}
	if !h.running {
		h.running = true
		s.running.Go(s.tellStates)
	}
}

// tellStates tells the states until none waits.
func (s *Server) tellStates() {
	for {
		s.mu.Lock()
		if s.life.Err() != nil || len(s.feed.waiting) == 0 {
			s.feed.running = false
			s.mu.Unlock()
			return
		}
		st := s.feed.waiting[0]
		s.feed.waiting = s.feed.waiting[1:]
		s.mu.Unlock()
		s.feed.tell(s.life, st)
	}
}
