// Package tiktoken counts tokens as OpenAI's models do, for hosts that want exact figures
// from mcphybrid instead of estimates:
//
//	counter, err := tiktoken.New("o200k_base")
//
// A [Counter] is an mcphybrid.TokenCounter. The vocabularies are embedded in the program,
// which grows by about 9 MB; the package loads nothing else.
//
// The package is a separate module, so that hosts that only estimate don't link it.
package tiktoken

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// A Counter counts the tokens of one encoding. It is safe for concurrent use.
type Counter struct {
	codec interface {
		Count(text string) (int, error)
	}
}

// New returns a Counter for an encoding: "o200k_base", that of GPT-4o and what
// came after it, or "cl100k_base", that of GPT-4 and GPT-3.5. The first for an
// encoding loads its vocabulary, which the others share.
func New(encoding string) (*Counter, error) {
	switch encoding {
	case "o200k_base":
		return &Counter{codec.NewO200kBase()}, nil
	case "cl100k_base":
		return &Counter{codec.NewCl100kBase()}, nil
	}
	return nil, fmt.Errorf(`tiktoken: unknown encoding %q: must be "o200k_base" or "cl100k_base"`, encoding)
}

// window is how many bytes are counted at a time. The tokenizer takes quadratic time for
// text without breaks, such as a long line of dashes.
const window = 512

// CountTokens returns the number of tokens of text alone, without those by
// which a provider marks the messages around it. Names of special tokens, such
// as <|endoftext|>, are ordinary text. A byte that is not UTF-8 counts as
// U+FFFD, which encoding/json makes of it.
//
// The number is exact, unless 512 bytes come without the end of a word or a
// number: such are counted in parts of that size, each of which may add a
// token or two. The time is proportional to the length of text.
func (c *Counter) CountTokens(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	total := 0
	for text != "" {
		n := cut(text, window)
		tokens, err := c.codec.Count(text[:n])
		if err != nil {
			tokens = n // there are never more
		}
		total += tokens
		text = text[n:]
	}
	return total
}

// cut returns the length of the part of text that is counted next: at most
// limit bytes, up to the last end of a word or else of a code point.
func cut(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	next, _ := utf8.DecodeRuneInString(text[limit:])
	for n := limit; n > 0; {
		prev, size := utf8.DecodeLastRuneInString(text[:n])
		if endsWord(prev, next) {
			return n
		}
		n, next = n-size, prev
	}
	return limit
}

// endsWord reports whether a token can't have both prev and what follows it.
// From a letter, tokens go on to letters, marks and, as in "it's", apostrophes;
// from a digit, to digits; and to a space only from white space.
func endsWord(prev, next rune) bool {
	switch {
	case unicode.IsLetter(prev):
		return !unicode.IsLetter(next) && !unicode.IsMark(next) && next != '\''
	case unicode.IsNumber(prev):
		return !unicode.IsNumber(next)
	}
	return next == ' ' && !unicode.IsSpace(prev)
}
