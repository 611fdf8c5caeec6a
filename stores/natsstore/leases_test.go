package natsstore

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A valve dials connections over which nothing more is written between shut and open, as where a
// network swallows packets.
type valve struct{ shut, open chan struct{} }

func (v *valve) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &valved{conn, v}, err
}

type valved struct {
	net.Conn
	*valve
}

func (v *valved) Write(p []byte) (int, error) {
	select {
	case <-v.shut:
		<-v.open
	default:
	}
	return v.Conn.Write(p)
}

// While nats.go writes to a network that takes nothing, it heeds no context. A lease ends in time
// all the same.
func TestLeaseEndsWhileNothingIsWritten(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	opts := Options{LeaseTime: 2 * time.Second}
	v := &valve{make(chan struct{}), make(chan struct{})}
	far, err := Open(t.Context(), e.connect(t, nats.SetCustomDialer(v)), &opts)
	require.NoError(t, err)
	held, release, err := far.Leases().Lease(t.Context(), "x")
	require.NoError(t, err)
	close(v.shut)
	defer close(v.open)
	go far.nc.Publish("y", make([]byte, 100_000)) // it holds the connection

	_, free, err := e.open(t, opts).Leases().Lease(t.Context(), "x")
	require.NoError(t, err)
	defer free()
	assert.ErrorIs(t, context.Cause(held), store.ErrLeaseLost)
	began := time.Now()
	release()
	assert.Less(t, time.Since(began), 5*time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began = time.Now()
	_, _, err = far.Leases().Lease(ctx, "y")
	assert.ErrorIs(t, err, store.ErrUnavailable)
	assert.Less(t, time.Since(began), 5*time.Second)
}

// An outlived is a claim that tells how often it was to be given back, and that it is over.
type outlived struct {
	*claim
	tried, over chan struct{}
}

func (o *outlived) Free(ctx context.Context) error {
	o.tried <- struct{}{}
	err := o.claim.Free(ctx)
	if err == nil {
		close(o.over)
	}
	return err
}

// What can't be given back is tried again in an outage, but not over a connection that was closed.
func TestClosedGivesNothingBack(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := e.open(t, Options{})
	o := &outlived{&claim{nc: s.nc, kv: s.leases, key: "x", holder: []byte("me")}, make(chan struct{}, 10_000), make(chan struct{})}
	_, release, err := s.waiting.Hold(t.Context(), "x", o, time.Hour)
	require.NoError(t, err)
	e.stop()
	release()
	<-o.tried
	<-o.tried
	s.nc.Close()
	select {
	case <-o.over:
	case <-time.After(time.Minute):
		assert.Fail(t, "it goes on for as long as the lease")
	}
}

// A process with a shorter LeaseTime does not end the leases of those with a longer one.
func TestLeaseTimesDiffer(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	held, release, err := e.open(t, Options{LeaseTime: 30 * time.Second}).Leases().Lease(t.Context(), "x")
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, _, err = e.open(t, Options{LeaseTime: time.Second}).Leases().Lease(ctx, "x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NoError(t, held.Err())
}

// A counted is a bucket that counts reads.
type counted struct {
	jetstream.KeyValue
	gets int
}

func (c *counted) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	c.gets++
	return c.KeyValue.Get(ctx, key)
}

// Who gives up a lease knows its revision, so need not ask for it, unless an answer was lost. Nobody gives up
// another's.
func TestFree(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := e.open(t, Options{})
	kv := &counted{KeyValue: s.leases}
	ctx := t.Context()
	free := func(c *claim) (is bool) {
		require.NoError(t, c.Free(ctx))
		_, err := kv.KeyValue.Get(ctx, c.key)
		return isMissing(err)
	}
	take := func(key string) *claim {
		c := &claim{nc: s.nc, kv: kv, key: key, holder: []byte("me")}
		taken, err := c.Take(ctx)
		require.NoError(t, err)
		require.True(t, taken)
		return c
	}
	assert.True(t, free(take("known")))
	assert.Zero(t, kv.gets)

	c := take("lost")
	_, err := kv.Update(ctx, c.key, c.holder, c.revision) // a renewal without an answer
	require.NoError(t, err)
	assert.True(t, free(c))
	c = take("unknown")
	c.revision = 0
	assert.True(t, free(c))

	c = take("others")
	_, err = kv.Put(ctx, c.key, []byte("other"))
	require.NoError(t, err)
	assert.False(t, free(c))
	assert.True(t, free(take("expired")))
	require.NoError(t, (&claim{nc: s.nc, kv: kv, key: "expired", holder: []byte("me"), revision: 1}).Free(ctx))
}

// Who asked for a lease while the servers were away, and gave up, does not have it when they are
// back: the next one need not wait until it ends.
func TestNobodyTakesALeaseInAnOutage(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	a := e.open(t, Options{})
	e.stop()
	away, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, _, err := a.Leases().Lease(away, "x")
	assert.ErrorIs(t, err, store.ErrUnavailable)
	e.start(t)
	require.Eventually(t, func() bool { return a.nc.IsConnected() && a.nc.Flush() == nil }, 20*time.Second, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), DefaultLeaseTime/2)
	defer cancel()
	_, release, err := e.open(t, Options{}).Leases().Lease(ctx, "x")
	require.NoError(t, err)
	release()
}
