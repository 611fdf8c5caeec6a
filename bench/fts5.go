package main

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/mcphybrid/mcphybrid/search"
	"modernc.org/sqlite"
)

// fts5 is SQLite's full-text index in memory, translated to Go. We also tried
// these:
//
// A table with content, which we don't need because the caller has the tools,
// is no faster and takes 2.7 times the memory.
//
// ORDER BY rank instead of bm25() takes 1.3 times as long, and 'optimize' makes
// nothing faster.
//
// With two connections to one memory, by vfs=memdb or by a shared cache, two
// goroutines get no more answers than one.
//
// Eight other sets of column weights have a mean recall@5 from 0.69 to 0.72.
type fts5 struct {
	// Each word of a query once, without English stop words. These are bleve's,
	// because FTS5 has none. That takes a quarter of the time and has more
	// recall. Each Han character becomes a word: otherwise a run of them is one
	// term, and hardly anything is found in Chinese.
	tuned bool

	db                   *sql.DB
	insert, erase, match *sql.Stmt
}

const (
	schemaSQL = `CREATE VIRTUAL TABLE tools USING fts5(server, name, description, params,
		tokenize = 'porter unicode61', content = '', contentless_delete = 1)`
	insertSQL = `REPLACE INTO tools(rowid, server, name, description, params) VALUES(?, ?, ?, ?, ?)`
	removeSQL = `DELETE FROM tools WHERE rowid = ?`
	matchSQL  = `SELECT rowid, bm25(tools, 1, 3, 1, 0.5) AS cost FROM tools WHERE tools MATCH ? ORDER BY cost LIMIT ?`
)

func (e *fts5) build(tools []*tool) error {
	var err error
	if e.db, err = sql.Open("sqlite", ":memory:"); err != nil {
		return err
	}
	e.db.SetMaxOpenConns(1) // each connection would have its own database
	if _, err := e.db.Exec(schemaSQL); err != nil {
		return err
	}
	for text, stmt := range map[string]**sql.Stmt{insertSQL: &e.insert, removeSQL: &e.erase, matchSQL: &e.match} {
		if *stmt, err = e.db.Prepare(text); err != nil {
			return err
		}
	}
	tx, err := e.db.Begin()
	if err != nil {
		return err
	}
	insert := tx.Stmt(e.insert)
	for i, t := range tools {
		if _, err := insert.Exec(e.row(i, t)...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (e *fts5) row(number int, t *tool) []any {
	names, descriptions := parameters(t.InputSchema)
	return []any{number, e.apart(t.Server), e.apart(t.Name), e.apart(t.Description), e.apart(names + " " + descriptions)}
}

// apart is words; if the engine is tuned, it also splits Han characters.
func (e *fts5) apart(text string) string {
	text = words(text)
	if !e.tuned || !strings.ContainsFunc(text, han) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if han(r) {
			b.WriteString(" " + string(r) + " ")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (e *fts5) change(number int, t *tool) func() error {
	return func() (err error) {
		if t == nil {
			_, err = e.erase.Exec(number)
		} else {
			_, err = e.insert.Exec(e.row(number, t)...)
		}
		return err
	}
}

var stopWords = func() analysis.TokenMap {
	m := analysis.NewTokenMap()
	if err := m.LoadBytes(en.EnglishStopWords); err != nil {
		panic(err)
	}
	return m
}()

// expression returns the query in FTS5's syntax, such as "create" OR "issue",
// or "" if no word is left.
func (e *fts5) expression(query string) string {
	var terms []string
	for _, f := range strings.FieldsFunc(strings.ToLower(e.apart(query)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if !e.tuned || !stopWords[f] && !slices.Contains(terms, f) {
			terms = append(terms, f)
		}
	}
	if len(terms) == 0 {
		return ""
	}
	return `"` + strings.Join(terms, `" OR "`) + `"`
}

func (e *fts5) search(dst []search.Match, query string, k int) ([]search.Match, error) {
	x := e.expression(query)
	if x == "" {
		return dst, nil
	}
	rows, err := e.match.Query(x, k)
	if err != nil {
		return dst, err
	}
	defer rows.Close()
	for rows.Next() {
		var m search.Match
		if err := rows.Scan(&m.Doc, &m.Score); err != nil {
			return dst, err
		}
		m.Score = -m.Score // FTS5's scores are below 0, the best one is the lowest
		dst = append(dst, m)
	}
	return dst, rows.Err()
}

// outside returns the size of SQLite's page cache. In memory, that is the
// database.
func (e *fts5) outside() (bytes int, err error) {
	conn, err := e.db.Conn(context.Background())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	err = conn.Raw(func(driver any) error {
		bytes, _, err = driver.(sqlite.DBStatus).Status(sqlite.DBStatusCacheUsed, false)
		return err
	})
	return bytes, err
}

func (e *fts5) close() error { return e.db.Close() }
