package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// parts are [store.Parts] of a document or, if owner is "", of states.
type parts struct {
	of    *Shared
	owner string
	err   error // why owner is not valid, or nil
}

// Parts returns the parts of states, for Options.StateParts. What is not put again is kept two
// hours longer than sessions are.
func (s *Shared) Parts() store.Parts { return &parts{of: s} }

// failed returns err with the key of a part, or nil for nil.
func (p *parts) failed(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s the part %.64q: %w", doing, key, unavailable(err))
}

func (p *parts) check(key string) error {
	if p.err == nil && !store.IsKey(key) {
		return errors.New("it is no key of a part")
	}
	return p.err
}

// Put implements [store.Parts].
func (p *parts) Put(key string, part []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.of.opts.Timeout)
	defer cancel()
	return p.failed("putting", key, p.put(ctx, key, part))
}

func (p *parts) put(ctx context.Context, key string, part []byte) error {
	if err := p.check(key); err != nil {
		return err
	}
	if len(part) > store.MaxDocument {
		return fmt.Errorf("%w: %d bytes, more than %d", store.ErrTooLarge, len(part), store.MaxDocument)
	}
	table := p.of.schema + ".shared_parts"
	if part == nil {
		_, err := p.of.pool.Exec(ctx, "DELETE FROM "+table+" WHERE owner = $1::text AND key = $2::text", p.of.mode, p.owner, key)
		return err
	}
	err := retryAborted(ctx, func(ctx context.Context) error {
		_, err := p.of.pool.Exec(ctx, "INSERT INTO "+table+" AS p (owner, key, put, data) VALUES ($1::text, $2::text, now(), $3::bytea) ON CONFLICT (owner, key) DO UPDATE SET put = now(), "+
			"data = CASE WHEN p.data = excluded.data THEN p.data ELSE excluded.data END", // what is right is not written again
			p.of.mode, p.owner, key, part)
		return err
	})
	if err == nil && p.owner == "" && rand.N(sweepEvery) == 0 {
		_ = p.sweep(ctx) // the next one removes what is left
	}
	return err
}

// sweep removes parts to which no state refers that has not expired.
func (p *parts) sweep(ctx context.Context) error {
	if p.of.opts.Expiry < 0 {
		return nil
	}
	_, err := p.of.pool.Exec(ctx, fmt.Sprintf(`DELETE FROM %s.shared_parts WHERE owner = '' AND key = ANY (ARRAY (
		SELECT key FROM %[1]s.shared_parts WHERE owner = '' AND put < now() - interval '%d milliseconds' ORDER BY put LIMIT %d FOR UPDATE SKIP LOCKED))`,
		p.of.schema, (p.of.opts.Expiry+2*time.Hour).Milliseconds(), sweepMost), p.of.mode)
	return err
}

// Get implements [store.Parts].
func (p *parts) Get(key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.of.opts.Timeout)
	defer cancel()
	part, err := p.get(ctx, key)
	return part, p.failed("getting", key, err)
}

func (p *parts) get(ctx context.Context, key string) (part []byte, err error) {
	if err = p.check(key); err == nil {
		var n int
		err = p.of.pool.QueryRow(ctx, "SELECT "+atMost("data", store.MaxDocument)+" FROM "+p.of.schema+".shared_parts WHERE owner = $1::text AND key = $2::text", p.of.mode, p.owner, key).Scan(&part, &n)
		err = cmp.Or(err, tooLarge(n, store.MaxDocument))
	}
	if isNone(err) {
		return nil, nil
	}
	return part, err
}

// PutOpening implements [openings.Keeper].
func (p *parts) PutOpening(ctx context.Context, key string, opening []byte) error {
	return p.put(ctx, key, opening)
}

// GetOpening implements [openings.Keeper].
func (p *parts) GetOpening(ctx context.Context, key string) ([]byte, error) { return p.get(ctx, key) }
