package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mcphybrid/mcphybrid/store"
)

type sessions struct{ *Shared }

// Sessions returns the sessions that are shared.
func (s *Shared) Sessions() store.Sessions { return sessions{s} }

// named returns err with the id of a session, or nil for nil.
func named(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: session %.256q: %w", id, unavailable(err))
}

func (s sessions) Get(ctx context.Context, id string) ([]byte, uint64, error) {
	state, revision, err := s.get(ctx, id)
	return state, revision, named(id, err)
}

// maxStored is how many bytes may stand in the place of a state: see package openings.
const maxStored = store.MaxState + 64

func (s sessions) get(ctx context.Context, id string) (state []byte, revision uint64, err error) {
	if err := store.CheckID(id); err != nil {
		return nil, 0, err
	}
	var n int
	err = s.pool.QueryRow(ctx, "SELECT "+atMost("state", maxStored)+", revision FROM "+s.schema+".shared_sessions WHERE id = $1::text AND "+s.fresh(), s.mode, id).Scan(&state, &n, &revision)
	if isNone(err) {
		return nil, 0, store.ErrNotFound
	}
	if err = cmp.Or(err, tooLarge(n, maxStored)); err == nil {
		state, err = s.openings.Lengthen(ctx, state)
	}
	if err != nil {
		return nil, 0, err
	}
	return state, revision, nil
}

func (s sessions) Put(ctx context.Context, id string, state []byte, revision uint64) (uint64, error) {
	next, err := s.put(ctx, id, state, revision)
	return next, named(id, err)
}

// sweepEvery is how many calls of Put there are for one that removes expired sessions,
// sweepMost how many it removes.
const (
	sweepEvery = 100
	sweepMost  = 1000
)

func (s sessions) put(ctx context.Context, id string, state []byte, revision uint64) (next uint64, err error) {
	if err := store.CheckID(id); err != nil {
		return 0, err
	}
	if len(state) > store.MaxState {
		return 0, fmt.Errorf("%w: %d bytes, more than %d", store.ErrTooLarge, len(state), store.MaxState)
	}
	if state == nil {
		state = []byte{} // not NULL
	}
	stored, err := s.openings.Shorten(ctx, state)
	if err != nil {
		return 0, err
	}
	err = retryAborted(ctx, func(ctx context.Context) error { // who aborted it has put, or will: then there is no row
		if revision == 0 {
			return s.pool.QueryRow(ctx, fmt.Sprintf(`INSERT INTO %s.shared_sessions (id, revision, put, state) VALUES ($1::text, %s, now(), $2::bytea)
			ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, put = now(), state = excluded.state WHERE NOT (%s) RETURNING revision`,
				s.schema, s.revision(), s.fresh()), s.mode, id, stored).Scan(&next)
		}
		return s.pool.QueryRow(ctx, fmt.Sprintf(`UPDATE %s.shared_sessions SET revision = %s, put = now(), state = $2::bytea
			WHERE id = $1::text AND revision = $3::bigint AND %s RETURNING revision`,
			s.schema, s.revision(), s.fresh()), s.mode, id, stored, int64(revision)).Scan(&next)
	})
	if isNone(err) {
		now, newest, err := s.get(ctx, id)
		switch {
		case err == nil && bytes.Equal(now, state):
			return newest, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		return 0, store.ErrConflict
	}
	if err == nil && rand.N(sweepEvery) == 0 {
		_ = s.sweep(ctx) // the next one removes what is left
	}
	return next, err
}

// sweep removes sessions that have expired.
func (s sessions) sweep(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, fmt.Sprintf(`DELETE FROM %s.shared_sessions WHERE id = ANY (ARRAY (
		SELECT id FROM %[1]s.shared_sessions WHERE NOT (%s) ORDER BY put LIMIT %d FOR UPDATE SKIP LOCKED))`, s.schema, s.fresh(), sweepMost), s.mode)
	return err
}

func (s sessions) Delete(ctx context.Context, id string, revision uint64) error {
	return named(id, s.delete(ctx, id, revision))
}

func (s sessions) delete(ctx context.Context, id string, revision uint64) error {
	if err := store.CheckID(id); err != nil {
		return err
	}
	var tag pgconn.CommandTag
	err := retryAborted(ctx, func(ctx context.Context) (err error) {
		tag, err = s.pool.Exec(ctx, "DELETE FROM "+s.schema+".shared_sessions WHERE id = $1::text AND ($2::bigint = 0 OR revision = $2::bigint)", s.mode, id, int64(revision))
		return err
	})
	if err != nil || tag.RowsAffected() > 0 || revision == 0 {
		return err
	}
	switch _, _, err = s.get(ctx, id); err {
	case nil:
		return store.ErrConflict
	case store.ErrNotFound:
		return nil
	}
	return err
}

func (s sessions) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		rows, err := s.pool.Query(ctx, "SELECT id FROM "+s.schema+".shared_sessions WHERE "+s.fresh(), s.mode)
		if err == nil {
			defer rows.Close()
			for rows.Next() {
				id, err := pgx.RowTo[string](rows)
				if err != nil || !yield(id, nil) {
					break
				}
			}
			err = rows.Err()
		}
		if err != nil {
			yield("", fmt.Errorf("pgstore: sessions: %w", unavailable(err)))
		}
	}
}
