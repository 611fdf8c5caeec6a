package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

// migrations holds the files 1.sql, 2.sql, …. Each brings the schema to the version
// in its name. They run with the schema first in the search_path.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the key of the advisory lock held during a migration. There is
// one for the whole database, because migrations also create the extension.
const migrationLock = 0x6d63_7068_7962_7264 // "mcphybrd"

// migrate brings the schema to the newest version and sets s.vector and s.config.
// Several processes may call it at once.
func (s *Store) migrate(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.mode, int64(migrationLock)); err != nil {
			return err
		}
		if err := s.findVector(ctx, tx); err != nil {
			return err
		}
		// CREATE SCHEMA requires the right to create even if the schema exists.
		var there bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text)", s.mode, s.opts.Schema).Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := tx.Exec(ctx, "CREATE SCHEMA "+s.schema, s.mode); err != nil {
				return fmt.Errorf("making the schema: %w", err)
			}
		}
		path := "SELECT set_config('search_path', quote_ident($1::text) || ', ' || current_setting('search_path'), true)"
		if _, err := tx.Exec(ctx, path, s.mode, s.opts.Schema); err != nil {
			return err
		}
		config := "SELECT quote_literal($1::text::regconfig::text) || '::regconfig'"
		if err := tx.QueryRow(ctx, config, s.mode, s.opts.Config).Scan(&s.config); err != nil {
			return fmt.Errorf("the text search configuration %q: %w", s.opts.Config, err)
		}
		return s.runMigrations(ctx, tx)
	})
}

// findVector creates the extension if it is missing. It sets s.vector to the schema
// of the type vector, and s.iterative.
func (s *Store) findVector(ctx context.Context, tx pgx.Tx) error {
	find := func() error {
		return tx.QueryRow(ctx, `SELECT quote_ident(n.nspname)
			FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
			WHERE t.typname = 'vector' AND t.typtype = 'b' ORDER BY pg_type_is_visible(t.oid) DESC, t.oid LIMIT 1`, s.mode).Scan(&s.vector)
	}
	err := find()
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := tx.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS vector", s.mode); err != nil {
			return fmt.Errorf("making the extension vector: %w", err)
		}
		err = find()
	}
	if err != nil {
		return err
	}
	return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'vector'
		AND string_to_array(substring(extversion from '^[0-9]+[.][0-9]+'), '.')::integer[] >= '{0,8}')`, s.mode).Scan(&s.iterative)
}

func (s *Store) runMigrations(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass($1::text) IS NOT NULL", s.mode, s.schema+".version").Scan(&there); err != nil {
		return err
	}
	if !there {
		if _, err := tx.Exec(ctx, "CREATE TABLE "+s.schema+".version (version integer NOT NULL, config text NOT NULL)", s.mode); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO "+s.schema+".version VALUES (0, $1::text)", s.mode, s.config); err != nil {
			return err
		}
	}
	var version int
	var config string
	if err := tx.QueryRow(ctx, "SELECT version, config FROM "+s.schema+".version", s.mode).Scan(&version, &config); err != nil {
		return fmt.Errorf("its version: %w", err)
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	switch {
	case err != nil:
		return err
	case version > len(files):
		return fmt.Errorf("it has version %d, this program knows %d", version, len(files))
	case config != s.config:
		return fmt.Errorf("it was made with the text search configuration %s, not %s", config, s.config)
	}
	for version++; version <= len(files); version++ {
		script, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", version))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, string(script), pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("version %d: %w", version, err)
		}
		if _, err := tx.Exec(ctx, "UPDATE "+s.schema+".version SET version = $1::integer", s.mode, version); err != nil {
			return err
		}
	}
	return nil
}
