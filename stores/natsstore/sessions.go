package natsstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/nats-io/nats.go/jetstream"
)

type sessions struct{ of *Store }

// Sessions returns the sessions of the store.
func (s *Store) Sessions() store.Sessions { return sessions{s} }

// named returns err with the id of a session, or nil for nil.
func named(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("natsstore: session %.256q: %w", id, unavailable(err))
}

func (s sessions) Get(ctx context.Context, id string) ([]byte, uint64, error) {
	key, err := encoded(id)
	if err != nil {
		return nil, 0, fmt.Errorf("natsstore: %w", err)
	}
	state, revision, err := s.get(ctx, key)
	return state, revision, named(id, err)
}

func (s sessions) get(ctx context.Context, key string) ([]byte, uint64, error) {
	var e jetstream.KeyValueEntry
	err := s.of.retryAfterCut(ctx, func(ctx context.Context) (err error) {
		e, err = s.of.sessions.Get(ctx, key)
		return err
	})
	if isMissing(err) {
		return nil, 0, store.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	state, err := unpack(e.Value(), store.MaxState)
	if err == nil {
		state, err = s.of.openings.Lengthen(ctx, state)
	}
	if err != nil {
		return nil, 0, err
	}
	return state, e.Revision(), nil
}

func (s sessions) Put(ctx context.Context, id string, state []byte, revision uint64) (uint64, error) {
	key, err := encoded(id)
	if err != nil {
		return 0, fmt.Errorf("natsstore: %w", err)
	}
	next, err := s.put(ctx, key, state, revision)
	return next, named(id, err)
}

func (s sessions) put(ctx context.Context, key string, state []byte, revision uint64) (next uint64, err error) {
	if len(state) > store.MaxState {
		return 0, fmt.Errorf("%w: %d bytes, more than %d", store.ErrTooLarge, len(state), store.MaxState)
	}
	stored, err := s.of.openings.Shorten(ctx, state)
	if err != nil {
		return 0, err
	}
	value := pack(stored)
	if room := s.of.room(); len(value) > room {
		return 0, fmt.Errorf("%w: %d bytes, %d compressed, of which a message takes %d: raise the server's max_payload", store.ErrTooLarge, len(state), len(value), room)
	}
	err = s.of.retryAfterCut(ctx, func(ctx context.Context) (err error) { // what it had stored is found below
		if revision == 0 {
			next, err = s.of.sessions.Create(ctx, key, value)
		} else {
			next, err = s.of.sessions.Update(ctx, key, value, revision)
		}
		return err
	})
	if !isStale(err) {
		return next, err
	}
	now, newest, err := s.get(ctx, key)
	switch {
	case err == nil && bytes.Equal(now, state):
		return newest, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	}
	return 0, store.ErrConflict
}

func (s sessions) Delete(ctx context.Context, id string, revision uint64) error {
	key, err := encoded(id)
	if err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	return named(id, s.delete(ctx, key, revision))
}

func (s sessions) delete(ctx context.Context, key string, revision uint64) error {
	e, err := s.of.sessions.Get(ctx, key)
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return err
	case revision == 0:
		return s.of.sessions.Delete(ctx, key)
	case revision != e.Revision():
		return store.ErrConflict
	}
	if err := s.of.sessions.Delete(ctx, key, jetstream.LastRevision(revision)); !isStale(err) {
		return err
	}
	return store.ErrConflict
}

func (s sessions) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		w, err := s.of.sessions.WatchAll(ctx, jetstream.IgnoreDeletes(), jetstream.MetaOnly())
		if err != nil {
			yield("", fmt.Errorf("natsstore: sessions: %w", unavailable(err)))
			return
		}
		defer w.Stop() // an error would say that the connection is gone
		for {
			select {
			case <-ctx.Done():
				yield("", fmt.Errorf("natsstore: sessions: %w", ctx.Err()))
				return
			case e, ok := <-w.Updates():
				if !ok {
					yield("", fmt.Errorf("natsstore: sessions: %w", unavailable(cmp.Or(ctx.Err(), errEnded))))
					return
				}
				if e == nil { // these were all
					return
				}
				id, err := base64.RawURLEncoding.DecodeString(e.Key())
				if err == nil && !yield(string(id), nil) { // else it is not of ours
					return
				}
			}
		}
	}
}
