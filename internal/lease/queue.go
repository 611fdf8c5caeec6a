package lease

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Queues are who waits for leases in one process, by id. The first of each asks the engine, so
// that many don't keep it, and its connections, from those who renew. The zero value is ready.
type Queues struct {
	mu   sync.Mutex
	byID map[string]*queue
}

// A queue is who waits for one lease.
type queue struct {
	waiting int           // guarded by the mutex of the Queues
	first   chan struct{} // has a value while somebody asks
	failed  chan struct{} // is closed when the engine could not be asked
	err     error         // why; set before that
}

// Hold is [Hold] of the lease with that id. Who waits behind one that fails fails as well.
func (q *Queues) Hold(ctx context.Context, id string, c Claim, d time.Duration) (held context.Context, release func(), err error) {
	one := q.enter(id)
	defer q.leave(id, one)
	select {
	case one.first <- struct{}{}:
		defer func() { <-one.first }()
	case <-one.failed:
		return nil, nil, one.err
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("%w: %w", errHeld, ctx.Err())
	}
	if held, release, err = Hold(ctx, c, d); err != nil && ctx.Err() == nil {
		q.fail(id, one, err)
	}
	return held, release, err
}

func (q *Queues) enter(id string) *queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byID == nil {
		q.byID = make(map[string]*queue)
	}
	one := q.byID[id]
	if one == nil {
		one = &queue{first: make(chan struct{}, 1), failed: make(chan struct{})}
		q.byID[id] = one
	}
	one.waiting++
	return one
}

func (q *Queues) leave(id string, one *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one.waiting--; one.waiting == 0 && q.byID[id] == one {
		delete(q.byID, id)
	}
}

// fail ends a queue. Who comes later asks anew.
func (q *Queues) fail(id string, one *queue, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byID[id] == one { // it has not failed yet
		delete(q.byID, id)
		one.err = err
		close(one.failed)
	}
}
