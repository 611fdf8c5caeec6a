package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Store keeps tools, in scopes that know nothing of each other, and
// finds them by words and by meaning. Its methods may be called concurrently
// and from several processes.
//
// Package storetest has the tests that every store must pass.
type Store interface {
	// Upsert puts tools into a scope, each in the place of the one with its ID
	// if there is one; of several with the same ID the last counts. It does all of it or, with an error, may have done a
	// part; to do it again is harmless. All vectors of a scope have the same
	// length: others are an [ErrDimensions].
	Upsert(ctx context.Context, scope string, tools []Record) error

	// Delete removes the tools of these IDs. IDs that the scope does not have
	// are no error.
	Delete(ctx context.Context, scope string, ids []string) error

	// Sums returns what the scope has: the Sum of each tool, by ID.
	Sums(ctx context.Context, scope string) (map[string]string, error)

	// Search returns what a scope has for q, best first; tools of equal score
	// are in the order of their IDs. A scope that nobody has put anything into
	// has nothing.
	Search(ctx context.Context, scope string, q Query) ([]Match, error)

	// Drop removes a scope with all that is in it.
	Drop(ctx context.Context, scope string) error
}

// ErrDimensions means that a vector is not as long as those of its scope.
var ErrDimensions = errors.New("the vector has the wrong number of dimensions")

// A Record is what a [Store] keeps of a tool.
type Record struct {
	ID     string    // its registered name
	Sum    string    // changes with anything else here
	Server string    // searches can be narrowed to some
	Text   string    // what it is found by in words
	Vector []float32 // what it is found by in meaning; nil if it is not
}

// A Query says what is searched for: words, a vector, or both.
type Query struct {
	Words   string    // if empty, only by meaning
	Vector  []float32 // if nil, only by words
	Servers []string  // if not nil, only their tools

	Limit      int     // the most matches, all in all; none if zero or negative
	Candidates int     // the most that are considered of each side; if zero, 50
	Alpha      float64 // with both sides: the weight of the vector, 0 to 1
	Least      float64 // the least similarity that counts; if zero, any that is positive
}

// A Match is one tool that was found.
type Match struct {
	ID, Server string

	// Score is Alpha*Similarity + (1-Alpha)*Words or what the store has in its
	// place; with one side, that side's.
	Score float64

	// Words is the rank by words, 1 for the best of an answer and greater than 0;
	// 0 if it was not found by words.
	Words float64

	// Similarity is the cosine of the angle between the tool's vector and that
	// of the query; 0 if it was not found by meaning.
	Similarity float64
}

// DefaultAlpha and DefaultCandidates are those of the published hybrid search
// that [Fuse] follows.
const (
	DefaultAlpha      = 0.6
	DefaultCandidates = 50
)

// Fuse puts the two sides of a search together: alpha times the similarity and
// 1-alpha times the rank by words, which is divided by the greatest. What one
// side has not found counts 0 there. It returns the best n, in the order of
// their scores and then of their IDs.
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

// FuseRanks puts the two sides together by their order alone: the sum of 1/(60
// + the place, from 1) on each side. It returns the best n, in the order of
// their scores and then of their IDs.
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
	slices.SortFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(max(n, 0), len(all))]
}

// Check returns what is wrong with q, or nil, and for stores the number of
// candidates.
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
