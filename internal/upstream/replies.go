package upstream

import (
	"context"
	"time"
)

// How long a server may take to accept an answer to a request of its own, and how many answers may
// take so long at once. All others, and what ends the session, have [termGrace].
const (
	replyTimeout   = 30 * time.Second
	maxSlowReplies = 64
)

// replies are answers on their way to the server, which may be slow, and may have asked a person: one
// that is lost leaves the call that asked without a result. A server that takes none must not hold
// many requests.
type replies struct {
	life context.Context // of the connection, with which they end; nil if there are none
	slow chan struct{}   // has one for each that may take the replyTimeout
}

func newReplies(life context.Context) replies {
	return replies{life, make(chan struct{}, maxSlowReplies)}
}

// bound returns the context of an answer in place of mcp-go's, which bounds the request and its
// answer together: a person exceeds that.
func (p replies) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	select {
	case p.slow <- struct{}{}:
	default:
		return context.WithTimeout(ctx, termGrace)
	}
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	stop := context.AfterFunc(p.life, cancel)
	return ctx, func() {
		stop()
		cancel()
		<-p.slow
	}
}
