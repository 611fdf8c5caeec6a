package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/mcphybrid/mcphybrid/vector"
)

// maxBatch is how many records one statement writes. maxBatchNumbers is how many
// elements of vectors it writes, at about ten bytes each.
const (
	maxBatch        = 500
	maxBatchNumbers = 1 << 20
)

// Upsert implements [vector.Store]. If tools repeats an ID, the last record wins. Each
// batch is a transaction.
func (s *Store) Upsert(ctx context.Context, scope string, tools []vector.Record) error {
	return of(scope, s.upsert(ctx, scope, tools))
}

func (s *Store) upsert(ctx context.Context, scope string, tools []vector.Record) error {
	tools, dims, err := checked(tools)
	if err != nil || len(tools) == 0 {
		return cmp.Or(err, ctx.Err())
	}
	size := max(1, min(maxBatch, maxBatchNumbers/max(1, dims)))
	for batch := range slices.Chunk(tools, size) {
		var b columns
		for _, t := range batch {
			b.add(t)
		}
		if err := retryAborted(ctx, func(ctx context.Context) error { return s.write(ctx, scope, dims, &b) }); err != nil {
			return err
		}
	}
	if err := s.index(ctx, scope); err != nil {
		return fmt.Errorf("indexing: %w", err)
	}
	return nil
}

// checked returns the records sorted by ID without duplicates, and the length of their
// vectors, or 0 if there are none. All transactions lock rows in this order, which
// prevents deadlocks.
func checked(tools []vector.Record) ([]vector.Record, int, error) {
	dims := 0
	last := make(map[string]vector.Record, len(tools))
	for _, t := range tools {
		if !storable(t.ID) || !storable(t.Sum) || !storable(t.Server) {
			return nil, 0, fmt.Errorf("tool %q: PostgreSQL can't keep its ID, sum or server: they must be UTF-8 without zero bytes", t.ID)
		}
		if t.Vector != nil {
			var err error
			dims = cmp.Or(dims, len(t.Vector))
			if len(t.Vector) != dims {
				return nil, 0, fmt.Errorf("tool %q: %w: %d, not %d", t.ID, vector.ErrDimensions, len(t.Vector), dims)
			}
			if t.Vector, err = vector.Unit(t.Vector); err != nil {
				return nil, 0, fmt.Errorf("tool %q: its vector: %w", t.ID, err)
			}
		}
		last[t.ID] = t
	}
	list := make([]vector.Record, 0, len(last))
	for _, t := range last {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b vector.Record) int { return cmp.Compare(a.ID, b.ID) })
	return list, dims, nil
}

// literal formats a vector for pgvector, such as [1,0.5,-2e-7]. It is sent as text, so
// the pool's connections need no registered type.
func literal(v []float32) string {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

// maxText is how many bytes of a text are searchable. A tsvector is limited to 1 MiB.
const maxText = 256 << 10

// columns holds records by column: index i of each slice belongs to record i.
type columns struct {
	ids, sums, servers, words, descriptions, schemas []string
	vectors                                          []*string
}

func (c *columns) add(t vector.Record) {
	c.ids, c.sums, c.servers = append(c.ids, t.ID), append(c.sums, t.Sum), append(c.servers, t.Server)
	c.words = append(c.words, separated(t.Text[:min(len(t.Text), maxText)]))
	c.descriptions, c.schemas = append(c.descriptions, clean(t.Description)), append(c.schemas, clean(t.Schema))
	var vector *string
	if t.Vector != nil {
		vector = new(literal(t.Vector))
	}
	c.vectors = append(c.vectors, vector)
}

// errUnprepared means that a scope is missing or has other dimensions.
var errUnprepared = errors.New("the scope is dropped again and again")

// write writes records. Writers share a lock on the scope's row in scopes; changes of
// the scope itself hold it exclusively. Everyone takes this lock first.
func (s *Store) write(ctx context.Context, scope string, dims int, c *columns) error {
	for range maxTries {
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var have int
			err := tx.QueryRow(ctx, "SELECT coalesce(dimensions, 0) FROM "+s.schema+".scopes WHERE id = $1::text FOR KEY SHARE", s.mode, tableID(scope)).Scan(&have)
			switch {
			case errors.Is(err, pgx.ErrNoRows) || err == nil && dims != 0 && dims != have:
				return errUnprepared
			case err != nil:
				return err
			}
			_, err = tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (id, sum, server, words, embedding, description, schema_json)
				SELECT id, sum, server, words, embedding::%s.vector, description, schema_json
				FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS new (id, sum, server, words, embedding, description, schema_json)
				ON CONFLICT (id) DO UPDATE SET sum = excluded.sum, server = excluded.server, words = excluded.words, embedding = excluded.embedding,
					description = excluded.description, schema_json = excluded.schema_json`,
				s.table(scope), s.vector), s.mode, c.ids, c.sums, c.servers, c.words, c.vectors, c.descriptions, c.schemas)
			return err
		})
		if codeOf(err) == undefinedColumn {
			if err := s.widen(ctx, scope); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, errUnprepared) {
			return err
		}
		if err := s.prepare(ctx, scope, dims); err != nil {
			return err
		}
	}
	return errUnprepared
}

// widen adds the columns that tables of earlier versions lack. No migration does that:
// it would lock the tables of all scopes at once, and programs of the earlier version
// could not start while it is replaced.
func (s *Store) widen(ctx context.Context, scope string) error {
	return retryAborted(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "ALTER TABLE IF EXISTS "+s.table(scope)+
			" ADD COLUMN IF NOT EXISTS description text NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS schema_json text NOT NULL DEFAULT ''", s.mode)
		return err
	})
}

// prepare creates a scope if it is missing. If dims is not 0, it sets the scope's
// dimensions.
func (s *Store) prepare(ctx context.Context, scope string, dims int) error {
	table, id := s.table(scope), tableID(scope)
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Concurrent callers wait here.
		if _, err := tx.Exec(ctx, "INSERT INTO "+s.schema+".scopes (id, scope) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING", s.mode, id, clean(scope)); err != nil {
			return err
		}
		var have int
		err := tx.QueryRow(ctx, "SELECT coalesce(dimensions, 0) FROM "+s.schema+".scopes WHERE id = $1::text FOR UPDATE", s.mode, id).Scan(&have)
		if errors.Is(err, pgx.ErrNoRows) { // dropped meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
			id          text COLLATE "C" PRIMARY KEY,
			sum         text NOT NULL,
			server      text NOT NULL,
			words       text NOT NULL,
			embedding   %s.vector,
			terms       tsvector NOT NULL GENERATED ALWAYS AS (to_tsvector(%s, words)) STORED,
			description text NOT NULL DEFAULT '',
			schema_json text NOT NULL DEFAULT ''
		)`, table, s.vector, s.config), s.mode)
		if err != nil || dims == 0 || dims == have {
			return err
		}
		if have != 0 {
			var used bool
			if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+table+" WHERE embedding IS NOT NULL)", s.mode).Scan(&used); err != nil {
				return err
			}
			if used {
				return fmt.Errorf("%w: %d, not %d", vector.ErrDimensions, dims, have)
			}
			if _, err := tx.Exec(ctx, "DROP INDEX IF EXISTS "+table+"_near", s.mode); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "UPDATE "+s.schema+".scopes SET dimensions = $2::integer WHERE id = $1::text", s.mode, id, dims)
		return err
	})
}

// maxIndexedDimensions is the greatest length of vectors in an HNSW index of pgvector.
const maxIndexedDimensions = 2000

// index creates the indexes of a scope that has become large.
func (s *Store) index(ctx context.Context, scope string) error {
	if s.opts.IndexAbove < 0 {
		return nil
	}
	table := s.table(scope)
	return s.ifThere(ctx, table, func(st tableState) error {
		if st.near {
			return nil
		}
		var n int
		if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM (SELECT FROM "+table+" LIMIT $1::bigint) AS firsts", s.mode, int64(s.opts.IndexAbove)+1).Scan(&n); err != nil {
			return err
		}
		if n <= s.opts.IndexAbove {
			return nil
		}
		defer s.forget(table)
		return retryAborted(ctx, func(ctx context.Context) error { return s.makeIndexes(ctx, scope) })
	})
}

func (s *Store) makeIndexes(ctx context.Context, scope string) error {
	table, name := s.table(scope), "tools_"+tableID(scope)
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var dims int
		err := tx.QueryRow(ctx, "SELECT coalesce(dimensions, 0) FROM "+s.schema+".scopes WHERE id = $1::text FOR UPDATE", s.mode, tableID(scope)).Scan(&dims)
		if errors.Is(err, pgx.ErrNoRows) { // dropped meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s_words ON %s USING gin (terms)", name, table), s.mode); err != nil {
			return err
		}
		if dims == 0 || dims > maxIndexedDimensions {
			return nil
		}
		_, err = tx.Exec(ctx, fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s_near ON %s USING hnsw ((embedding::%s.vector(%d)) %[3]s.vector_cosine_ops) WITH (m = %[5]d, ef_construction = %d)",
			name, table, s.vector, dims, s.opts.M, s.opts.EfConstruction), s.mode)
		return err
	})
}
