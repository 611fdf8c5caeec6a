package pgstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mcphybrid/mcphybrid/vector"
)

// Options are how a [Store] uses its database. The zero value is the default.
type Options struct {
	// Schema is where all tables are. If it is not there, it is made. If empty,
	// "mcphybrid".
	Schema string

	// Config is the text search configuration by which texts and queries are cut
	// into words. A schema has one for ever. If empty, "english".
	Config string

	// IndexAbove is the number of tools above which a scope gets indexes. With
	// fewer of them each search reads all, which is exact; above it, searches by
	// meaning that are not narrowed to some servers ask an HNSW index, which may
	// miss one. If zero, [DefaultIndexAbove]. If negative, no scope does.
	IndexAbove int

	// M and EfConstruction are those of HNSW indexes to be made, EfSearch is the
	// least number of candidates in a search of one. If zero, 16, 64 and 100.
	M, EfConstruction, EfSearch int
}

// DefaultIndexAbove is where reading all vectors of 384 dimensions takes some
// ten milliseconds.
const DefaultIndexAbove = 10_000

// A Store is a [vector.Store] in a PostgreSQL database. Its methods may
// be called concurrently, and there may be any number of Stores, in any
// processes, for the same schema.
type Store struct {
	pool   *pgxpool.Pool
	opts   Options
	mode   pgx.QueryExecMode // of all that has to be said with each query
	schema string            // quoted
	vector string            // the schema of the type vector; quoted
	config string            // the text search configuration, as SQL

	iterative bool // HNSW indexes go on where too many candidates are gone: pgvector 0.8

	mu     sync.Mutex
	states map[string]knownState // by table; guarded by mu
}

var _ vector.Store = (*Store)(nil)

// New returns a store in the database of pool, which stays the caller's. It
// makes what is missing there: the extension vector, the schema and its tables.
func New(ctx context.Context, pool *pgxpool.Pool, opts *Options) (*Store, error) {
	s := &Store{pool: pool, states: make(map[string]knownState)}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Schema = cmp.Or(s.opts.Schema, "mcphybrid")
	s.opts.Config = cmp.Or(s.opts.Config, "english")
	s.opts.IndexAbove = cmp.Or(s.opts.IndexAbove, DefaultIndexAbove)
	s.opts.M = cmp.Or(s.opts.M, 16)
	s.opts.EfConstruction = cmp.Or(s.opts.EfConstruction, 64)
	s.opts.EfSearch = cmp.Or(s.opts.EfSearch, 100)
	s.schema = pgx.Identifier{s.opts.Schema}.Sanitize()
	// The statements of each scope are others: to prepare them would fill every
	// connection with statements that are hardly used again.
	s.mode = pgx.QueryExecModeExec
	if pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		s.mode = pgx.QueryExecModeSimpleProtocol
	}
	if err := s.again(ctx, s.migrate); err != nil {
		return nil, fmt.Errorf("pgstore: schema %q: %w", s.opts.Schema, err)
	}
	return s, nil
}

// tableID returns what the table of a scope is called after "tools_": names of
// scopes are anything and of any length, those of tables are not.
func tableID(scope string) string {
	sum := sha256.Sum256([]byte(scope))
	return hex.EncodeToString(sum[:20])
}

// table returns the table of a scope, qualified and quoted.
func (s *Store) table(scope string) string { return s.schema + ".tools_" + tableID(scope) }

// maxTries is how often a transaction is begun that another one stopped, and
// firstPause how long the pause before the second is; each further one is twice
// as long. Together they are some ten seconds.
const (
	maxTries   = 10
	firstPause = 10 * time.Millisecond
)

// again calls do until it is not stopped by another transaction. do begins one
// of its own each time.
func (s *Store) again(ctx context.Context, do func(context.Context) error) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := do(ctx)
		code := codeOf(err)
		if code != deadlockDetected && code != serializationFailure || try == maxTries {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause *= 2
	}
}

// The codes of errors that are told from others.
const (
	deadlockDetected     = "40P01"
	serializationFailure = "40001"
	dataException        = "22000" // pgvector: not the same dimensions
	undefinedTable       = "42P01"
)

// codeOf returns the SQLSTATE of an error, or "".
func codeOf(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// A tableState is what is there of a scope.
type tableState struct {
	table bool // nothing else is if it is not
	words bool // the index of the words
	near  bool // the index of the vectors
}

// A knownState is one of a table that is there.
type knownState struct {
	tableState
	until time.Time
}

// A state is believed for stateAge: to take an index for missing, or a missing
// one for there, is never wrong, only slow. maxStates bounds the memory.
const (
	stateAge  = time.Minute
	maxStates = 10_000
)

// state returns what is there of a scope. That there is nothing is never
// remembered.
func (s *Store) state(ctx context.Context, table string) (tableState, error) {
	s.mu.Lock()
	known, ok := s.states[table]
	s.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.tableState, ctx.Err()
	}
	var st tableState
	err := s.pool.QueryRow(ctx, "SELECT to_regclass($1::text) IS NOT NULL, to_regclass($2::text) IS NOT NULL, to_regclass($3::text) IS NOT NULL",
		s.mode, table, table+"_words", table+"_near").Scan(&st.table, &st.words, &st.near)
	if err != nil {
		return st, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, table)
	if st.table {
		if len(s.states) >= maxStates {
			clear(s.states)
		}
		s.states[table] = knownState{st, time.Now().Add(stateAge)}
	}
	return st, nil
}

func (s *Store) forget(table string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, table)
}

// Sums implements [vector.Store].
func (s *Store) Sums(ctx context.Context, scope string) (map[string]string, error) {
	sums := make(map[string]string)
	table := s.table(scope)
	err := s.ifThere(ctx, table, func(tableState) error {
		rows, err := s.pool.Query(ctx, "SELECT id, sum FROM "+table, s.mode)
		if err != nil {
			return err
		}
		var id, sum string
		_, err = pgx.ForEachRow(rows, []any{&id, &sum}, func() error {
			sums[id] = sum
			return nil
		})
		return err
	})
	return sums, of(scope, err)
}

// ifThere calls do unless there is no such table. That another process has
// dropped it meanwhile is no error.
func (s *Store) ifThere(ctx context.Context, table string, do func(tableState) error) error {
	st, err := s.state(ctx, table)
	if err != nil || !st.table {
		return err
	}
	err = do(st)
	if codeOf(err) == undefinedTable {
		s.forget(table)
		return ctx.Err()
	}
	return err
}

// Delete implements [vector.Store].
func (s *Store) Delete(ctx context.Context, scope string, ids []string) error {
	var kept []string
	for _, id := range ids {
		if storable(id) { // others can't be there
			kept = append(kept, id)
		}
	}
	table := s.table(scope)
	err := s.ifThere(ctx, table, func(tableState) error {
		return s.again(ctx, func(ctx context.Context) error {
			// Rows are locked in the order of their IDs, as by Upsert.
			_, err := s.pool.Exec(ctx, fmt.Sprintf(`DELETE FROM %s t
				USING (SELECT id FROM %[1]s WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE) gone
				WHERE t.id = gone.id`, table), s.mode, kept)
			return err
		})
	})
	return of(scope, err)
}

// Drop implements [vector.Store].
func (s *Store) Drop(ctx context.Context, scope string) error {
	table := s.table(scope)
	err := s.again(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "DELETE FROM "+s.schema+".scopes WHERE id = $1::text", s.mode, tableID(scope))
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			_, err = tx.Exec(ctx, "DROP TABLE IF EXISTS "+table, s.mode)
			return err
		})
	})
	s.forget(table)
	return of(scope, err)
}

// of names the scope of an error.
func of(scope string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: scope %q: %w", scope, err)
}

// storable reports whether PostgreSQL can keep s as text.
func storable(s string) bool {
	return strings.ToValidUTF8(s, "") == s && !strings.Contains(s, "\x00")
}

// clean returns s without what PostgreSQL can't keep.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, " "), "\x00", " ")
}
