//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mcphybrid/mcphybrid/stores/natsstore"
	"github.com/mcphybrid/mcphybrid/stores/pgstore"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// schema is what the run makes in PostgreSQL.
const schema = "day"

// open opens the store, and sets p.size, which says what it takes.
func (p *play) open(ctx context.Context) (close func(), err error) {
	if p.postgres != "" {
		return p.openPostgres(ctx)
	}
	folder, err := os.MkdirTemp("", "day-")
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: folder})
	if err != nil {
		return nil, err
	}
	s.Start()
	stop := func() {
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(folder)
	}
	if !s.ReadyForConnections(20 * time.Second) {
		stop()
		return nil, errors.New("the NATS server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err == nil {
		var engine *natsstore.Store
		if engine, err = natsstore.Open(ctx, nc, nil); err == nil {
			p.sessions = engine.Sessions()
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	p.size = func(context.Context) string {
		var bytes int64
		_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if i, err := d.Info(); err == nil {
					bytes += i.Size()
				}
			}
			return nil
		})
		return fmt.Sprintf("%.0f MB of files", float64(bytes)/1e6)
	}
	return func() { nc.Close(); stop() }, nil
}

func (p *play) openPostgres(ctx context.Context) (close func(), err error) {
	pool, err := pgxpool.New(ctx, p.postgres)
	if err != nil {
		return nil, err
	}
	drop := func() error {
		_, err := pool.Exec(context.WithoutCancel(ctx), "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		return err
	}
	err = drop()
	if err == nil {
		var engine *pgstore.Shared
		if engine, err = pgstore.Share(ctx, pool, &pgstore.SharedOptions{Schema: schema}); err == nil {
			p.sessions = engine.Sessions()
		}
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	p.size = func(ctx context.Context) string {
		var bytes int64
		err := pool.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND c.relkind = 'r'`, schema).Scan(&bytes)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%.0f MB of tables and indexes", float64(bytes)/1e6)
	}
	return func() {
		_ = drop() // the next run does
		pool.Close()
	}, nil
}
