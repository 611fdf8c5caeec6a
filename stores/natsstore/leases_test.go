package natsstore

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
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
