package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"

	"github.com/jackc/puddle/v2"
	"github.com/mcphybrid/mcphybrid/internal/lease"
	"github.com/mcphybrid/mcphybrid/store"
)

type leases struct{ *Shared }

// Leases returns the leases that are shared. They take no connection of the pool while they
// are held. The database's clock alone says when one ends.
func (s *Shared) Leases() store.Leases { return leases{s} }

// Lease implements [store.Leases].
func (s leases) Lease(ctx context.Context, id string) (context.Context, func(), error) {
	if err := store.CheckID(id); err != nil {
		return nil, nil, fmt.Errorf("pgstore: lease: %w", err)
	}
	held, release, err := s.waiting.Hold(ctx, id, &claim{s.Shared, id, rand.Text()}, s.opts.LeaseTime)
	if err != nil {
		if !lease.IsHeld(err) {
			err = unavailable(err)
		}
		return nil, nil, fmt.Errorf("pgstore: lease %.256q: %w", id, err)
	}
	return held, release, nil
}

// A claim is a row of shared_leases that one holder wants.
type claim struct {
	of     *Shared
	id     string
	holder string
}

// Take implements [lease.Claim].
func (c *claim) Take(ctx context.Context) (taken bool, err error) {
	if mathrand.N(sweepEvery) == 0 {
		_ = c.of.sweepLeases(ctx) // the next one removes what is left
	}
	return c.ask(ctx, fmt.Sprintf(`INSERT INTO %s.shared_leases AS l (id, holder, until) VALUES ($1::text, $2::text, %s)
		ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, until = excluded.until WHERE l.until <= clock_timestamp() RETURNING true`, c.of.schema, c.until()))
}

// Renew implements [lease.Claim].
func (c *claim) Renew(ctx context.Context) (kept bool, err error) {
	return c.ask(ctx, fmt.Sprintf("UPDATE %s.shared_leases SET until = %s WHERE id = $1::text AND holder = $2::text RETURNING true", c.of.schema, c.until()))
}

// Free implements [lease.Claim]. It ends when the pool is closed.
func (c *claim) Free(ctx context.Context) error {
	_, err := c.ask(ctx, fmt.Sprintf("DELETE FROM %s.shared_leases WHERE id = $1::text AND holder = $2::text RETURNING true", c.of.schema))
	if errors.Is(err, puddle.ErrClosedPool) {
		return nil
	}
	return err
}

// until is the SQL of the time when a lease that is taken now ends.
func (c *claim) until() string {
	return fmt.Sprintf("clock_timestamp() + interval '%d milliseconds'", c.of.opts.LeaseTime.Milliseconds())
}

// ask runs a statement, and reports whether it returned a row. It runs it again where the
// transactions of the database are isolated so strictly that others' abort it.
func (c *claim) ask(ctx context.Context, statement string) (done bool, err error) {
	err = retryAborted(ctx, func(ctx context.Context) error {
		return c.of.pool.QueryRow(ctx, statement, c.of.mode, c.id, c.holder).Scan(&done)
	})
	if isNone(err) {
		return false, nil
	}
	return done, err
}

// sweepLeases removes leases that have ended, of holders that died.
func (s *Shared) sweepLeases(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, fmt.Sprintf(`DELETE FROM %s.shared_leases WHERE id = ANY (ARRAY (
		SELECT id FROM %[1]s.shared_leases WHERE until < clock_timestamp() LIMIT %d FOR UPDATE SKIP LOCKED))`, s.schema, sweepMost), s.mode)
	return err
}
