package search

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/stretchr/testify/assert"
)

func TestStem(t *testing.T) {
	tests := []struct {
		words []string
		want  string
	}{
		{[]string{"create", "creates", "created", "creating", "creation", "creations", "creator", "creators"}, "creat"},
		{[]string{"query", "queries", "queried"}, "queri"},
		{[]string{"issue", "issues", "issued", "issuing"}, "issu"},
		{[]string{"file", "files", "filed", "filing"}, "fil"},
		{[]string{"plan", "plans", "planned", "planning"}, "plan"},
		{[]string{"search", "searches", "searched", "searching", "searcher"}, "search"},
		{[]string{"call", "calls", "called", "calling"}, "call"},
		{[]string{"deploy", "deploys", "deployed", "deploying", "deployment", "deployments"}, "deploy"},
		{[]string{"address", "addresses"}, "address"},
		{[]string{"status"}, "status"},
		{[]string{"analysis"}, "analysis"},
		{[]string{"news"}, "news"},
		{[]string{"bus"}, "bus"},
		{[]string{"translate", "translates", "translation", "translator"}, "transl"},
		{[]string{"personal", "person"}, "person"}, // only one of two such endings is removed
		{[]string{"personally"}, "personal"},
		{[]string{"user", "users"}, "user"},
		{[]string{"string", "strings"}, "string"},
		{[]string{"thing", "things"}, "thing"},
		{[]string{"need", "needed", "needs"}, "need"},
		{[]string{"play", "plays", "played", "playing"}, "play"},
		{[]string{"is", "a", "", "us", "was"}, ""}, // as they are
		{[]string{"утилиты", "été", "abc1", "v2s2"}, ""},
	}
	for _, test := range tests {
		for _, w := range test.words {
			want := test.want
			if want == "" {
				want = w
			}
			b := []byte(w)
			assert.Equal(t, want, string(b[:stem(b)]), "%q", w)
		}
	}
}

// testdata/stems.golden has what words of all lengths become with each ending.
func TestStemsGolden(t *testing.T) {
	endings := strings.Fields("s es sses ss us is ies y ys e ed eed ing ings ate ates ated ational al als ally ation ations ion ions ator ators or ors er ers ment ments ly")
	var b strings.Builder
	fmt.Fprintf(&b, "What words become: as they are, and with each of %s.\n\n", endings)
	for _, root := range strings.Fields("a b ab ba st ant bet stb plan stop fill fuss buzz pray carry agre creat invit relat organiz x2 2x ab12") {
		fmt.Fprintf(&b, "%s:", root)
		for _, ending := range append([]string{""}, endings...) {
			w := []byte(root + ending)
			fmt.Fprintf(&b, " %s", w[:stem(w)])
		}
		b.WriteString("\n")
	}
	golden.Compare(t, "stems.golden", b.String())
}

// A stem is no longer than its word and begins like it. It has at least two
// letters, or all letters of a shorter word.
func TestStemProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	parts := []string{"a", "e", "i", "y", "b", "s", "t", "r", "l", "ing", "ed", "ies", "es", "ion", "ation", "ational", "ator", "ment", "al", "ly", "er"}
	for range 50_000 {
		var w []byte
		for range rng.IntN(6) {
			w = append(w, parts[rng.IntN(len(parts))]...)
		}
		s, again := bytes.Clone(w), bytes.Clone(w)
		n := stem(s)
		if n > len(w) || n < min(len(w), 2) {
			t.Fatalf("the stem of %q has %d letters", w, n)
		}
		if n > 1 && !bytes.HasPrefix(w, s[:n-1]) {
			t.Fatalf("%q has the stem %q", w, s[:n])
		}
		if m := stem(again); m != n || !bytes.Equal(s, again) {
			t.Fatalf("%q has the stems %q and %q", w, s[:n], again[:m])
		}
	}
}

// Stemming changes at most the last letter of the stem, so that a word can be told as it
// was written.
func TestStemChangesTheLastLetterOnly(t *testing.T) {
	for _, word := range strings.Fields("queries families supplies assemblies anomalies dies cities body bodies planned replies bytes eyes") {
		w := []byte(word)
		n := stem(w)
		w[n-1] = word[n-1]
		assert.Equal(t, word, string(w))
	}
}
