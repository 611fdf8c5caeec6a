package pgstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mcphybrid/mcphybrid/internal/lease"
	"github.com/mcphybrid/mcphybrid/internal/openings"
)

// SharedOptions configure a [Shared]. The zero value is the default configuration.
type SharedOptions struct {
	// Schema is the schema of the tables. Share creates it if it is missing. If empty,
	// it is "mcphybrid". A [Store] may use the same one.
	Schema string

	// Expiry is how long a session is kept after it was put last. If 0, it is
	// [DefaultExpiry]. If negative, sessions are kept until they are deleted.
	Expiry time.Duration

	// Timeout is how long loading or saving a document may take. If 0, it is
	// [DefaultTimeout]. It must not be negative.
	Timeout time.Duration

	// Poll is how often Watch looks for changes by itself, as it has to if a pooler
	// gives each transaction another connection, or one was lost unnoticed. If 0, it is
	// [DefaultPoll]. It must not be negative.
	Poll time.Duration

	// LeaseTime is how long a lease is kept whose holder died or can't reach the database.
	// All processes should have the same. If 0, it is [DefaultLeaseTime]. It must not be
	// below a second.
	LeaseTime time.Duration
}

// The defaults of [SharedOptions].
const (
	DefaultExpiry  = 30 * 24 * time.Hour
	DefaultTimeout = 10 * time.Second
	DefaultPoll    = 10 * time.Second

	DefaultLeaseTime = lease.DefaultTime
)

// A Shared keeps what the replicas of a host share: sessions and documents. It is safe
// for concurrent use. Any number of them, in any processes, may use the same schema. It
// does not need pgvector.
type Shared struct {
	pool    *pgxpool.Pool
	opts    SharedOptions
	mode    pgx.QueryExecMode
	schema  string // quoted
	channel string // of notifications

	listener listener
	openings *openings.Openings
	waiting  lease.Queues
}

// Share returns what is shared in the database of pool. The caller keeps pool and closes
// it last. While documents are watched, there is one connection more. Share creates the schema
// and its tables if they are missing.
func Share(ctx context.Context, pool *pgxpool.Pool, opts *SharedOptions) (*Shared, error) {
	s := &Shared{pool: pool}
	s.listener = listener{of: s, watchers: make(map[chan struct{}]string)}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	o.Schema = cmp.Or(o.Schema, "mcphybrid")
	o.Expiry = cmp.Or(o.Expiry, DefaultExpiry)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	o.LeaseTime = cmp.Or(o.LeaseTime, DefaultLeaseTime)
	if o.Timeout < 0 || o.Poll < 0 {
		return nil, fmt.Errorf("pgstore: SharedOptions.Timeout is %v and Poll %v: they must not be below 0", o.Timeout, o.Poll)
	}
	if err := lease.Check(o.LeaseTime); err != nil {
		return nil, fmt.Errorf("pgstore: SharedOptions.%w", err)
	}
	s.mode = execMode(pool)
	s.schema = pgx.Identifier{o.Schema}.Sanitize()
	sum := sha256.Sum256([]byte(o.Schema))
	s.openings = openings.New(&parts{of: s})
	s.channel = "mcphybrid_" + hex.EncodeToString(sum[:12]) // a channel's name has 63 bytes at most
	if err := s.create(ctx); err != nil {
		return nil, fmt.Errorf("pgstore: schema %q: %w", o.Schema, err)
	}
	return s, nil
}

// execMode returns how pgx sends queries over pool: without statements that it prepares,
// so that a pooler may give each transaction another connection.
func execMode(pool *pgxpool.Pool) pgx.QueryExecMode {
	if pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return pgx.QueryExecModeSimpleProtocol
	}
	return pgx.QueryExecModeExec
}

// create makes what is missing. Several processes may call it at once.
func (s *Shared) create(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.mode, int64(migrationLock)); err != nil {
			return err
		}
		// Creating asks for rights, even if all is there.
		var schema, tables, leases bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text), to_regclass($2::text) IS NOT NULL, to_regclass($3::text) IS NOT NULL",
			s.mode, s.opts.Schema, s.schema+".shared_documents", s.schema+".shared_leases").Scan(&schema, &tables, &leases)
		if err != nil || tables && leases {
			return err
		}
		if tables {
			return s.createLeases(ctx, tx)
		}
		if !schema {
			if _, err := tx.Exec(ctx, "CREATE SCHEMA "+s.schema, s.mode); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`
			CREATE SEQUENCE %[1]s.shared_revisions;
			CREATE TABLE %[1]s.shared_sessions (
				id       text COLLATE "C" PRIMARY KEY,
				revision bigint NOT NULL,
				put      timestamptz NOT NULL,
				state    bytea NOT NULL
			);
			CREATE INDEX ON %[1]s.shared_sessions (put);
			CREATE TABLE %[1]s.shared_parts (
				owner text COLLATE "C",
				key   text COLLATE "C",
				put   timestamptz NOT NULL,
				data  bytea NOT NULL,
				PRIMARY KEY (owner, key)
			);
			CREATE INDEX ON %[1]s.shared_parts (put) WHERE owner = '';
			CREATE TABLE %[1]s.shared_documents (
				name     text COLLATE "C" PRIMARY KEY,
				revision bigint NOT NULL,
				data     bytea -- NULL if there is none
			)`, s.schema), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		return s.createLeases(ctx, tx)
	})
}

// createLeases makes the table that came after the others.
func (s *Shared) createLeases(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s.shared_leases (
			id     text COLLATE "C" PRIMARY KEY,
			holder text NOT NULL,
			until  timestamptz NOT NULL
		)`, s.schema), s.mode)
	return err
}

// revision is the SQL of a revision that nothing had before.
func (s *Shared) revision() string {
	return "nextval('" + strings.ReplaceAll(s.schema, "'", "''") + ".shared_revisions')"
}

// fresh is the SQL of whether a session of shared_sessions has not expired.
func (s *Shared) fresh() string {
	if s.opts.Expiry < 0 {
		return "true"
	}
	return fmt.Sprintf("shared_sessions.put > now() - interval '%d milliseconds'", s.opts.Expiry.Milliseconds())
}

// atMost is the SQL of a column, or NULL if it has more than most bytes, and of how many it has. Others may have
// written it.
func atMost(column string, most int) string {
	return fmt.Sprintf("CASE WHEN octet_length(%[1]s) <= %d THEN %[1]s END, coalesce(octet_length(%[1]s), 0)", column, most)
}

// tooLarge returns an error if a column has more than most bytes.
func tooLarge(n, most int) error {
	if n <= most {
		return nil
	}
	return fmt.Errorf("it has %d bytes, more than %d", n, most)
}

// isNone reports whether err says that a statement has returned no row.
func isNone(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
