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

// fts5 is SQLite's full-text index in memory, translated to Go. What was tried
// beside it: a table with content, which is not needed as the caller has the
// tools, is no faster and takes 2.7 times the memory; ORDER BY rank instead of
// bm25() takes 1.3 times as long; 'optimize' makes it no faster; with two
// connections to one memory, by vfs=memdb or by a shared cache, two goroutines
// get no more answers than by one. Other weights of the columns, of eight, have
// a mean recall@5 from 0.69 to 0.72.
type fts5 struct {
	// Each word of a query once and without English stop words, which are
	// bleve's as FTS5 has none: a quarter of the time and more recall. Each
	// Han character a word: as they are, a run of them is one term, and in
	// Chinese hardly anything is found.
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
	e.db.SetMaxOpenConns(1) // each would have a database of its own
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

// apart is words and, if tuned, takes Han characters apart.
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

// expression returns the query as FTS5 wants it, "create" OR "issue", and ""
// if no word is left.
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
		m.Score = -m.Score // FTS5's are below 0, the best the lowest
		dst = append(dst, m)
	}
	return dst, rows.Err()
}

// outside is SQLite's cache of pages, which in memory is the database.
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
