package search

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// maxTopicWords is the number of words in [Topic.String].
const maxTopicWords = 3

// A Topic says what a server is about. It counts how many of the
// server's documents have each word in their names. The zero value with a
// Server set is ready to use.
type Topic struct {
	Server string
	own    []string              // the words of Server, once needed
	words  map[string]*topicWord // by stem
}

type topicWord struct {
	text  string // the first spelling seen
	tools int    // how many names have it
	place int    // order in which it was first seen, from 0
}

// commonWords returns the stems of words that fit any server.
var commonWords = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	l := DefaultLexicon()
	for _, w := range slices.Concat(l.Stop, l.Faint, l.Generic) {
		words[stemOf(w)] = true
	}
	return words
})

func stemOf(word string) string {
	b := []byte(word)
	return string(b[:stem(b)])
}

// Add counts the words of one document's name. It skips words of fewer than
// three letters, stop words, generic words and the words of s.Server.
func (s *Topic) Add(name string) {
	seen := make(map[string]bool)
	if s.own == nil {
		s.own = wordsOf(s.Server)
	}
	for _, w := range wordsOf(name) {
		root := stemOf(w)
		if len(w) < 3 || seen[root] || commonWords()[root] || slices.Contains(s.own, w) {
			continue
		}
		seen[root] = true
		if s.words == nil {
			s.words = make(map[string]*topicWord)
		}
		if s.words[root] == nil {
			s.words[root] = &topicWord{text: w, place: len(s.words)}
		}
		s.words[root].tools++
	}
}

// String returns the three most frequent words, separated by ", ". Words of
// equal frequency stand in the order in which they were first seen.
func (s *Topic) String() string {
	var list []*topicWord
	for _, w := range s.words {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *topicWord) int {
		return cmp.Or(cmp.Compare(b.tools, a.tools), cmp.Compare(a.place, b.place))
	})
	var words []string
	for _, w := range list[:min(len(list), maxTopicWords)] {
		words = append(words, w.text)
	}
	return strings.Join(words, ", ")
}

// wordsOf splits an identifier into its ASCII words, in lower case. A digit belongs
// to no word, since numbers do not tell what a server is about.
//
//	wordsOf("createPullRequest") = create pull request
//	wordsOf("get-HTTP_log2")     = get http log
func wordsOf(name string) (words []string) {
	begin := 0
	kind := func(i int) text.Kind {
		if i == len(name) || name[i] >= utf8.RuneSelf {
			return text.Separator
		}
		return text.ASCIIKinds[name[i]]
	}
	end := func(i int) {
		if i > begin {
			words = append(words, strings.ToLower(name[begin:i]))
		}
		begin = i
	}
	for i := range len(name) {
		switch k := kind(i); {
		case k != text.Lower && k != text.Upper:
			end(i)
			begin = i + 1
		case i > begin && k == text.Upper && text.BeginsWord(kind(i-1), kind(i+1)):
			end(i)
		}
	}
	end(len(name))
	return words
}
