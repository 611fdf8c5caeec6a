package search

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSlipOf(t *testing.T) {
	tests := []struct {
		word, term string
		want       slip
	}{
		{"weather", "weather", 0},
		{"waether", "weather", swapped},
		{"ewather", "weather", swapped}, // also the first two
		{"weathre", "weather", swapped},
		{"wether", "weather", edited},
		{"weatherr", "weather", edited},
		{"weathe", "weather", edited},
		{"weaather", "weather", edited},
		{"weaxher", "weather", edited},
		{"weathex", "weather", edited},
		{"wweather", "weather", edited}, // the second w may be the wrong one
		{"xeather", "weather", 0},       // the first letter is right
		{"eather", "weather", 0},
		{"xweather", "weather", 0},
		{"weahtre", "weather", 0}, // two slips
		{"wther", "weather", 0},
		{"weathersx", "weather", 0},
		{"wehtaer", "weather", 0}, // no neighbours
		{"", "weather", 0},
		{"w", "", 0},
		{"", "", 0},
		{"aa", "aa", 0},
		{"ab", "ba", swapped},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, slipOf([]byte(test.word), []byte(test.term)), "%q for %q", test.word, test.term)
	}
}

func TestSlipOfEqualsPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	random := func() string {
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = 'a' + byte(rng.IntN(3))
		}
		return string(b)
	}
	kinds := map[slip]int{}
	for range 100_000 {
		word, term := random(), random()
		if d := len(word) - len(term); d > 1 || d < -1 {
			continue
		}
		got, want := slipOf([]byte(word), []byte(term)), plainSlip(word, term)
		require.Equal(t, want, got, "%q for %q", word, term)
		kinds[got]++
		if got != 0 {
			require.LessOrEqual(t, bits.OnesCount32(text.Letters([]byte(word))^text.Letters([]byte(term))), 2, "%q for %q", word, term)
		}
	}
	assert.Greater(t, kinds[swapped], 300)
	assert.Greater(t, kinds[edited], 1000)
}

func TestCorrect(t *testing.T) {
	lexicon := &Lexicon{Stop: []string{"please", "about", "what"}, Faint: []string{"wonder"}, Generic: []string{"fetch"}, Synonyms: [][]string{{"invoice", "receipt"}}}
	docs := []*Document{
		{Name: "branch message alter later tang target"},
		{Name: "branch brand tang"},
		{Name: "branches brandy staple stable"},
		{Name: "repositories"},
		{Name: "Überweisung about42 abouts99"},
		{Name: strings.Repeat("n", 24) + " " + strings.Repeat("q", 25)},
		{Name: "wonda pleasx"}, {Name: "wonda pleasx"},
	}
	tests := []struct {
		name string
		word string
		want string // "" if there is none
	}{
		{"swapped", "barnch", "branch"},
		{"left out", "mesage", "messag"},
		{"put in", "messsage", "messag"},
		{"replaced", "mexsage", "messag"},
		{"with an ending", "braches", "branch"},
		{"swapped before edited", "letar", ""},
		{"the first two", "rbanch", "branch"},
		{"of more documents", "brancy", "branch"},
		{"a word of the lexicon only", "invioce", "invoic"},
		{"a stop word", "plese", "pleas"},
		{"a stop word before one of documents", "pleasq", "pleas"},
		{"a faint word before one of documents", "wondq", "wond"},
		{"no stop word for what an ending leaves", "weater", ""},
		{"the word before its stem", "targed", "target"},
		{"of equal ones the first", "stabple", "stabl"},
		{"too short", "brnd", ""},
		{"too long", strings.Repeat("q", 23) + "xqq", ""},
		{"as long as may be", strings.Repeat("n", 23) + "x", strings.Repeat("n", 24)},
		{"first letter wrong", "xranch", ""},
		{"two slips", "barnhc", ""},
		{"accents do not matter", "uberwiesung", "uberweisung"},
		{"unknown", "quuxly", ""},
	}
	x := NewIndex(docs, &Options{Lexicon: lexicon})
	plain := newPlainIndex(docs, RankerDefault, newPlainLexicon(lexicon), 0)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := plainTerms(test.word)[0]
			got := ""
			if n, ok := x.correct([]byte(w.full), []byte(w.text)); ok {
				got = string(x.vocabulary.text(n))
			}
			assert.Equal(t, test.want, got)
			want, _ := plain.correct(w.full, w.text)
			assert.Equal(t, want, got, "by the plain index")
		})
	}

	// A removed word does not correct queries.
	y := x.With(docs[1:])
	_, ok := y.correct([]byte("mesage"), []byte("mesag"))
	assert.False(t, ok)
	n, ok := x.correct([]byte("mesage"), []byte("mesag"))
	assert.True(t, ok)
	assert.Equal(t, "messag", string(x.vocabulary.text(n)))
}

// Two letters are swapped back, or one of a pair is left out, before the ending is removed.
func TestUndo(t *testing.T) {
	l := &Lexicon{Stop: []string{"other"}, Faint: []string{"wonder"}}
	docs := []*Document{{Name: "authorize"}, {Name: "forms from"}, {Name: "forms brand"}, {Name: "wodner wodenr"}, {Name: strings.Repeat("n", 22) + "xk"}, {Name: "bran4d"}}
	x := NewIndex(docs, &Options{Lexicon: l})
	for word, want := range map[string]string{
		"authoorize": "authoriz", "authhorize": "authoriz", "authorizee": "authoriz", "auhtorized": "authoriz", "uathorize": "authoriz", "authorizde": "authoriz", "aauthorize": "authoriz", "auuthhorize": "",
		"frosm": "from", "fomrs": "form", "formss": "form", "rform": "", "rbanding": "brand", "ohter": "other", "otherr": "other", "wonedr": "wond", "brnad": "brand", "brna": "",
		strings.Repeat("n", 22) + "kx": strings.Repeat("n", 22) + "xk", "n" + strings.Repeat("n", 22) + "xk": "", "4brand": "", "": "", "quuux": "",
	} {
		term, ok := x.undo([]byte(word), []byte(word))
		got := ""
		if ok {
			got = string(x.vocabulary.text(term))
		}
		assert.Equal(t, want, got, word)
	}
}

func TestFamily(t *testing.T) {
	assert.Equal(t, "autho", string(family([]byte("authoriz"))))
	assert.Equal(t, "autho", string(family([]byte("autho"))))
	for _, none := range []string{"", "auth", "aut2oriz", "über", "überweisung", "12345"} {
		assert.Nil(t, family([]byte(none)), none)
	}

	docs := []*Document{{Name: "author"}, {Name: "authorize"}, {Name: "authoritative"}, {Name: "autocrat"}}
	x := NewIndex(docs, nil)
	var members []string
	parts := x.vocabulary.members([]byte("autho"))
	for _, m := range slices.Concat(parts[:]...) {
		if line := string(x.vocabulary.text(m.term)); x.heads.at(m.term).df() > 0 {
			members = append(members, line)
			assert.Equal(t, text.Letters([]byte(line)), m.letters)
		}
	}
	assert.Equal(t, []string{"authoriz", "authoritativ"}, members)
	assert.Zero(t, x.vocabulary.members([]byte("zzzzz")))
}
