// Package scan finds suspicious text in the definitions of tools: text that may try to
// steer the model, or to hide from people.
//
// A Mark is no verdict. A person must judge it: some servers have honest reasons for
// such text, and an attacker can avoid every mark.
package scan

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Mark is suspicious text in a tool's definition.
type Mark struct {
	Kind  Kind
	Place string // JSON pointer into the tools/list element, such as /description; at most 200 characters
	Text  string // the suspicious text: one line of at most 80 characters, invisible ones written like U+200B
}

// A Kind says why a [Mark] is suspicious, in words for people.
type Kind string

const (
	Hidden      Kind = "hidden text"              // invisible, reordering or far-off characters
	Encoded     Kind = "encoded text"             // words in base64 or hexadecimal
	Leak        Kind = "a leak"                   // a request for keys, or an image whose address carries data
	Instruction Kind = "instruction to the model" // one against the user, the host or other tools
	OtherServer Kind = "tool of another server"   // the name of one
)

// maxMarks is the greatest number of marks of one tool.
const maxMarks = 20

// Definition returns the marks in a tools/list element, in the order of the text: at
// most 20, and at most one of each kind per string or member name. It returns nil if
// raw is not a JSON object.
//
// foreign reports whether a word names a tool of another server. Definition calls it for
// words of titles and descriptions that look like an identifier, or stand in backquotes
// and are not called a parameter, and marks each name once. If foreign is nil, no mark is
// of the kind [OtherServer].
//
// It takes 0.05 to 0.5 µs a byte, whatever is in raw: a definition of 256 KiB takes up to
// 0.13 s.
func Definition(raw json.RawMessage, foreign func(word string) bool) []Mark {
	n, ok := text.Definition(raw)
	if !ok {
		return nil
	}
	s := scanner{foreign: foreign}
	for _, kid := range n.Kids {
		if own, ok := kid.Value.(string); ok && len(s.named) < maxMarks && text.FoldCase(kid.Name) == "name" {
			s.named = append(s.named, own)
		}
	}
	s.node(n, false)
	return s.marks
}

type scanner struct {
	named   []string // reported tools, and the tool itself; at most maxMarks of each
	foreign func(word string) bool
	path    []string
	marks   []Mark
}

// node scans the strings of n. If prose is set, it also looks for names of tools.
func (s *scanner) node(n text.Node, prose bool) {
	if text, ok := n.Value.(string); ok {
		s.text(text)
		if prose && s.foreign != nil {
			s.references(text)
		}
	}
	for i, kid := range n.Kids {
		if len(s.marks) == maxMarks {
			return
		}
		if n.Value == json.Delim('[') {
			kid.Name = strconv.Itoa(i)
		}
		s.path = append(s.path, kid.Name)
		s.text(kid.Name)
		s.node(kid, kid.Name == "description" || kid.Name == "title")
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *scanner) report(kind Kind, text string) {
	var place strings.Builder
	for _, name := range s.path {
		place.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
		if place.Len() > utf8.UTFMax*maxPlace {
			break
		}
	}
	if len(s.marks) < maxMarks {
		s.marks = append(s.marks, Mark{kind, spellOut(place.String(), maxPlace), spellOut(text, maxText)})
	}
}

// spellOut returns text as one clean line with hidden characters written as their
// code points.
func spellOut(line string, limit int) string {
	var b strings.Builder
	for _, r := range line[:min(len(line), utf8.UTFMax*limit)] {
		if isHidden(r) {
			fmt.Fprintf(&b, "%U", r)
		} else {
			b.WriteRune(r)
		}
	}
	return text.Line(b.String(), limit)
}

// isHidden reports whether r is invisible but not white space.
func isHidden(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	return unicode.IsControl(r) && !unicode.IsSpace(r) || text.IsInvisible(r) && r != utf8.RuneError
}

func (s *scanner) text(text string) {
	if start, end := hiddenIn(text); end > 0 {
		s.report(Hidden, text[start:end])
	}
	for start, end := range runs(text, isBase64) {
		if end-start >= minEncoded && isEncodedText(text[start:end]) {
			s.report(Encoded, text[start:end])
			break
		}
	}
	if strings.Contains(text, "![") {
		if at := leakyImage.FindStringIndex(text); at != nil {
			s.report(Leak, text[at[0]:at[1]])
		}
	}
	book := phrases()
	tokens := book.tokens(text)
	found := make(map[Kind]bool)
	for i, t := range tokens {
		for _, p := range book.phrases[t.number] {
			if found[p.kind] {
				continue
			}
			if n := p.match(tokens[i:]); n > 0 {
				found[p.kind] = true
				s.report(p.kind, text[t.start:tokens[i+n-1].end])
			}
		}
	}
}

// hiddenIn returns the place of the first hidden text, including a word that it
// divides. It returns 0, 0 if there is none.
func hiddenIn(text string) (start, end int) {
	var before rune
	blanks := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case isHidden(r):
			run := text[i:]
			if stop := strings.IndexFunc(run, func(r rune) bool { return !isHidden(r) }); stop >= 0 {
				run = run[:stop]
			}
			n = len(run)
			after, _ := utf8.DecodeRuneInString(text[i+n:])
			if !isJoin(before, run, after) {
				word := strings.LastIndexFunc(text[:i], unicode.IsSpace) + 1
				rest := strings.IndexFunc(text[i+n:], unicode.IsSpace)
				if rest < 0 {
					rest = len(text) - i - n
				}
				return max(word, i-20), i + n + min(rest, 20)
			}
		case unicode.IsSpace(r):
			blanks++
		case blanks > maxBlanks:
			return i, len(text)
		default:
			blanks = 0
		}
		before = r
		i += n
	}
	return 0, 0
}

// isJoin reports whether a run of hidden characters is normal in its script or
// emoji. Such a run is short, consists of characters that join or choose a form,
// and stands next to a character outside ASCII or a keycap; or it makes a flag.
func isJoin(before rune, run string, after rune) bool {
	if before == '🏴' && len(run) <= 4*7 {
		return strings.Trim(run, flagTags) == ""
	}
	joins := strings.IndexFunc(run, func(r rune) bool {
		return !unicode.Is(unicode.Variation_Selector, r) && !strings.ContainsRune("\u200c\u200d\u200e\u200f\u061c", r)
	}) < 0
	return joins && utf8.RuneCountInString(run) <= 2 && (before >= utf8.RuneSelf || after >= utf8.RuneSelf)
}

// isEncodedText reports whether word is readable text in base64 or hexadecimal.
func isEncodedText(word string) bool {
	word = strings.NewReplacer("-", "+", "_", "/").Replace(word[:min(len(word), 400)])
	data, err := hex.DecodeString(word[:len(word)&^1])
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(word[:len(word)&^3])
	}
	for !utf8.Valid(data) && len(data) > len(word)/2-4 {
		data = data[:len(data)-1] // drop a character cut in the middle
	}
	return err == nil && utf8.Valid(data) && bytes.ContainsRune(data, ' ') &&
		bytes.IndexFunc(data, isHidden) < 0
}

// references reports the names of foreign tools in text.
func (s *scanner) references(text string) {
	for start, end := range runs(text, isIdentifier) {
		for ; start < end && !isLetter(text[start]); start++ {
		}
		for ; start < end && !isLetter(text[end-1]); end-- {
		}
		word := text[start:end]
		quoted := strings.HasSuffix(text[:start], "`") && strings.HasPrefix(text[end:], "`") && !saysParameter(text[end+1:])
		if word != "" && (quoted || strings.ContainsAny(word, "_.-") || isCamel(word)) && !slices.Contains(s.named, word) && s.foreign(word) {
			s.named = append(s.named, word)
			s.report(OtherServer, word)
		}
		if len(s.marks) == maxMarks {
			return
		}
	}
}

// saysParameter reports whether the word before rest is the name of a parameter: "the
// `search` parameter".
func saysParameter(rest string) bool {
	for _, noun := range [...]string{" parameter", " argument", " option", " field", " property"} {
		if strings.HasPrefix(rest, noun) {
			return true
		}
	}
	return false
}

// runs yields the start and the end of each longest run of bytes that are in.
func runs(text string, in func(c byte) bool) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for start := 0; start < len(text); start++ {
			end := start
			for end < len(text) && in(text[end]) {
				end++
			}
			if end > start && !yield(start, end) {
				return
			}
			start = end
		}
	}
}

// isLetter reports whether c is a letter or a digit of ASCII.
func isLetter(c byte) bool {
	return text.IsLower(c) || text.IsUpper(c) || '0' <= c && c <= '9'
}

func isBase64(c byte) bool { return isLetter(c) || c == '+' || c == '/' || c == '_' || c == '-' }

func isIdentifier(c byte) bool { return isLetter(c) || c == '_' || c == '.' || c == '-' }

// isCamel reports whether a capital follows a small letter.
func isCamel(word string) bool {
	for i := 1; i < len(word); i++ {
		if text.IsLower(word[i-1]) && text.IsUpper(word[i]) {
			return true
		}
	}
	return false
}

const (
	maxPlace   = 200
	maxText    = 80
	minEncoded = 32  // bytes of a word
	maxBlanks  = 100 // blanks that may separate words; more push text out of view
	flagTags   = "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0073\U000e0063\U000e0074\U000e0077\U000e006c\U000e007f"
)

var leakyImage = regexp.MustCompile(`!\[[^\]\n]*\]\(\s*https?://[^)\n]*[?{<$\[]`)
