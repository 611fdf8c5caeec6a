// Package nearest finds the names that a misspelled name most likely means.
package nearest

import (
	"bytes"
	"iter"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	// nearEnough is the least nearness of a near name; equal names have 1000. Half
	// of the words must be equal, where the first word of a tool, mostly a verb,
	// weighs two and the others three; or three quarters of the letters must stay in
	// order.
	nearEnough = 500

	// Limits of a name; registered names have up to 64 bytes.
	maxNearBytes = 128
	maxNearWords = 64
)

// Names returns at most n candidates that are most like name, a tool's name that a
// model got wrong. They are sorted by nearness, then in the order of candidates. It
// returns nil if none is near.
//
// Case and separators don't count. The server, which is the part before the last of
// __ . / and :, only decides between tools of equal nearness. Words may be in
// another order, be cut after four letters, or have one wrong letter.
//
//	create_issue, github.createIsue, issue_create, mcp-github-createissue,
//	mcp_gitlab__create_issue, add_issue  →  mcp_github__create_issue
func Names(name string, candidates iter.Seq[string], n int) []string {
	var want, have foldedName
	want.fold(name)
	if n <= 0 {
		return nil
	}
	var names []string
	var scores []int
	for candidate := range candidates {
		have.fold(candidate)
		floor := nearEnough
		if len(scores) == n {
			floor = scores[n-1] / 100
		}
		score := want.nearness(&have, floor)
		i := slices.IndexFunc(scores, func(s int) bool { return s < score })
		if i < 0 {
			i = len(scores)
		}
		if score == 0 || i >= n {
			continue
		}
		if len(names) < n {
			names, scores = append(names, ""), append(scores, 0)
		}
		copy(names[i+1:], names[i:])
		copy(scores[i+1:], scores[i:])
		names[i], scores[i] = candidate, score
	}
	return names
}

// A foldedName is a name without case and separators. "mcp-GitHub.getURLs" has the
// text "mcpgithubgeturls" and words that begin at 0, 3, 9 and 12.
type foldedName struct {
	text  [maxNearBytes]byte
	words [maxNearWords + 1]uint8 // where each word begins in text, then the end of text
	count int                     // number of words
	first int                     // index of the first word other than "mcp"
	tool  int                     // index of the first word of the tool's own name
}

func (f *foldedName) word(i int) []byte { return f.text[f.words[i]:f.words[i+1]] }

// from returns the text from the given word on.
func (f *foldedName) from(word int) []byte { return f.text[f.words[word]:f.words[f.count]] }

// fold sets f to name. Digits belong to the word that they follow.
func (f *foldedName) fold(name string) {
	name = name[:min(len(name), maxNearBytes)]
	size, count, tool, own := 0, 0, 0, 0
	last := text.Separator
	for i := range len(name) {
		c, now := name[i], kindOf(name[i])
		if now == text.Separator {
			if last == text.Separator && c == '_' || c == '.' || c == '/' || c == ':' {
				own = count
			}
			last = text.Separator
			continue
		}
		if last == text.Separator || now == text.Upper && text.BeginsWord(last, kindOf(name[min(i+1, len(name)-1)])) {
			if count < maxNearWords {
				f.words[count] = uint8(size)
				count++
			}
			tool = min(own, count-1)
		}
		if now == text.Upper {
			c += 'a' - 'A'
		}
		f.text[size] = c
		size++
		last = now
	}
	f.count, f.first, f.tool = count, 0, tool
	f.words[f.count] = uint8(size)
	if f.count > 1 && string(f.word(0)) == "mcp" {
		f.first = 1
	}
	f.tool = max(f.tool, f.first)
}

// kindOf treats a byte outside ASCII as a lower-case letter, so that no name has to be
// decoded.
func kindOf(c byte) text.Kind {
	if c >= utf8.RuneSelf {
		return text.Lower
	}
	return text.ASCIIKinds[c]
}

// nearness returns the nearness of a candidate times 100, plus up to 99 for the
// server. It returns 0 if the nearness is below floor.
func (f *foldedName) nearness(candidate *foldedName, floor int) int {
	shared, server := f.sharedWords(candidate)
	score := max(shared, f.sharedLetters(candidate, max(floor, shared)))
	if score < floor {
		return 0
	}
	if bytes.Equal(f.from(0), candidate.from(0)) {
		score++
	}
	return 100*score + server
}

// sharedWords returns how many words two names share: from 0 to 1000 for the tools'
// own names and from 0 to 90 for the servers' names.
func (f *foldedName) sharedWords(candidate *foldedName) (tool, server int) {
	var used uint64 // bit set of the words of f found in candidate
	find := func(word []byte) int {
		found := 0
		for i := f.first; i < f.count; i++ {
			switch own := f.word(i); {
			case used>>i&1 != 0 || own[0] != word[0]:
			case bytes.Equal(own, word):
				used |= 1 << i
				return 10
			case found == 0 && isSlip(own, word):
				found = i + 1
			}
		}
		if found == 0 {
			return 0
		}
		used |= 1 << (found - 1)
		return 8
	}
	all, both := 0, 0
	for i := candidate.tool; i < candidate.count; i++ {
		weight := 3
		if i == candidate.tool {
			weight = 2
		}
		all += 10 * weight
		both += find(candidate.word(i)) * weight
	}
	for i := candidate.first; i < candidate.tool; i++ {
		server += 9 * find(candidate.word(i)) / (candidate.tool - candidate.first)
	}
	own := both
	for i := f.tool; i < f.count; i++ {
		if used>>i&1 == 0 {
			own += 10 * 3
		}
	}
	if all+own == 0 {
		return 0, 0
	}
	return 2000 * both / (all + own), server
}

// isSlip reports whether two words of four letters or more differ by one letter or
// two swapped letters, or one is a prefix of the other.
func isSlip(a, b []byte) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= 4 && (bytes.HasPrefix(b, a) || distance(a, b, 1) <= 1)
}

// sharedLetters returns, from 0 to 1000, how many letters of two tools' own names
// stay in order. It returns 0 below three quarters or floor. A name without a
// server may begin with one that lacks a separator.
func (f *foldedName) sharedLetters(candidate *foldedName, floor int) (best int) {
	floor = max(floor, 750)
	own := f.from(f.tool)
	for _, begin := range [...]int{candidate.tool, candidate.first} {
		other := candidate.from(begin)
		longer := max(len(own), len(other))
		limit := (longer*(1001-floor) - 1) / 1000 // so that best is at least floor
		if d := distance(own, other, limit); longer > 0 && d <= limit {
			best = max(best, 1000-1000*d/longer)
		}
		if f.tool > f.first {
			break
		}
	}
	return best
}

// distance returns how many letters must be added, removed, replaced or swapped with
// a neighbour to turn a into b. Above limit, it returns any number above limit. Both
// have at most maxNearBytes.
//
// Package search corrects typing errors with its own function: it allows only one
// slip, needs no table and returns the kind of the slip.
func distance(a, b []byte, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	inA, inB := text.Letters(a), text.Letters(b)
	if max(bits.OnesCount32(inA&^inB), bits.OnesCount32(inB&^inA)) > limit {
		return limit + 1
	}
	switch longer := max(len(a), len(b)); {
	case len(a) == 0 || len(b) == 0 || longer == 1:
		return longer
	case limit <= 1:
		if longer == 2 && a[0] == b[len(b)-1] && a[len(a)-1] == b[0] {
			return 1
		}
		return limit + 1
	}
	// Only cells next to the diagonal can be within limit.
	const far = maxNearBytes + 1
	var rows [3][maxNearBytes + 2]uint8 // the last three rows
	for j := range len(b) + 1 {
		rows[0][j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row, above, twoAbove := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		begin, end := max(1, i-limit), min(len(b), i+limit)
		row[begin-1], row[end+1] = far, far
		if begin == 1 {
			row[0] = uint8(i)
		}
		least := row[begin-1]
		for j := begin; j <= end; j++ {
			d := min(above[j], row[j-1]) + 1
			if a[i-1] == b[j-1] {
				d = min(d, above[j-1])
			} else {
				d = min(d, above[j-1]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, twoAbove[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if int(least) > limit {
			return limit + 1
		}
	}
	return int(rows[len(a)%3][len(b)])
}
