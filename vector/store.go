package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
)

// A Store keeps records in scopes and finds them by words and by meaning. A
// scope never sees another scope's records. The methods are safe for concurrent
// use, also from several processes.
//
// Package storetest has the tests that every store must pass.
type Store interface {
	// Upsert puts records into a scope and replaces records with the same ID. If
	// tools repeats an ID, the last record wins. After an error, some records may
	// be stored; calling Upsert again is safe. All vectors of a scope must have
	// the same length; otherwise the error is [ErrDimensions].
	Upsert(ctx context.Context, scope string, tools []Record) error

	// Delete removes the records with these IDs. It ignores unknown IDs.
	Delete(ctx context.Context, scope string, ids []string) error

	// Sums returns the Sum of each record in the scope, by ID.
	Sums(ctx context.Context, scope string) (map[string]string, error)

	// Get returns the records with these IDs, without their Texts, in any order. ids
	// has each ID once. Get leaves out unknown IDs. A vector may be scaled: only
	// its direction is that of the vector that was put.
	Get(ctx context.Context, scope string, ids []string) ([]Record, error)

	// Search returns the best records of a scope for q, by descending score and
	// then by ID. An unknown scope has no records; that is not an error.
	Search(ctx context.Context, scope string, q Query) ([]Match, error)

	// Drop removes a scope and its records.
	Drop(ctx context.Context, scope string) error
}

// ErrDimensions means that a vector's length differs from that of its scope.
var ErrDimensions = errors.New("the vector has the wrong number of dimensions")

// A Record is one entry of a [Store].
type Record struct {
	ID     string    // unique in its scope
	Sum    string    // checksum of the other fields
	Server string    // group that a query can ask for
	Text   string    // text for the search by words
	Vector []float32 // vector for the search by meaning; nil for none

	// Description and Schema are for people and programs that look into the store
	// by other means. No search uses them. Schema is JSON. Both may be empty.
	Description, Schema string
}

// A Query asks for records by words, by a vector, or by both.
type Query struct {
	Words   string    // if empty, search by vector only
	Vector  []float32 // if nil, search by words only
	Servers []string  // if not nil, return only records of these servers

	Limit      int     // most matches in the result; none if zero or negative
	Candidates int     // most candidates from words and from the vector each, at least Limit; if zero, 50
	Alpha      float64 // weight of the vector if there are words too, from 0 to 1
	Least      float64 // least similarity of a candidate; if zero, any above 0
}

// A Match is one record found by a search.
type Match struct {
	ID, Server string

	// Score is Alpha*Similarity + (1-Alpha)*Words, or the store's own score. In
	// a search by words or vector only, it is Words or Similarity.
	Score float64

	// Words is the score by words, from 0 to 1, where the best match has 1. It is
	// 0 if, and only if, the words did not find the record.
	Words float64

	// Similarity is the cosine of the angle between the record's vector and the
	// query's. It is 0 if, and only if, the vector did not find the record.
	Similarity float64
}

// DefaultAlpha and DefaultCandidates are the values of the published hybrid
// search that [Fuse] follows.
const (
	DefaultAlpha      = 0.6
	DefaultCandidates = 50
)

// Fuse merges the results by words with those by vector. A record's score is
// alpha*Similarity + (1-alpha)*Words, with Words divided by the greatest. A
// result missing on one side counts 0 there. Fuse returns the best n, by
// descending score and then by ID.
func Fuse(words, similar []Match, alpha float64, n int) []Match {
	greatest := 0.0
	for _, m := range words {
		greatest = max(greatest, m.Words)
	}
	var all []Match
	at := make(map[string]int)
	for _, m := range words {
		at[m.ID] = len(all)
		all = append(all, Match{ID: m.ID, Server: m.Server, Words: m.Words / greatest})
	}
	for _, m := range similar {
		if i, ok := at[m.ID]; ok {
			all[i].Similarity = m.Similarity
		} else {
			all = append(all, Match{ID: m.ID, Server: m.Server, Similarity: m.Similarity})
		}
	}
	for i := range all {
		all[i].Score = alpha*all[i].Similarity + (1-alpha)*all[i].Words
	}
	return bestMatches(all, n)
}

// fusedRank is the constant of reciprocal rank fusion (Cormack, Clarke and
// Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
// Learning Methods", 2009).
const fusedRank = 60

// FuseRanks merges the results by words with those by vector by their places
// alone. A record's score is the sum of 1/(60 + place) over both sides, with
// places from 1. FuseRanks returns the best n, by descending score and then by
// ID.
func FuseRanks(words, similar []Match, n int) []Match {
	var all []Match
	at := make(map[string]int)
	for _, side := range [][]Match{words, similar} {
		for i, m := range side {
			j, ok := at[m.ID]
			if !ok {
				j = len(all)
				at[m.ID] = j
				all = append(all, Match{ID: m.ID, Server: m.Server})
			}
			all[j].Words = max(all[j].Words, m.Words)
			all[j].Similarity = cmp.Or(all[j].Similarity, m.Similarity)
			all[j].Score += 1 / float64(fusedRank+i+1)
		}
	}
	return bestMatches(all, n)
}

func bestMatches(all []Match, n int) []Match {
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return a.Score > b.Score || a.Score == b.Score && a.ID < b.ID
	})
	return all[:min(max(n, 0), len(all))]
}

// Check returns an error if the vector is zero or not finite, or if Alpha is
// outside 0 to 1. Otherwise it returns the number of candidates that a store
// must consider on each side: Candidates or its default, but at least Limit.
func (q *Query) Check() (candidates int, err error) {
	if q.Vector != nil {
		if err := Check(q.Vector, len(q.Vector)); err != nil {
			return 0, fmt.Errorf("vector: the query's vector: %w", err)
		}
	}
	if math.IsNaN(q.Alpha) || q.Alpha < 0 || q.Alpha > 1 {
		return 0, fmt.Errorf("vector: alpha is %v, must be 0 to 1", q.Alpha)
	}
	return max(cmp.Or(q.Candidates, DefaultCandidates), q.Limit), nil
}
