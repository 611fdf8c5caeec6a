package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
)

// A launcher such as npx downloads a server at its first start, which takes longer than the
// start timeout leaves. If it were killed then, each attempt would begin the download
// anew. So while a child that has said nothing yet is at work, the clock of the attempt
// stands still. A server that hangs does not work.

// maxAtWork is how long the clock may stand still.
const maxAtWork = 5 * time.Minute

// errAtWork is why a server is not ready after the start timeout.
var errAtWork = errors.New("it is still at work, for up to five minutes")

// errNoAnswer is why it is not ready before that.
var errNoAnswer = errors.New("it has not answered yet")

// whyLate returns why the attempt under way has no result yet.
func (s *Server) whyLate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atWork {
		return errAtWork
	}
	select {
	case <-s.turn.hasCome():
	default:
		return errQueued
	}
	return errNoAnswer
}

// lookEach returns how often to look whether a child is at work: eight times within its start
// timeout, but each second at most, since the kernel counts hundredths, and not less often
// than each 2.5 seconds, since others may wait for their turn.
func lookEach(timeout time.Duration) time.Duration {
	return min(max(timeout/8, time.Second), 2500*time.Millisecond)
}

// workShare is what part of the time a child must use a processor to be at work, with its
// descendants. One that only waits uses less than a thousandth. On a busy machine, one that
// works may get less: it is at work, too, if a look finds it runnable.
const workShare = 50

// holdWhileAtWork stops the clock of ctx while the child is at work and has said nothing yet.
// It looks once in each period, and tells held when it stops the clock, and at each look by which
// the clock runs.
func (p *process) holdWhileAtWork(ctx context.Context, period time.Duration, held func(bool)) {
	var did work
	holdWhile(ctx, period, func() bool {
		now := work{written: p.stderr.total()}
		now.computed, now.runnable = p.strays.worked()
		busy := now.isMore(did, period)
		did = now
		return busy
	}, p.words.spoke, p.exited, held)
}

// work is what a child has done until a look, with its descendants.
type work struct {
	computed time.Duration
	runnable bool // at the look
	written  int  // bytes, to standard error
}

// isMore reports whether the child was at work in the period after before.
func (w work) isMore(before work, period time.Duration) bool {
	return w.runnable || w.computed-before.computed >= period/workShare || w.written > before.written
}

func holdWhile(ctx context.Context, period time.Duration, busy func() bool, spoke, exited <-chan struct{}, held func(bool)) {
	resume := func() {}
	defer func() { resume() }()
	defer held(false)
	most := time.NewTimer(maxAtWork)
	defer most.Stop()
	look := time.NewTicker(period)
	defer look.Stop()
	for holds := false; ; {
		select {
		case <-look.C:
		case <-most.C:
			return
		case <-spoke:
			return
		case <-exited:
			return
		case <-ctx.Done():
			return
		}
		switch now := busy(); {
		case now && !holds:
			resume, holds = hostcode.Hold(ctx), true
			held(true)
		case !now:
			resume()
			held(false)
			holds = false
		}
	}
}

// works notes whether the child takes more time to start, since it is at work. If not, it
// makes room for others.
func (s *Server) works(turn *turn, at bool) {
	if !at {
		turn.makeRoom()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != turn { // it is late: this is the next attempt
		return
	}
	if s.atWork = at; at {
		s.lateLocked(errAtWork)
	}
}

// lateLocked notes why an attempt takes long. Why the server was down before it tells more, and
// stays.
func (s *Server) lateLocked(why error) {
	if s.status.State == Connecting && s.status.Err == nil {
		s.setLocked(Connecting, why)
	}
}
