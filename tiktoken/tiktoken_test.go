package tiktoken

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var encodings = []string{"o200k_base", "cl100k_base"}

func newCounter(t testing.TB, encoding string) *Counter {
	t.Helper()
	c, err := New(encoding)
	require.NoError(t, err)
	return c
}

// TestPublished has counts by OpenAI's own tokenizer: from the tests of
// github.com/openai/tiktoken, from the cookbook's page on counting tokens, and,
// in the last group, from the tests of another port.
func TestPublished(t *testing.T) {
	tests := []struct {
		text          string
		o200k, cl100k int // -1: not published
	}{
		{"hello world", -1, 2},
		{"rer", -1, 1},
		{"'rer", -1, 2},
		{"today\n ", -1, 3},
		{"today\n \n", -1, 2}, // tokenizer v0.8.1 to v0.10.0 count 3
		{"today\n  \n", -1, 2},
		{" \u00850", -1, 4},
		{"👍", -1, 3},

		{"tiktoken is great!", -1, 6},
		{"antidisestablishmentarianism", 6, 6},
		{"2 + 2 = 4", 7, 7},
		{"お誕生日おめでとう", 8, 9},

		{"Hello world", 2, -1},
		{"Hello, world!", 4, -1},
		{"你好世界", 2, -1},
		{"Hello 🌍 World!", 5, -1},
	}
	o200k, cl100k := newCounter(t, "o200k_base"), newCounter(t, "cl100k_base")
	for _, test := range tests {
		if test.o200k >= 0 {
			assert.Equal(t, test.o200k, o200k.CountTokens(test.text), "o200k_base %q", test.text)
		}
		if test.cl100k >= 0 {
			assert.Equal(t, test.cl100k, cl100k.CountTokens(test.text), "cl100k_base %q", test.text)
		}
	}
}

func TestUnknownEncoding(t *testing.T) {
	for _, encoding := range []string{"", "gpt-4o", "O200K_BASE", "r50k_base"} {
		c, err := New(encoding)
		assert.Nil(t, c)
		assert.EqualError(t, err, fmt.Sprintf(`tiktoken: unknown encoding %q: must be "o200k_base" or "cl100k_base"`, encoding))
	}
}

func TestOddTexts(t *testing.T) {
	for _, encoding := range encodings {
		c := newCounter(t, encoding)
		assert.Equal(t, 0, c.CountTokens(""))
		assert.Greater(t, c.CountTokens("<|endoftext|>"), 1, "a special token counts as ordinary text")
		assert.Equal(t, c.CountTokens("a\ufffd\ufffdb"), c.CountTokens("a\xff\xe3b"), "each byte that is not UTF-8")
		assert.Equal(t, c.CountTokens(strings.Repeat("\ufffd", 2000)), c.CountTokens(strings.Repeat("\x80", 2000)))
		assert.Positive(t, c.CountTokens("\x00\u202e\U0010ffff"))
	}
}

type brokenCodec struct{}

func (brokenCodec) Count(string) (int, error) { return 0, errors.New("broken") }

func TestCodecFails(t *testing.T) {
	c := &Counter{brokenCodec{}}
	assert.Equal(t, 700, c.CountTokens(strings.Repeat("word ", 140)), "as many as could be")
}

// texts returns texts of many kinds. Each has n bytes or a little less.
func texts(n int) map[string]string {
	kinds := map[string]string{
		"prose":     "It's the first sentence of many; the 2nd wasn't much longer than this one. ",
		"lines":     "A line\n\n   and an indented one\r\n\t\n",
		"json":      `{"id":10427,"name":"Zoë","tags":["a","b_c"],"ok":true,"at":"2026-11-21T17:30:00Z"},`,
		"code":      "\tif err := run(ctx, 0x7f); err != nil {\n\t\treturn fmt.Errorf(\"x: %w\", err)\n\t}\n\n",
		"hex":       "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"numbers":   "3.14159, 2.71828, -0.57721, 1.41421, ",
		"Chinese":   "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，",
		"Thai":      "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์ ",
		"Hindi":     "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है। ",
		"Arabic":    "يُولَدُ جَمِيعُ النَّاسِ أَحْرَارًا، ",
		"emoji":     "ok 👨‍👩‍👧‍👦 🇩🇪👍🏽 ",
		"no letter": "-+-+ .., ;; ",
		"letters":   "a",
		"dashes":    "-",
		"spaces":    " ",
		"blank":     " \n",
		"newlines":  "\n",
		"digits":    "0",
		"Han":       "汉",
		"marks":     "\u0301",
		"not UTF-8": "\xff",
	}
	for name, text := range kinds {
		kinds[name] = strings.Repeat(text, n/len(text))
	}
	return kinds
}

// Where words end, the parts have the count of the whole. Elsewhere, no part
// adds more than two.
func TestParts(t *testing.T) {
	inexact := map[string]bool{
		"letters": true, "dashes": true, "spaces": true, "blank": true, "newlines": true,
		"digits": true, "Han": true, "marks": true, "not UTF-8": true,
	}
	for _, encoding := range encodings {
		c := newCounter(t, encoding)
		for name, text := range texts(2000) {
			want, err := c.codec.Count(string([]rune(text)))
			require.NoError(t, err)
			got := c.CountTokens(text)
			if !inexact[name] {
				assert.Equal(t, want, got, "%s %s", encoding, name)
				continue
			}
			parts := len(string([]rune(text)))/window + 1
			assert.InDelta(t, want, got, float64(2*parts), "%s %s", encoding, name)
		}
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		text  string
		limit int
		want  string
	}{
		{"one two", 9, "one two"},
		{"one two", 7, "one two"},
		{"one two", 6, "one"},
		{"one two", 3, "one"},
		{"one two", 2, "on"},
		{"it's it's", 7, "it's"},
		{"wasn't", 5, "wasn'"}, // no word ends
		{"a1b2c3", 5, "a1b2c"},
		{"12345", 3, "123"},
		{"e\u0301e\u0301 x", 5, "e\u0301e"},
		{"e\u0301e\u0301 x", 2, "e"},
		{"汉汉汉", 4, "汉"},
		{"汉，汉", 6, "汉"},
		{"----", 3, "---"},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, test.text[:cut(test.text, test.limit)], "%q, %d", test.text, test.limit)
	}
}

// The time is proportional to the length: 16 times the text must take nothing
// like 256 times as long.
func TestTime(t *testing.T) {
	c := newCounter(t, "o200k_base")
	short, long := texts(4<<10), texts(64<<10)
	for _, name := range []string{"letters", "dashes", "blank", "not UTF-8"} {
		begun := time.Now()
		c.CountTokens(short[name])
		one := time.Since(begun)
		many := time.Hour
		for range 3 { // the machine may be busy meanwhile
			begun = time.Now()
			c.CountTokens(long[name])
			many = min(many, time.Since(begun))
		}
		assert.Less(t, many, 100*one+500*time.Millisecond, "%s: %v, then %v", name, one, many)
	}
}

// Counters of one encoding share its vocabulary. The first one loads it.
func TestConcurrent(t *testing.T) {
	all := texts(400)
	want := make(map[string]int)
	for name, text := range all {
		want[name] = newCounter(t, "cl100k_base").CountTokens(text)
	}
	shared := newCounter(t, "cl100k_base")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := shared
			if i%2 == 1 {
				c, _ = New("cl100k_base")
			}
			for name, text := range all {
				assert.Equal(t, want[name], c.CountTokens(text), name)
			}
		})
	}
	wg.Wait()
}

// Where words end, the counts of both parts add up to that of the whole.
func FuzzCountTokens(f *testing.F) {
	for _, text := range texts(100) {
		f.Add(text, 50)
	}
	f.Add("don't 1234'5 x\u0301'y \n \n<|endoftext|>\u1c89\\u", 20)
	var counters []*Counter
	for _, encoding := range encodings {
		counters = append(counters, newCounter(f, encoding))
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		text = string([]rune(text)) // up to three times as long
		if len(text) > window {
			return // without the end of a word, its count would not be exact
		}
		n := cut(text, min(max(limit, utf8.UTFMax), len(text)))
		next, _ := utf8.DecodeRuneInString(text[n:])
		prev, _ := utf8.DecodeLastRuneInString(text[:n])
		require.True(t, utf8.ValidString(text[:n]))
		require.Equal(t, text == "", n == 0)
		for _, c := range counters {
			whole, err := c.codec.Count(text)
			require.NoError(t, err)
			require.LessOrEqual(t, whole, len(text))
			if n < len(text) && endsWord(prev, next) {
				require.Equal(t, whole, c.CountTokens(text[:n])+c.CountTokens(text[n:]), "%q and %q", text[:n], text[n:])
			}
		}
	})
}

func BenchmarkCountTokens(b *testing.B) {
	for _, encoding := range encodings {
		c := newCounter(b, encoding)
		for _, name := range []string{"prose", "json", "Chinese", "letters", "not UTF-8"} {
			text := texts(64 << 10)[name]
			b.Run(fmt.Sprintf("encoding=%s/text=%s", encoding, strings.ReplaceAll(name, " ", "_")), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					c.CountTokens(text)
				}
			})
		}
	}
}
