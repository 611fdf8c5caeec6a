package search

import (
	"cmp"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// maxSubjectWords is how many words tell what a server's tools are about.
const maxSubjectWords = 3

// A subject is what the names of a server's tools are about: how many of them
// have which words.
type Subject struct {
	Server string
	words  map[string]*subjectWord // by stem
}

type subjectWord struct {
	text  string // as it was seen first
	tools int
	place int // among the words, as they were seen
}

// commonWords are the words that say nothing of a server, by stem.
var commonWords = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	l := DefaultLexicon()
	for _, w := range slices.Concat(l.Stop, l.Generic) {
		words[stemOf(w)] = true
	}
	return words
})

func stemOf(word string) string {
	b := []byte(word)
	return string(b[:stem(b)])
}

// add counts the words of a tool's name.
func (s *Subject) Add(name string) {
	seen := make(map[string]bool)
	for _, w := range wordsOf(name) {
		root := stemOf(w)
		if len(w) < 3 || seen[root] || commonWords()[root] || slices.Contains(wordsOf(s.Server), w) {
			continue
		}
		seen[root] = true
		if s.words == nil {
			s.words = make(map[string]*subjectWord)
		}
		if s.words[root] == nil {
			s.words[root] = &subjectWord{text: w, place: len(s.words)}
		}
		s.words[root].tools++
	}
}

// String returns the words that most tools have, of equally common ones those
// that were seen first, separated by commas.
func (s *Subject) String() string {
	var list []*subjectWord
	for _, w := range s.words {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *subjectWord) int {
		return cmp.Or(cmp.Compare(b.tools, a.tools), cmp.Compare(a.place, b.place))
	})
	var words []string
	for _, w := range list[:min(len(list), maxSubjectWords)] {
		words = append(words, w.text)
	}
	return strings.Join(words, ", ")
}

// wordsOf returns the ASCII words of an identifier, in lower case.
//
//	wordsOf("createPullRequest") = create pull request
//	wordsOf("get-HTTP_log2")     = get http log
func wordsOf(name string) (words []string) {
	begin := 0
	end := func(i int) {
		if i > begin {
			words = append(words, strings.ToLower(name[begin:i]))
		}
		begin = i
	}
	for i, r := range name {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r):
			end(i)
			begin = i + len(string(r))
		case i > begin && text.IsUpper(name[i]) && (text.IsLower(name[i-1]) || i+1 < len(name) && text.IsLower(name[i+1])):
			end(i)
		}
	}
	end(len(name))
	return words
}
