package search

import "github.com/mcphybrid/mcphybrid/internal/text"

// minStem is the least length that removing a derivational ending leaves, in
// letters.
const minStem = 4

// derivational lists endings that turn one kind of word into another, such as a
// verb into a noun, by their last letter. A longer ending stands before its own
// suffixes.
var derivational = [26][]string{
	'e' - 'a': {"ate"},
	'l' - 'a': {"ational", "al"},
	'n' - 'a': {"ation", "ion"},
	'r' - 'a': {"ator", "or", "er"},
	't' - 'a': {"ment"},
	'y' - 'a': {"ly"},
}

// stem removes English endings from an ASCII word in place and returns its new
// length. It removes the plural, -ing or -ed, and one derivational ending. It may
// change the last letter of what is left, and nothing else.
//
//	queries → queri   creating, created, creation, creator → creat   news → news
//
// A stem need not be a word; it only has to be equal for words of one meaning.
// Together with relatives (see familyPrefix), recall is the same as with
// Porter's algorithm, which has no Go implementation that works in place.
func stem(w []byte) int {
	n := len(w)
	if n < 4 || !text.IsLower(w[n-1]) {
		return n
	}
	ends := func(ending string) bool { return n >= len(ending) && string(w[n-len(ending):n]) == ending }
	y := 0 // where a y stands in place of an i
	switch {
	case ends("sses"):
		n -= 2
	case ends("ies"):
		n -= 2
		y = n - 1
		w[y] = 'y'
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
	if last := w[n-1]; text.IsLower(last) {
		for _, ending := range derivational[last-'a'] {
			if n-len(ending) >= minStem && ends(ending) {
				n -= len(ending)
				break
			}
		}
	}
	switch {
	case n > 3 && w[n-1] == 'e':
		n--
	case n > 3 && w[n-1] == 'y' && !isVowel(w[n-2]):
		w[n-1] = 'i'
	}
	if y >= n { // it is behind the stem
		w[y] = 'i'
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
