package mcphybrid

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcphybrid/mcphybrid/internal/hostcode"
	"github.com/mcphybrid/mcphybrid/internal/resources"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
)

// maxSubscribed is how many subscriptions a session has at most. A host can't need more: its
// person or model can't follow them.
const maxSubscribed = 100

// A resourceSubscription is one of a session.
type resourceSubscription struct {
	stop func() // nil until it is made; guarded by the session's mu
}

var errSessionClosed = errors.New("mcphybrid: the session is closed")

// SubscribeResource has updated called after a server said that a resource has changed. server
// and uri are as in [Session.ReadResource], and so is the error. It also fails if the server
// has no subscriptions to resources, beyond [config.Limits.MaxSubscriptions], and if the session
// has 100 subscriptions already.
//
// updated gets the URI, or that of a part of the resource, below it, if the session may read
// that too. It is called only while the session may read the resource. One call follows the
// other; what changes again before it was told is told once. When a server that was lost is
// back, updated is called too, since changes may have been missed. It may use the Manager and
// take its time.
//
// The subscription ends with stop, with [Session.Close], with the Manager, and when the server
// is removed; one call of updated may then still run. A session that needs no Close otherwise
// does if it has a subscription that was not stopped. At the server, all sessions together have
// one subscription to a resource. A restored session and a child have none.
func (s *Session) SubscribeResource(ctx context.Context, server, uri string, updated func(uri string)) (stop func(), err error) {
	sub := new(resourceSubscription)
	s.mu.Lock()
	links := s.links
	switch {
	case s.closed:
		err = errSessionClosed
	case len(s.subscribed) >= maxSubscribed:
		err = fmt.Errorf("mcphybrid: the session has as many subscriptions as the limit of %d", maxSubscribed)
	default:
		if s.subscribed == nil {
			s.subscribed = make(map[*resourceSubscription]struct{})
		}
		s.subscribed[sub] = struct{}{}
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var from origin
	located := make(chan struct{}) // from is set
	tell := func(changed string) {
		<-located
		v := s.view().readable()
		for _, uri := range slices.Compact([]string{changed, uri}) {
			at, err := v.Locate(context.Background(), resources.Resource, from.server, uri, links)
			if err == nil && at.Of == any(from.of) {
				hostcode.Logged(s.tenant.opts.Logger, "the function of SubscribeResource", func() { updated(uri) })
				return
			}
		}
	}
	leave, from, err := s.ask(ctx, resources.Resource, server, uri, func(ctx context.Context, to *upstream.Server, bar upstream.Precheck) (any, error) {
		return to.Subscribe(ctx, bar, uri, tell)
	})
	close(located)
	s.mu.Lock()
	closed := s.closed
	if err != nil || closed {
		delete(s.subscribed, sub)
	} else {
		sub.stop = leave.(func())
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case closed:
		leave.(func())()
		return nil, errSessionClosed
	}
	return func() {
		s.mu.Lock()
		delete(s.subscribed, sub)
		s.mu.Unlock()
		leave.(func())()
	}, nil
}
