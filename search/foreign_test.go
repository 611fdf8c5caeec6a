package search

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// foreignRow is one line of foreign.txt: the words of each language, folded.
type foreignRow struct {
	english []string
	cells   [][]string // by language
}

func foreignRows(t *testing.T) (languages []string, rows []foreignRow) {
	lines := slices.DeleteFunc(strings.Split(foreignText, "\n"), func(line string) bool { return line == "" || line[0] == '#' })
	for i, line := range lines {
		var cells [][]string
		for cell := range strings.SplitSeq(line, "|") {
			var words []string
			for _, w := range strings.Fields(cell) {
				if i == 0 {
					languages = append(languages, w)
				}
				var a analyzer
				a.add([]byte(w))
				if w != "-" {
					require.NotEmpty(t, a.terms, "%s: %s is no word", line, w)
					words = append(words, string(a.bytes))
				}
			}
			cells = append(cells, words)
		}
		if i > 0 {
			rows = append(rows, foreignRow{strings.Fields(strings.Split(line, "|")[0]), cells[1:]})
		}
	}
	return languages[1:], rows
}

// Each line has a cell for each language, no English word or line is there twice,
// and the table says what the lines say.
func TestForeignRows(t *testing.T) {
	languages, rows := foreignRows(t)
	require.Len(t, languages, 10)
	table := newForeignWords(defaultForeign())
	lines := map[string]bool{}
	for _, row := range rows {
		line := strings.Join(row.english, " ")
		assert.False(t, lines[line], "%s is there twice", line)
		lines[line] = true
		require.Len(t, row.cells, len(languages), line)
		for i, words := range row.cells {
			sorted := slices.Sorted(slices.Values(words))
			assert.Len(t, slices.Compact(sorted), len(words), "%s, %s: a word is there twice", line, languages[i])
			for _, w := range words {
				if table.meanings([]byte(w)) == nil { // it is like the English word
					assert.True(t, slices.ContainsFunc(row.english, func(e string) bool { return strings.HasPrefix(e, w[:familyPrefix]) }), "%s: %s", line, w)
				}
			}
		}
	}
	assert.Equal(t, len(rows), len(defaultForeign()))
}

// A host's words of other languages lead to English ones, from whatever form.
func TestForeign(t *testing.T) {
	docs := []*Document{{Name: "delete_file"}, {Name: "read_contents"}, {Name: "send_mail"}, {Name: "die"}, {Name: "列表"}, {Name: "inhalt"}, {Name: "authorize"}}
	l := &Lexicon{Stop: []string{"the", "of"}, Foreign: []Hint{
		{[]string{"lösch", "удал", "削除", "删除"}, []string{"delete", "remove"}},
		{[]string{"datei", "файл", "ファイル"}, []string{"file"}},
		{[]string{"inhalt"}, []string{"content"}},
		{[]string{"die", "der"}, []string{"the"}},
		{[]string{"列表"}, []string{"mail"}},
		{[]string{"behörde"}, []string{"authority"}}, // no document has it, but one a relative
	}}
	for _, ranker := range []Ranker{RankerLexical, RankerDefault} {
		x := NewIndex(docs, &Options{Ranker: ranker, Lexicon: l, Threshold: -1})
		for query, want := range map[string][]int{
			"Lösche die Datei":             {0}, // and not "die"
			"LÖSCHEN":                      {0},
			"Dateiinhalt":                  {0, 1},
			"Удалите файлы":                {0},
			"このファイルを削除して":                  {0},
			"删除列表":                         {0, 4}, // the catalog has the second word
			"the loschen of the Datei":     nil,    // more English
			"die":                          {3},
			"Löschgewichtsverzeichnisse":   nil,       // what follows is no ending
			"the Datei of the team. Datei": {0},       // each clause for itself
			"der Inhalt der Datei":         {0, 1, 5}, // the catalog has this word, too
			"Inhaltsdatei":                 {0, 1},
		} {
			got := searchDocs(x, query)
			slices.Sort(got)
			assert.Equal(t, want, got, "%s: %s", ranker, query)
		}
	}
	assert.Empty(t, searchDocs(NewIndex(docs, &Options{Lexicon: new(Lexicon), Threshold: -1}), "Удалите файлы"))
	// What it means may be as unknown as the word before it, but is not the same.
	assert.Equal(t, []int{6}, searchDocs(NewIndex(docs, &Options{Lexicon: l, Threshold: -1}), "Zzzzq Behörde"))
}

// What foreign words mean is among the 255 terms of a query. The default ranker leaves out the
// middle, the lexical one the end.
func TestManyForeignWords(t *testing.T) {
	l := new(Lexicon)
	var docs []*Document
	var words []string
	for i := range 300 {
		name := string([]byte{'a' + byte(i/26), 'a' + byte(i%26)})
		words = append(words, "qqq"+name+"zz")
		docs = append(docs, &Document{Name: "hk" + name + "vw"})
		l.Foreign = append(l.Foreign, Hint{[]string{words[i]}, []string{docs[i].Name}})
	}
	for _, test := range []struct {
		ranker Ranker
		words  int
		has    map[int]bool // by document
	}{
		{RankerDefault, 255, map[int]bool{0: true, 127: true, 254: true, 255: false}},
		{RankerDefault, 300, map[int]bool{0: true, 95: true, 105: false, 195: false, 205: true, 299: true}},
		{RankerLexical, 255, map[int]bool{0: true, 127: true, 254: true, 255: false}},
		{RankerLexical, 300, map[int]bool{0: true, 254: true, 255: false, 299: false}},
	} {
		x := NewIndex(docs, &Options{Ranker: test.ranker, Lexicon: l, Threshold: -1})
		got := make(map[int]bool)
		for _, m := range x.Search(strings.Join(words[:test.words], " "), 300, nil) {
			got[m.Doc] = true
		}
		for doc, want := range test.has {
			assert.Equal(t, want, got[doc], "%s, %d words, document %d", test.ranker, test.words, doc)
		}
	}
}

func TestForeignWords(t *testing.T) {
	f := newForeignWords([]Hint{
		{[]string{"dat", "date", "datei", "no"}, []string{"file"}},
		{[]string{"datei"}, []string{"record"}},
		{[]string{"и", "除", "削除"}, []string{"delete"}},
		{[]string{"strich"}, []string{"--"}},
		{[]string{"--"}, []string{"dash"}},
	})
	terms := func(meanings [][]byte) string { return string(bytes.Join(meanings, []byte(" "))) }
	for word, want := range map[string]string{"datei": "fil record", "dat": "fil", "date": "fil", "no": "fil", "и": "delet", "除": "delet", "da": "", "dateien": "", "strich": "", "": ""} {
		assert.Equal(t, want, terms(f.meanings([]byte(word))), word)
	}
	for _, test := range []struct {
		letters string
		short   bool
		want    string
		n       int
	}{
		{"dateien", false, "fil record", 5}, {"daten", false, "fil", 4}, {"datum", false, "", 0}, {"datum", true, "fil", 3}, {"da", true, "", 0},
		{"削除", true, "delet", 6}, {"除外", true, "delet", 3}, {"削", true, "", 0}, {"", true, "", 0},
	} {
		meanings, n := f.longestIn([]byte(test.letters), test.short)
		assert.Equal(t, test.want, terms(meanings), test.letters)
		assert.Equal(t, test.n, n, test.letters)
	}
}

// Any text is searched for without a panic, twice alike and without allocating.
func FuzzForeign(f *testing.F) {
	x := NewIndex(chores(), nil)
	for _, seed := range []string{"Lösche die Datei", "Удали файлы. Покажи логи", "このファイルを削除して", "파일을 삭제해줘", strings.Repeat("ficheiro ", 300), "é\xff列 表"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := x.Search(query, 5, nil)
		if again := x.Search(query, 5, nil); !sameMatches(got, again) {
			t.Fatalf("%q: %v, then %v", query, got, again)
		}
		for _, m := range got {
			x.Explain(query, m.Doc)
		}
	})
}

func TestForeignAllocates(t *testing.T) {
	if mcptest.Race() {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties pools
	x := NewIndex(chores(), nil)
	var dst []Match
	for _, query := range []string{"Lösche den Branch", "Удали ветку", "ブランチを削除して"} {
		dst = x.AppendSearch(dst[:0], query, 5, nil)
		assert.NotEmpty(t, dst, query)
		assert.LessOrEqual(t, testing.AllocsPerRun(20, func() { dst = x.AppendSearch(dst[:0], query, 5, nil) }), 0.0, query)
	}
}
