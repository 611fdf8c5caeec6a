package pgstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Options configures a [Store]. The zero value is the default configuration.
type Options struct {
	// Schema is the schema of all tables. New creates it if it is missing. If
	// empty, it is "mcphybrid".
	Schema string

	// Config is the text search configuration that splits texts and queries into
	// words. It can't change once the schema exists. If empty, it is "english".
	Config string

	// IndexAbove is the number of records above which a scope gets indexes. Below
	// it, a search reads all records and is exact. Above it, a search by vector
	// without Servers uses an HNSW index, which may miss a record. If zero, it is
	// [DefaultIndexAbove]. If negative, there are no indexes.
	IndexAbove int

	// M and EfConstruction configure new HNSW indexes. EfSearch is the least number
	// of candidates in a search of one. If zero, they are 16, 64 and 100.
	M, EfConstruction, EfSearch int
}

// DefaultIndexAbove is the size at which reading all vectors of 384 dimensions takes
// a few dozen milliseconds.
const DefaultIndexAbove = 10_000

// A Store is a [vector.Store] in a PostgreSQL database. It is safe for concurrent use.
// Any number of Stores in any processes may use the same schema.
type Store struct {
	pool   *pgxpool.Pool
	opts   Options
	mode   pgx.QueryExecMode // how pgx sends queries
	schema string            // quoted
	vector string            // the schema of the type vector; quoted
	config string            // the text search configuration, as SQL

	iterative bool // HNSW scans go on if too many candidates were filtered out; since pgvector 0.8

	mu     sync.Mutex
	states map[string]knownState // by table; guarded by mu
}

var _ vector.Store = (*Store)(nil)

// New returns a store in the database of pool. The caller keeps pool and closes it
// after the store. New creates the extension vector, the schema and its tables if
// they are missing.
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
	// Each scope has its own statements: preparing them would fill every connection
	// with statements that are rarely used again.
	s.mode = execMode(pool)
	if err := retryAborted(ctx, s.migrate); err != nil {
		return nil, fmt.Errorf("pgstore: schema %q: %w", s.opts.Schema, err)
	}
	return s, nil
}

// tableID returns the part of a scope's table name after "tools_". It is a hash,
// because a scope's name may be any string of any length.
func tableID(scope string) string {
	sum := sha256.Sum256([]byte(scope))
	return hex.EncodeToString(sum[:20])
}

// table returns the table of a scope, qualified and quoted.
func (s *Store) table(scope string) string { return s.schema + ".tools_" + tableID(scope) }

// maxTries is how often a transaction runs that other ones abort. The first pause is
// firstPause; it doubles each time. All pauses together take about ten seconds.
const (
	maxTries   = 10
	firstPause = 10 * time.Millisecond
)

// retryAborted calls do until no other transaction aborts it. do begins its own transaction
// each time.
func retryAborted(ctx context.Context, do func(context.Context) error) error {
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

// The SQLSTATE codes that the store handles.
const (
	deadlockDetected     = "40P01"
	serializationFailure = "40001"
	dataException        = "22000" // pgvector: different dimensions
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
)

// codeOf returns the SQLSTATE of an error, or "".
func codeOf(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// A tableState says which relations of a scope exist.
type tableState struct {
	table bool // if false, the others are false too
	words bool // the index of the words
	near  bool // the index of the vectors
}

// A knownState is the remembered state of an existing table.
type knownState struct {
	tableState
	until time.Time
}

// The store trusts a state for stateAge. An outdated state makes a search slow, never
// wrong. maxStates bounds the memory.
const (
	stateAge  = time.Minute
	maxStates = 10_000
)

// state returns which relations of a scope exist. It never remembers that a scope is
// missing.
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

// Get implements [vector.Store].
func (s *Store) Get(ctx context.Context, scope string, ids []string) (found []vector.Record, err error) {
	table := s.table(scope)
	err = s.ifThere(ctx, table, func(tableState) error {
		if found, err = s.get(ctx, table, ids); codeOf(err) == undefinedColumn {
			if err := s.widen(ctx, scope); err != nil {
				return err
			}
			found, err = s.get(ctx, table, ids)
		}
		return err
	})
	return found, of(scope, err)
}

func (s *Store) get(ctx context.Context, table string, ids []string) ([]vector.Record, error) {
	rows, err := s.pool.Query(ctx, "SELECT id, sum, server, embedding::text, description, schema_json FROM "+table+" WHERE id = ANY ($1::text[])", s.mode, storables(ids))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r vector.Record, err error) {
		var v *string
		if err = row.Scan(&r.ID, &r.Sum, &r.Server, &v, &r.Description, &r.Schema); err == nil && v != nil {
			// pgvector writes vectors as JSON does.
			err = json.Unmarshal([]byte(*v), &r.Vector)
		}
		return r, err
	})
}

// ifThere calls do if the table exists. It is no error if another process drops the
// table meanwhile.
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
	table := s.table(scope)
	err := s.ifThere(ctx, table, func(tableState) error {
		return retryAborted(ctx, func(ctx context.Context) error {
			// Lock rows in the order of their IDs, as Upsert does.
			_, err := s.pool.Exec(ctx, fmt.Sprintf(`DELETE FROM %s t
				USING (SELECT id FROM %[1]s WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE) gone
				WHERE t.id = gone.id`, table), s.mode, storables(ids))
			return err
		})
	})
	return of(scope, err)
}

// Drop implements [vector.Store].
func (s *Store) Drop(ctx context.Context, scope string) error {
	table := s.table(scope)
	err := retryAborted(ctx, func(ctx context.Context) error {
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

// of adds the name of the scope to an error.
func of(scope string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: scope %q: %w", scope, err)
}

// storable reports whether PostgreSQL can store s as text.
func storable(s string) bool {
	return strings.ToValidUTF8(s, "") == s && !strings.Contains(s, "\x00")
}

// storables returns the strings that PostgreSQL can store. No record has another ID.
func storables(list []string) []string {
	kept := []string{} // not NULL
	for _, s := range list {
		if storable(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// clean returns s without characters that PostgreSQL can't store.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, " "), "\x00", " ")
}
