package natsstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// away are errors that say that the server can't be reached or does not answer. A connection
// that was closed is not: it does not come back.
var away = []error{
	context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
	nats.ErrReconnectBufExceeded, nats.ErrNoServers, nats.ErrStaleConnection, jetstream.ErrNoStreamResponse,
	jetstream.ErrJetStreamNotEnabled,
}

// unavailable returns err, as [store.ErrUnavailable] if the server could not be reached or did
// not answer in time, or the cluster has no leader.
func unavailable(err error) error {
	said := new(jetstream.APIError)
	lost := errors.As(err, &said) && said.Code == http.StatusServiceUnavailable
	for _, one := range away {
		lost = lost || errors.Is(err, one)
	}
	if !lost {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// retryAfterCut does something, and once more each time that the connection was lost and is there again
// meanwhile: an answer that was on its way does not come any more. What do does must be safe to
// repeat. It gets a context that ends with ctx, and when it is to be repeated.
func (s *Store) retryAfterCut(ctx context.Context, do func(context.Context) error) error {
	connected := s.nc.StatusChanged(nats.CONNECTED)
	defer s.nc.RemoveStatusListener(connected)
	for {
		once, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- do(once) }()
		select {
		case err := <-done:
			cancel()
			return err
		case <-connected:
			cancel()
			if err := <-done; err == nil || ctx.Err() != nil {
				return err
			}
		}
	}
}
