package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/mcphybrid/mcphybrid/vector"
)

// Search implements [vector.Store].
func (s *Store) Search(ctx context.Context, scope string, q vector.Query) ([]vector.Match, error) {
	found, err := s.search(ctx, scope, q)
	return found, of(scope, err)
}

func (s *Store) search(ctx context.Context, scope string, q vector.Query) (found []vector.Match, err error) {
	candidates, err := q.Check()
	terms := anyOf(q.Words)
	if err != nil || q.Limit <= 0 || terms == "" && q.Vector == nil {
		return nil, cmp.Or(err, ctx.Err())
	}
	if q.Vector != nil {
		if q.Vector, err = vector.Unit(q.Vector); err != nil {
			return nil, err
		}
	}
	table := s.table(scope)
	err = s.ifThere(ctx, table, func(st tableState) error {
		near := st.near && q.Vector != nil && q.Servers == nil && candidates <= maxEfSearch
		sql, args := s.statement(table, &q, terms, candidates, near)
		if near {
			found, err = s.askNear(ctx, sql, args, max(candidates, s.opts.EfSearch))
		} else {
			rows, _ := s.pool.Query(ctx, sql, append([]any{s.mode}, args...)...)
			found, err = pgx.CollectRows(rows, match)
		}
		if q.Vector != nil && codeOf(err) == dataException {
			return fmt.Errorf("the query: %w: %w", vector.ErrDimensions, err)
		}
		return err
	})
	return found, err
}

func match(row pgx.CollectableRow) (m vector.Match, err error) {
	err = row.Scan(&m.ID, &m.Server, &m.Score, &m.Words, &m.Similarity)
	return m, err
}

// maxEfSearch is the greatest number of candidates of an HNSW index in pgvector.
const maxEfSearch = 1000

// askNear runs a statement that uses an HNSW index with ef candidates. The setting
// lasts for one transaction, which a batch is.
func (s *Store) askNear(ctx context.Context, sql string, args []any, ef int) (found []vector.Match, err error) {
	var batch pgx.Batch
	batch.Queue("SELECT set_config('hnsw.ef_search', $1::text, true)", strconv.Itoa(min(ef, maxEfSearch)))
	if s.iterative {
		// Each change of a record leaves its old vector in the index until a VACUUM.
		batch.Queue("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
	}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		found, err = pgx.CollectRows(rows, match)
		return err
	})
	return found, s.pool.SendBatch(ctx, &batch).Close()
}

// statement returns the statement that answers q. terms is the result of anyOf for
// its words. The statement collects the candidates by words and by vector, either of
// which may be empty, and merges them like [vector.Fuse]. If near is set, it sorts by
// embedding::vector(n), which the index covers; otherwise by plain embedding, which
// reads all vectors.
func (s *Store) statement(table string, q *vector.Query, terms string, candidates int, near bool) (sql string, args []any) {
	arg := func(v any, as string) string {
		args = append(args, v)
		return fmt.Sprintf("$%d::%s", len(args), as)
	}
	limit := arg(int64(candidates), "bigint")
	filter := ""
	if q.Servers != nil {
		filter = " AND server = ANY (" + arg(storables(q.Servers), "text[]") + ")"
	}
	empty := fmt.Sprintf("SELECT id, server, 0::float8 AS score FROM %s WHERE false", table)
	words, similar := empty, empty
	if terms != "" {
		words = fmt.Sprintf(`SELECT id, server, rank / max(rank) OVER () AS score FROM (
				SELECT id, server, ts_rank(terms, query)::float8 AS rank
				FROM %s, websearch_to_tsquery(%s, %s) AS query
				WHERE terms @@ query%s ORDER BY rank DESC, id LIMIT %s) best`,
			table, s.config, arg(terms, "text"), filter, limit)
	}
	alpha := q.Alpha
	switch {
	case q.Vector == nil:
		alpha = 0
	case q.Words == "":
		alpha = 1
	}
	if q.Vector != nil {
		vector := arg(literal(q.Vector), "text") + "::" + s.vector + ".vector"
		embedding, ties := "embedding", ", id"
		if near {
			embedding, ties = fmt.Sprintf("embedding::%s.vector(%d)", s.vector, len(q.Vector)), ""
		}
		// Apply Least after the limit: vectors that are too far come last.
		similar = fmt.Sprintf(`SELECT id, server, 1 - distance AS score FROM (
				SELECT id, server, %s OPERATOR(%s.<=>) %s AS distance FROM %s
				WHERE embedding IS NOT NULL%s ORDER BY distance%s LIMIT %s) nearest
				WHERE distance < 1 AND 1 - distance >= %s`,
			embedding, s.vector, vector, table, filter, ties, limit, arg(q.Least, "float8"))
	}
	sql = fmt.Sprintf(`WITH by_words AS (%s), by_meaning AS (%s)
		SELECT coalesce(w.id, v.id) AS id, coalesce(w.server, v.server),
			%s * coalesce(v.score, 0) + %s * coalesce(w.score, 0) AS score, coalesce(w.score, 0), coalesce(v.score, 0)
		FROM by_words w FULL JOIN by_meaning v ON v.id = w.id
		ORDER BY score DESC, id LIMIT %s`,
		words, similar, arg(alpha, "float8"), arg(1-alpha, "float8"), arg(int64(q.Limit), "bigint"))
	return sql, args
}

// maxTerms bounds the words of a query. Further words are ignored.
const maxTerms = 100

// anyOf returns a query for websearch_to_tsquery that finds any of the words, such as
// "create" or "issue". It returns "" if there are none.
func anyOf(words string) string {
	var terms []string
	seen := make(map[string]bool)
	for term := range strings.FieldsSeq(separated(words)) {
		if term = strings.ToLower(term); !seen[term] && len(terms) < maxTerms {
			seen[term] = true
			terms = append(terms, `"`+term+`"`)
		}
	}
	return strings.Join(terms, " or ")
}

// separated returns the words of a text, separated by spaces, without characters that
// have a meaning in a query. PostgreSQL would take "owner/repo" for a file,
// "issues.list" for a host and "createIssue" for one word.
func separated(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	var before rune
	for _, r := range text {
		switch {
		case r == unicode.ReplacementChar || !unicode.In(r, unicode.L, unicode.N, unicode.M):
			r = ' '
		case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before)):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}
