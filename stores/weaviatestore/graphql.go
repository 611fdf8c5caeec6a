package weaviatestore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A query asks for objects of one tenant. Values from outside this package are only in
// args, quoted by [literal].
type query struct {
	class  string
	args   []string
	limit  int
	fields string
}

// query asks for the given fields of a tenant's objects, and for _additional: the id
// and the quality of the match.
func (s *Store) query(tenant, fields string, limit int, args ...string) *query {
	return &query{s.opts.Class, append([]string{"tenant: " + literal(tenant)}, args...), limit, fields}
}

// String returns q in GraphQL syntax.
func (q *query) String() string {
	return fmt.Sprintf("Get {%s(%s, limit: %d) {%s}}", q.class, strings.Join(q.args, ", "), q.limit, q.fields)
}

// literal returns a value in GraphQL syntax. Strings, numbers and lists are the same as
// in JSON, with the same escapes, so that no string can end early. Bytes that are not
// UTF-8 become U+FFFD.
func literal[T string | int | []string | []float32](value T) string {
	text, _ := json.Marshal(value) // only infinities and NaN fail, which no unit vector has
	return string(text)
}

// where returns the argument that selects objects by a property.
func where[T string | int | []string](property, operator, valueType string, value T) string {
	return fmt.Sprintf("where: {path: [%s], operator: %s, %s: %s}", literal(property), operator, valueType, literal(value))
}

// A row is one object of an answer.
type row struct {
	Tool        string `json:"tool_name"`
	Server      string `json:"origin"`
	Sum         string `json:"sum"`
	Dimensions  int    `json:"dimensions"`
	Description string `json:"description"`
	Schema      string `json:"schema_json"`
	Additional  struct {
		ID       string    `json:"id"`
		Distance *float64  `json:"distance"` // 1 - the cosine, from 0 to 2
		Score    string    `json:"score"`    // by words
		Vector   []float32 `json:"vector"`   // empty if there is none
	} `json:"_additional"`
}

// ours reports whether this package wrote the object.
func (o *row) ours() bool { return o.Additional.ID == objectID(o.Tool) }

// ask sends several queries as one request. It returns the answers by the names of the
// queries.
func (s *Store) ask(ctx context.Context, queries map[string]*query) (map[string][]row, error) {
	names := slices.Sorted(maps.Keys(queries))
	var text strings.Builder
	text.WriteString("{")
	for _, name := range names {
		fmt.Fprintf(&text, "%s: %s ", name, queries[name])
	}
	text.WriteString("}")
	var rows map[string][]row
	err := s.call(ctx, http.MethodPost, "/v1/graphql", map[string]string{"query": text.String()}, func(reply []byte) (err error) {
		rows, err = rowsOf(reply, s.opts.Class, names)
		return err
	})
	return rows, err
}

// rowsOf returns the objects of a class in an answer, by the names of the queries.
func rowsOf(reply []byte, class string, names []string) (map[string][]row, error) {
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return nil, fmt.Errorf("an answer of another shape: %w", err)
	}
	if len(answer.Errors) > 0 {
		return nil, &refusal{message: answer.Errors[0].Message}
	}
	var gets map[string]map[string][]row
	if len(answer.Data) > 0 {
		if err := json.Unmarshal(answer.Data, &gets); err != nil {
			return nil, fmt.Errorf("an answer of another shape: %w", err)
		}
	}
	rows := make(map[string][]row)
	for _, name := range names {
		found, ok := gets[name][class]
		if !ok {
			return nil, fmt.Errorf("the answer has no objects under %q", name)
		}
		rows[name] = found
	}
	return rows, nil
}
