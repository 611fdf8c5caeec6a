package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// A document is a [store.Watched].
type document struct {
	of   *Shared
	name string
	err  error // why the name is not valid, or nil

	parts
}

// Document returns the document with that name, which must be valid as the id of a
// session must be.
func (s *Shared) Document(name string) store.Watched {
	err := store.CheckID(name)
	return &document{s, name, err, parts{s, name, err}}
}

func (d *document) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s the document %.256q: %w", doing, d.name, unavailable(err))
}

// within returns ctx with the time limit for documents.
func (d *document) within(ctx context.Context) (context.Context, func()) {
	return context.WithTimeout(ctx, d.of.opts.Timeout)
}

// Load implements [store.Watched].
func (d *document) Load() ([]byte, error) {
	ctx, cancel := d.within(context.Background())
	defer cancel()
	data, _, err := d.load(ctx)
	return data, d.failed("loading", err)
}

// load returns the document and its revision, which is 0 if nothing was stored yet.
func (d *document) load(ctx context.Context) (data []byte, revision int64, err error) {
	if d.err != nil {
		return nil, 0, d.err
	}
	var n int
	err = d.of.pool.QueryRow(ctx, "SELECT "+atMost("data", store.MaxDocument)+", revision FROM "+d.of.schema+".shared_documents WHERE name = $1::text", d.of.mode, d.name).Scan(&data, &n, &revision)
	if isNone(err) {
		err = nil
	}
	return data, revision, cmp.Or(err, tooLarge(n, store.MaxDocument))
}

// Save implements [store.Watched].
func (d *document) Save(data []byte) error {
	ctx, cancel := d.within(context.Background())
	defer cancel()
	if data == nil {
		data = []byte{}
	}
	_, err := d.store(ctx, data, "ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, data = excluded.data")
	return d.failed("saving", err)
}

// Update implements [store.Watched].
func (d *document) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	ctx, cancel := d.within(ctx)
	defer cancel()
	for {
		old, revision, err := d.load(ctx)
		if err != nil {
			return d.failed("loading", err)
		}
		data, err := change(bytes.Clone(old))
		if err != nil {
			return err
		}
		if (data == nil) == (old == nil) && bytes.Equal(data, old) {
			return nil
		}
		unless := "ON CONFLICT (name) DO NOTHING"
		if revision != 0 {
			unless = fmt.Sprintf("ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, data = excluded.data WHERE d.revision = %d", revision)
		}
		if stored, err := d.store(ctx, data, unless); err != nil || stored {
			return d.failed("saving", err)
		}
	}
}

// store stores data, and tells those who watch. It reports whether it did, as unless may
// keep it from it.
func (d *document) store(ctx context.Context, data []byte, unless string) (stored bool, err error) {
	if d.err != nil {
		return false, d.err
	}
	if len(data) > store.MaxDocument {
		return false, fmt.Errorf("%w: %d bytes, more than %d", store.ErrTooLarge, len(data), store.MaxDocument)
	}
	err = retryAborted(ctx, func(ctx context.Context) error {
		return d.of.pool.QueryRow(ctx, fmt.Sprintf(`WITH stored AS (
				INSERT INTO %s.shared_documents AS d (name, revision, data) VALUES ($1::text, %s, $2::bytea) %s RETURNING name
			) SELECT pg_notify($3::text, name) IS NOT NULL FROM stored`, d.of.schema, d.of.revision(), unless),
			d.of.mode, d.name, data, d.of.channel).Scan(&stored)
	})
	if isNone(err) {
		return false, nil
	}
	return err == nil, err
}

// Watch implements [store.Watched]. All that watch share one connection, which is not of the pool.
func (d *document) Watch(ctx context.Context, changed func()) error {
	if d.err != nil {
		return d.failed("watching", d.err)
	}
	told, stop := d.of.listener.watch(d.name)
	defer stop()
	seen := int64(-1)
	for {
		next := d.of.opts.Poll
		revision, err := d.revision(ctx)
		switch {
		case err != nil: // the database can't be reached, unless ctx has ended
			next = min(next, time.Second)
		case revision != seen:
			seen = revision
			changed()
		}
		select {
		case <-told:
		case <-time.After(next):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// revision returns the document's revision, 0 if nothing was stored yet.
func (d *document) revision(ctx context.Context) (revision int64, err error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	err = d.of.pool.QueryRow(ctx, "SELECT coalesce(max(revision), 0) FROM "+d.of.schema+".shared_documents WHERE name = $1::text", d.of.mode, d.name).Scan(&revision)
	return revision, err
}
