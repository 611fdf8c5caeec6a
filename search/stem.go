package search

import (
	"bytes"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// minStem is the shortest stem that a derivational ending leaves.
const minStem = 4

// derivational are the endings that make one kind of word of another, the
// longer before those that they end in.
var derivational = [][]byte{
	[]byte("ational"), []byte("ation"), []byte("ator"), []byte("ate"), []byte("ion"), []byte("or"), []byte("er"),
	[]byte("ment"), []byte("al"), []byte("ly"),
}

// stem removes the English endings of an ASCII word in place and returns its
// new length: of the plural, of -ing and -ed, and one that makes it another
// kind of word.
//
//	queries → queri   creating, created, creation, creator → creat   news → news
//
// The terms only have to be equal for words of one meaning. With the relatives
// of a term (see familyPrefix) there is no measurable difference from Porter's
// algorithm, of which there is no implementation that works in place.
func stem(w []byte) int {
	n := len(w)
	if n < 4 || !text.IsLower(w[n-1]) {
		return n
	}
	ends := func(ending string) bool { return n >= len(ending) && string(w[n-len(ending):n]) == ending }
	switch {
	case ends("sses"):
		n -= 2
	case ends("ies"):
		n -= 2
		w[n-1] = 'y'
	case ends("ss"), ends("us"), ends("is"), string(w) == "news":
	case ends("s"):
		n--
	}
	cut := 0
	switch {
	case ends("ing") && n > 5 && hasVowel(w[:n-3]):
		cut = 3
	case ends("ed") && n > 4 && hasVowel(w[:n-2]):
		cut = 2
	}
	if cut > 0 {
		n -= cut
		if n > 3 && w[n-1] == w[n-2] && !isVowel(w[n-1]) && w[n-1] != 'l' && w[n-1] != 's' && w[n-1] != 'z' {
			n-- // planned
		}
	}
	for _, ending := range derivational {
		if ending[len(ending)-1] == w[n-1] && n-len(ending) >= minStem && bytes.HasSuffix(w[:n], ending) {
			n -= len(ending)
			break
		}
	}
	switch {
	case n > 3 && w[n-1] == 'e':
		n--
	case n > 3 && w[n-1] == 'y' && !isVowel(w[n-2]):
		w[n-1] = 'i'
	}
	return n
}

func isVowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u', 'y':
		return true
	}
	return false
}

func hasVowel(w []byte) bool {
	for _, c := range w {
		if isVowel(c) {
			return true
		}
	}
	return false
}
