package natsstore

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/mcphybrid/mcphybrid/internal/lease"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type leases struct{ of *Store }

// Leases returns the leases of the store. The servers' clock alone says when one ends.
func (s *Store) Leases() store.Leases { return leases{s} }

// Lease implements [store.Leases].
func (s leases) Lease(ctx context.Context, id string) (context.Context, func(), error) {
	key, err := encoded(id)
	if err != nil {
		return nil, nil, fmt.Errorf("natsstore: lease: %w", err)
	}
	held, release, err := s.of.waiting.Hold(ctx, id, &claim{nc: s.of.nc, kv: s.of.leases, key: key, holder: []byte(rand.Text())}, s.of.opts.LeaseTime)
	if err != nil {
		if !lease.IsHeld(err) {
			err = unavailable(err)
		}
		return nil, nil, fmt.Errorf("natsstore: lease %.256q: %w", id, err)
	}
	return held, release, nil
}

// A claim is a key of a bucket whose values expire, which one holder wants.
type claim struct {
	nc       *nats.Conn
	kv       jetstream.KeyValue
	key      string
	holder   []byte
	revision uint64 // of what we put last; 0 if it is not known whether we did
}

// Take implements [lease.Claim]. It sends nothing without a connection: nats.go would send it with
// the next one, when whoever asked has given up and gives nothing back.
func (c *claim) Take(ctx context.Context) (taken bool, err error) {
	if !c.nc.IsConnected() {
		return false, nats.ErrDisconnected
	}
	c.revision, err = c.kv.Create(ctx, c.key, c.holder)
	if isStale(err) {
		return false, nil
	}
	return err == nil, err
}

// Renew implements [lease.Claim]. An update whose answer was lost has another revision.
func (c *claim) Renew(ctx context.Context) (kept bool, err error) {
	revision, err := c.kv.Update(ctx, c.key, c.holder, c.revision)
	if isStale(err) {
		var newest uint64
		if newest, err = c.ours(ctx); err != nil || newest == 0 {
			return false, err
		}
		revision, err = c.kv.Update(ctx, c.key, c.holder, newest)
		if isStale(err) {
			return false, nil
		}
	}
	if err == nil {
		c.revision = revision
	}
	return err == nil, err
}

// ours returns the revision of what we put, or 0 if we have nothing there.
func (c *claim) ours(ctx context.Context) (revision uint64, err error) {
	e, err := c.kv.Get(ctx, c.key)
	switch {
	case isMissing(err):
		return 0, nil
	case err != nil:
		return 0, err
	case string(e.Value()) != string(c.holder):
		return 0, nil
	}
	return e.Revision(), nil
}

// Free implements [lease.Claim]. What we put last is there still, as a rule; it is not if an answer was
// lost. It ends when the connection is closed.
func (c *claim) Free(ctx context.Context) error {
	if c.nc.IsClosed() {
		return nil
	}
	if c.revision != 0 {
		if err := c.kv.Purge(ctx, c.key, jetstream.LastRevision(c.revision)); !isStale(err) {
			return err
		}
	}
	revision, err := c.ours(ctx)
	if err != nil || revision == 0 {
		return err
	}
	if err = c.kv.Purge(ctx, c.key, jetstream.LastRevision(revision)); isStale(err) {
		return nil // it has expired
	}
	return err
}
