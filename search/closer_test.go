package search

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Terms that the best documents share lift other documents that have them.
func TestCloserFeedback(t *testing.T) {
	docs := []*Document{
		{Name: "lamp", Description: "illuminates chamber"},
		{Name: "lamp", Description: "illuminates chamber"},
		{Name: "lamp", Description: "illuminates chamber"},
		{Name: "lamp", Description: "something sundry besides"},
		{Name: "lamp", Description: "illuminates chamber quite"},
	}
	for range 30 {
		docs = append(docs, &Document{Name: "unrelated", Description: "words sundry besides"})
	}
	x := NewIndex(docs, nil)
	r := retrieval{x: x}
	r.parse("lamp")
	r.score(nil)
	best := r.top(nil, closerDocs, nil)
	require.Len(t, best, 5)
	before := slices.Clone(best)
	r.mark()
	r.addFeedback(best)
	var common []string
	for _, c := range r.closer.common {
		common = append(common, string(x.vocabulary.text(c.term)))
	}
	assert.Equal(t, []string{"chamb", "illumin"}, common, "not lamp, as it is asked for, nor what one has")
	for i, m := range best {
		if gain := m.Score - before[i].Score; m.Doc == 3 {
			assert.Zero(t, gain, "it has none of them")
		} else {
			assert.Positive(t, gain, "document %d", m.Doc)
		}
	}

	lexical := NewIndex(docs, &Options{Ranker: RankerLexical})
	assert.Greater(t, x.Search("lamp", 5, nil)[0].Score, lexical.Search("lamp", 5, nil)[0].Score)
}

// A document whose whole name is in the query comes first.
func TestCloserName(t *testing.T) {
	docs := []*Document{
		{Name: "branch_create_from_template", Description: "branch branch branch"},
		{Name: "branch"},
	}
	for i := range 10 {
		docs = append(docs, &Document{Name: fmt.Sprintf("other%c_template_from", 'a'+i)})
	}
	x := NewIndex(docs, &Options{Threshold: -1})
	r := retrieval{x: x}
	r.parse("branch")
	r.score(nil)
	r.mark()
	share := func(doc int) float64 { share, _ := r.nameShare(doc); return share }
	assert.Equal(t, 1.0, share(1))
	assert.Greater(t, share(0), 0.0)
	assert.Less(t, share(0), 0.6)
	assert.Zero(t, share(2))
	none, lead := (&retrieval{x: NewIndex([]*Document{{}}, nil)}).nameShare(0)
	assert.Zero(t, none+lead, "no name")
}

// A name whose words are written together is in the query if its words are.
func TestCloserIdentifier(t *testing.T) {
	docs := []*Document{{Name: "create_issue"}, {Name: "createIssue"}, {Name: "other"}}
	x := NewIndex(docs, &Options{Threshold: -1})
	bonus := func(query string, doc int) float64 {
		parts := x.Explain(query, doc).Parts
		last := parts[len(parts)-1]
		require.Equal(t, "whole name", last.Field)
		return last.Score
	}
	assert.InDelta(t, bonus("issue to create", 0), bonus("issue to create", 1), 1e-9)

	// But what is known only whole is a word of the name.
	x = NewIndex([]*Document{{Name: "aB"}, {Name: "other"}}, &Options{Threshold: -1})
	assert.Greater(t, bonus("ab", 0), 0.0)
}

// A name that begins like the request comes before one that has the word later.
func TestCloserLead(t *testing.T) {
	docs := []*Document{{Name: "list_star_repository"}, {Name: "star_list_repository"}, {Name: "other"}}
	x := NewIndex(docs, &Options{Threshold: -1})
	assert.Equal(t, 1, x.Search("star a repository list", 1, nil)[0].Doc)
	assert.Equal(t, 1, x.Search("please, could you star a repository list", 1, nil)[0].Doc)
	assert.Equal(t, 0, x.Search("list star repository", 1, nil)[0].Doc)
}

// The second pass reorders only the first 20 documents.
func TestCloserRest(t *testing.T) {
	var docs []*Document
	for i := range 50 {
		d := &Document{Name: "lamp", Description: "chamber"}
		if i >= 25 {
			d = &Document{Name: "thing" + string('a'+rune(i-25)), Description: "lamp"}
		}
		docs = append(docs, d)
	}
	x := NewIndex(docs, &Options{Threshold: -1})
	got := x.Search("lamp", 100, nil)
	require.Len(t, got, 50)
	lexical := NewIndex(docs, &Options{Ranker: RankerLexical, Threshold: -1}).Search("lamp", 100, nil)
	for i, m := range got {
		assert.Equal(t, lexical[i].Doc, m.Doc)
		if i < closerDocs {
			assert.Greater(t, m.Score, lexical[i].Score)
		} else {
			assert.Equal(t, lexical[i].Score, m.Score)
		}
		if i > 0 {
			assert.LessOrEqual(t, m.Score, got[i-1].Score)
		}
	}

	// A short answer is the beginning of a long one: n must not change which
	// documents the second pass looks at.
	for n := range 50 {
		if n > 0 {
			assert.Equal(t, got[:n], x.Search("lamp", n, nil))
		}
	}
	// The second pass ignores filtered documents.
	kept := x.Search("lamp", 5, func(doc int) bool { return doc >= 25 })
	require.Len(t, kept, 5)
	assert.Equal(t, 25, kept[0].Doc)
}
