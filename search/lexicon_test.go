package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseLexicon(t *testing.T) {
	l, err := ParseLexicon(`
# Comments and empty lines are passed over.

[stop]
the a
	an
[hints]
xlsx csv > table
[generic]
get
  # also here
[synonyms]
mail email
movie  film
[stop]
of
[translations]
天气 气象=weather
[verbs]
read = get list
change=move
read = show
`)
	require.NoError(t, err)
	assert.Equal(t, &Lexicon{
		Stop:         []string{"the", "a", "an", "of"},
		Generic:      []string{"get"},
		Synonyms:     [][]string{{"mail", "email"}, {"movie", "film"}},
		Hints:        []Hint{{[]string{"xlsx", "csv"}, []string{"table"}}},
		Translations: []Hint{{[]string{"天气", "气象"}, []string{"weather"}}},
		Verbs:        Verbs{Read: []string{"get", "list", "show"}, Change: []string{"move"}},
	}, l)

	l, err = ParseLexicon("\r\n# nothing\r\n")
	require.NoError(t, err)
	assert.Equal(t, new(Lexicon), l)
}

func TestParseLexiconErrors(t *testing.T) {
	tests := []struct {
		name string
		text string
		want string
	}{
		{"text before the first section", "# comment\nthe of\n[stop]", `search: lexicon, line 2: "the of" comes before the first section`},
		{"unknown section", "[stop]\n[words]", "search: lexicon, line 2: unknown section [words]"},
		{"section without its end", "[stop", "search: lexicon, line 1: unknown section [stop"},
		{"section and text", "[stop] the", "search: lexicon, line 1: unknown section [stop] the"},
		{"hint without a sign", "[hints]\n\nxlsx table", `search: lexicon, line 3: "xlsx table" must have words, one ">" and words`},
		{"hint with two", "[hints]\na > b > c", `search: lexicon, line 2: "a > b > c" must have words, one ">" and words`},
		{"hint from nothing", "[hints]\n> table", `search: lexicon, line 2: "> table" must have words, one ">" and words`},
		{"hint to nothing", "[hints]\nxlsx >", `search: lexicon, line 2: "xlsx >" must have words, one ">" and words`},
		{"hint with the other sign", "[hints]\nxlsx = table", `search: lexicon, line 2: "xlsx = table" must have words, one ">" and words`},
		{"translation without a sign", "[translations]\n天气", `search: lexicon, line 2: "天气" must have words, one "=" and words`},
		{"verbs without a sign", "[verbs]\nread get", `search: lexicon, line 2: "read get" must be read, create, update, delete or change, then "=" and words`},
		{"verbs of no class", "[verbs]\nrun = start", `search: lexicon, line 2: "run = start" must be read, create, update, delete or change, then "=" and words`},
		{"translation with two", "[translations]\n天气 = a = b", `search: lexicon, line 2: "天气 = a = b" must have words, one "=" and words`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, err := ParseLexicon(test.text)
			assert.EqualError(t, err, test.want)
			assert.Nil(t, l)
		})
	}
	_, err := ParseLexicon(strings.Repeat("x", 1<<20))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 10_000, "a line is not quoted without end")
}

// The default lexicon has no duplicates and no entry without effect.
func TestDefaultLexicon(t *testing.T) {
	_, err := ParseLexicon(lexiconText)
	require.NoError(t, err)
	l := DefaultLexicon()
	l.Stop[0] = "changed" // the caller owns it
	l = DefaultLexicon()
	require.NotEqual(t, "changed", l.Stop[0])

	assert.LessOrEqual(t, len(l.Stop), 320)
	assert.LessOrEqual(t, len(l.Generic), 100)
	assert.LessOrEqual(t, len(l.Synonyms), 250)
	assert.LessOrEqual(t, len(l.Hints), 200)
	assert.LessOrEqual(t, len(l.Translations), 150)
	assert.LessOrEqual(t, len(lexiconText), 24<<10)

	lines := map[string]bool{}
	for i, line := range strings.Split(lexiconText, "\n") {
		if line != "" && line[0] != '#' {
			assert.False(t, lines[line], "line %d is there twice: %s", i+1, line)
		}
		lines[line] = true
	}

	term := func(w string) string {
		terms := plainTerms(w)
		if len(terms) == 0 {
			return ""
		}
		return terms[len(terms)-1].text
	}
	twice := func(words []string, what string) (found []string) {
		for i, w := range words {
			if slices.Contains(words[:i], w) {
				found = append(found, w)
			}
		}
		return found
	}
	assert.Empty(t, twice(l.Stop, "[stop]"))
	assert.Empty(t, twice(l.Generic, "[generic]"))

	// No word of a relation is a stop word, because no document has stop words.
	// No word is listed twice.
	stops := map[string]bool{}
	for _, w := range l.Stop {
		stops[term(w)] = true
	}
	var void []string
	look := func(words []string, many bool) {
		assert.Empty(t, twice(words, "relation"), "%q", words)
		for _, w := range words {
			assert.NotEmpty(t, term(w), "%q in %q is no term", w, words)
			if stops[term(w)] {
				void = append(void, w)
			}
		}
		if many {
			assert.Greater(t, len(words), 1, "%q", words)
		}
	}
	look(l.Generic, true)
	var verbs []string
	for _, class := range l.Verbs.lists() {
		verbs = append(verbs, class...)
	}
	look(verbs, true)
	assert.LessOrEqual(t, len(verbs), 80)
	for _, group := range l.Synonyms {
		look(group, true)
	}
	for _, h := range slices.Concat(l.Hints, l.Translations) {
		look(h.From, false)
		look(h.To, false)
	}
	slices.Sort(void)
	assert.Empty(t, void, "words of relations that are stop words too")

	// A word of a script without spaces is one term only if it has one or two
	// characters. Of a longer one, only the last two would count.
	for _, tr := range l.Translations {
		for _, w := range tr.From {
			assert.LessOrEqual(t, len([]rune(w)), 2, w)
		}
	}
}

// Options.Lexicon replaces the default lexicon.
func TestIndexLexicon(t *testing.T) {
	docs := []*Document{{Name: "gizmo"}, {Name: "mail"}, {Name: "the"}, {Name: "find gizmo"}}
	for _, ranker := range []Ranker{RankerLexical, RankerDefault} {
		search := func(l *Lexicon, query string) []int {
			return searchDocs(NewIndex(docs, &Options{Ranker: ranker, Lexicon: l, Threshold: -1}), query)
		}
		assert.Empty(t, search(nil, "widget"))
		assert.Empty(t, search(nil, "the"))
		assert.Equal(t, []int{1}, search(nil, "email"))

		l := DefaultLexicon()
		l.Synonyms = append(l.Synonyms, []string{"widgets", "Gizmo"})
		l.Stop = nil
		assert.Equal(t, []int{0, 3}, search(l, "widget"))
		assert.Equal(t, []int{2}, search(l, "the"))
		assert.Equal(t, []int{1}, search(l, "email"))

		assert.Empty(t, search(new(Lexicon), "email"))
		hint := &Lexicon{Hints: []Hint{{[]string{"widget"}, []string{"gizmo"}}}}
		assert.Equal(t, []int{0, 3}, search(hint, "widget"))
		translation := &Lexicon{Translations: []Hint{{[]string{"零件", "部件"}, []string{"gizmo"}}}}
		assert.Equal(t, []int{0, 3}, search(translation, "零件"))

		// Changing a lexicon later does not change an index.
		x := NewIndex(docs, &Options{Ranker: ranker, Lexicon: hint, Threshold: -1})
		want := x.Search("widget", 5, nil)
		hint.Hints[0].To[0], hint.Hints = "mail", nil
		assert.Equal(t, want, x.Search("widget", 5, nil))
		assert.Equal(t, want, x.With(slices.Clone(docs)).Search("widget", 5, nil))
	}

	// A hint leads in one direction only. A generic word counts less.
	hint := &Lexicon{Hints: []Hint{{[]string{"widget"}, []string{"mail"}}}}
	assert.Empty(t, searchDocs(NewIndex([]*Document{{Name: "widget"}}, &Options{Lexicon: hint, Threshold: -1}), "mail"))
	pair := []*Document{{Name: "find"}, {Name: "gizmo"}}
	assert.Equal(t, []int{1, 0}, searchDocs(NewIndex(pair, &Options{Threshold: -1}), "find gizmo"))
	assert.Equal(t, []int{0, 1}, searchDocs(NewIndex(pair, &Options{Lexicon: new(Lexicon), Threshold: -1}), "find gizmo"))
}

func FuzzParseLexicon(f *testing.F) {
	f.Add(lexiconText[:200])
	f.Add("[stop]\nthe\n[hints]\na > b\n[translations]\n天 = sky\n[synonyms]\n! ?")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLexicon(text)
		if err != nil {
			return
		}
		c, p := compile(l), newPlainLexicon(l)
		if len(c.terms) != len(p.class) {
			t.Fatalf("%q: %d terms, want %d", text, len(c.terms), len(p.class))
		}
		NewIndex([]*Document{{Name: "a tool", Description: text}}, &Options{Lexicon: l}).Search(text, 3, nil)
	})
}

// An abbreviation is read as what it stands for, wherever it is.
func TestAbbreviations(t *testing.T) {
	docs := []*Document{
		{Name: "create_pull_request", Description: "Opens a pull request"},
		{Name: "listPRs", Description: "What is open"},
		{Name: "get_repo", Description: "One of them"},
		{Name: "set_configuration", Description: "Changes settings"},
		{Name: "other", Description: "Has nothing to do with it"},
	}
	x := NewIndex(docs, nil)
	for query, want := range map[string][]int{
		"pr":                    {0, 1},
		"PRs":                   {0, 1},
		"pull request":          {0, 1},
		"repo":                  {2},
		"repository":            {2},
		"repositroy":            {2}, // a slip
		"conifg":                {3}, // a slip of an abbreviation
		"Lösche das repo bitte": {2},
	} {
		var found []int
		for _, m := range x.Search(query, 5, nil) {
			found = append(found, m.Doc)
		}
		assert.ElementsMatch(t, want, found, query)
	}
	for _, m := range NewIndex(docs, &Options{Lexicon: &Lexicon{}}).Search("repository", 5, nil) {
		assert.NotEqual(t, 2, m.Doc, "without the list")
	}

	// Of several, the first counts; other lists may have them; one may stand for itself.
	l, err := ParseLexicon("[abbreviations]\nab = alpha\nab = beta\nalpha = alpha\n[synonyms]\nab gamma")
	require.NoError(t, err)
	x = NewIndex([]*Document{{Name: "ab"}, {Name: "alpha"}, {Name: "beta"}, {Name: "gamma"}}, &Options{Lexicon: l, Threshold: -1})
	var found []int
	for _, m := range x.Search("ab", 5, nil) {
		found = append(found, m.Doc)
	}
	assert.Equal(t, []int{0, 1, 3}, found)
}

// What an explanation says is missing are words that somebody has typed: no stems, not
// what an abbreviation stands for or a foreign word means, and each once.
func TestMissingWords(t *testing.T) {
	x := NewIndex([]*Document{{Name: "create_request"}, {Name: "get_repository"}}, nil)
	for query, want := range map[string][][]string{
		"repo":                       {{"repo"}, nil},
		"Repos zyzzyva":              {{"repos", "zyzzyva"}, {"zyzzyva"}},
		"the PR of zyzzyva":          {{"pr", "zyzzyva"}, {"pr", "zyzzyva"}}, // of a pull request, one has a half
		"pull PRs":                   {{"pull"}, {"pull", "prs"}},
		"getRepo":                    {{"get", "repo"}, nil},
		"k8s":                        {{"8", "k8s"}, {"8", "k8s"}},
		"repository repo":            {{"repository"}, nil},
		"Lösche das repo bitte":      {{"losche", "repo", "bitte"}, {"losche", "bitte"}},
		"die Preisberechnung für":    {{"preisberechnung"}, {"preisberechnung"}}, // is known as two words
		"studying PARTIES, copyURLs": {{"studying", "parties", "copy", "urls"}, {"studying", "parties", "copy", "urls"}},
		"天气":                         {{"天气"}, {"天气"}},
	} {
		for doc, want := range want {
			assert.Equal(t, want, x.Explain(query, doc).Missing, "%s, document %d", query, doc)
		}
	}
}

// What an explanation says is found are such words, too.
func TestFoundWords(t *testing.T) {
	x := NewIndex([]*Document{{Name: "create_pull_request", Description: "Creates it in a repository"}, {Name: "zyzzyva"}}, nil)
	for query, want := range map[string][]string{
		"the PRs of repos":      {"prs", "prs", "repos"},
		"creating repositories": {"creating", "creating", "repositories"},
		"Lösche das repo bitte": {"repo"},
	} {
		var words []string
		for _, p := range x.Explain(query, 0).Parts {
			if p.Query != "" {
				words = append(words, p.Word)
			} else {
				assert.Empty(t, p.Word, "a bonus")
			}
		}
		assert.Equal(t, want, words, query)
	}
}
