package main

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/mcphybrid/mcphybrid"
	"modernc.org/sqlite"
)

// fts5 is SQLite's full-text index in memory, translated to Go, in the
// configuration that we found to be its best. What was tried beside it, with
// its mean recall@5 over nine corpora and its time at 4,000 tools:
//
//   - All words of a query, not only once each and without English stop words:
//     0.68 instead of 0.72, and queries at four times the cost. FTS5 has no
//     stop words of its own; these are bleve's.
//   - Han characters as they are, not taken apart: a run of them is one term,
//     and in Chinese hardly anything is found.
//   - Other weights of the columns, of eight: 0.69 to 0.72.
//   - ORDER BY rank instead of bm25(): 1.3 times the cost.
//   - A table with content, which is not needed as the caller has the tools:
//     no faster, 2.7 times the memory. After 'optimize': no faster either.
//   - Two connections to one memory, by vfs=memdb or by a shared cache: two
//     goroutines get no more answers than by one connection.
type fts5 struct {
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
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{{&e.insert, insertSQL}, {&e.erase, removeSQL}, {&e.match, matchSQL}} {
		if *s.stmt, err = e.db.Prepare(s.text); err != nil {
			return err
		}
	}
	tx, err := e.db.Begin()
	if err != nil {
		return err
	}
	insert := tx.Stmt(e.insert)
	for i, t := range tools {
		if _, err := insert.Exec(row5(i, t)...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func row5(number int, t *tool) []any {
	names, descriptions := parameters(t.InputSchema)
	return []any{number, apart(t.Server), apart(t.Name), apart(t.Description), apart(names + " " + descriptions)}
}

// apart is words, with each Han character a word.
func apart(text string) string {
	text = words(text)
	if !strings.ContainsFunc(text, han) {
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

func (e *fts5) add(number int, t *tool) error {
	_, err := e.insert.Exec(row5(number, t)...)
	return err
}

func (e *fts5) replace(number int, t *tool) error { return e.add(number, t) }

func (e *fts5) remove(number int) error {
	_, err := e.erase.Exec(number)
	return err
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
func expression(query string) string {
	fields := strings.FieldsFunc(strings.ToLower(apart(query)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	var terms []string
	for _, f := range fields {
		if !stopWords[f] && !slices.Contains(terms, f) {
			terms = append(terms, f)
		}
	}
	if len(terms) == 0 {
		return ""
	}
	return `"` + strings.Join(terms, `" OR "`) + `"`
}

func (e *fts5) search(dst []mcphybrid.Match, query string, k int) ([]mcphybrid.Match, error) {
	x := expression(query)
	if x == "" {
		return dst, nil
	}
	rows, err := e.match.Query(x, k)
	if err != nil {
		return dst, err
	}
	defer rows.Close()
	for rows.Next() {
		var m mcphybrid.Match
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
