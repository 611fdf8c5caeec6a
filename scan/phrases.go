package scan

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"golang.org/x/text/unicode/norm"
)

// maxWord is the length in bytes from which a word is surely in no phrase, however its
// characters are written.
const maxWord = 200

// maxGap is the greatest number of words that ".." matches.
const maxGap = 5

// The phrases are matched word by word, regardless of case. "a|b" matches one of
// the words; ".." matches a few words of the same sentence. Han characters need no
// spaces in the text. A sign before a word must stand directly before it.
const (
	instructionPhrases = `ignore|disregard|forget|override .. previous|prior|preceding|earlier|above|your .. instructions|instruction|prompt|prompts|rules|guidelines|directives
not|never|dont|without .. tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|alert .. user|users|human
not|never|dont show|display this|these|it .. user
hide|conceal this|these|it .. from .. user|users|human
user must|should|shall|may not|never know|notice|see|learn|suspect
keep this|these|it secret|hidden|confidential|private
im start|end
secretly|covertly|surreptitiously
silently send|forward|upload|copy|include|call|add|transmit|post|read|append
before .. any|other|every|all .. tool|tools
dont|never|not use|call|invoke any|other|another .. tool|tools
when|whenever|if|once|while this tool|server|function is available|present|installed|loaded|connected
you are now|actually a|an|in|no
system|developer|admin override|directive
new|updated|real|actual|urgent system instruction|instructions|prompt|message
<important|</important|</system|</instruction|</instructions|</secret|</hidden|</admin|[inst|[/inst|<<sys
忽略|无视|忘记|忽视 .. 之前|以前|先前|上述|以上|前面|此前|系统 .. 指令|指示|提示|说明|规则
不要|切勿|不得|请勿|不能|别 .. 告诉|告知|提及|透露|泄露 .. 用户
任何|其他|其它|所有 .. 工具 前|之前
bỏ|phớt qua|lờ .. hướng|chỉ|lệnh|quy dẫn|thị|lệnh|tắc .. trước|trên
không|đừng|chớ .. nói|kể|báo|tiết|nhắc|cho .. người dùng biết|rằng|về|hay
đừng|chớ|cấm .. nói|kể|báo|tiết|nhắc .. người dùng
trước khi .. bất|mọi .. công cụ`

	leakPhrases = `read|open|cat|include|send|pass|attach|put|copy|contents|content|upload .. .ssh|.aws|.netrc|passwd|.git-credentials
read|open|cat|include|send|pass|attach|put|copy|contents|content|upload .. id rsa|ed25519
your system prompt|message|instructions
entire|full|whole|complete|all|previous conversation|chat history|transcript
读取|发送|打开|上传 .. .ssh
đọc|gửi|mở .. .ssh`
)

// A phraseBook holds the phrases. It numbers their words from 1.
type phraseBook struct {
	numbers map[string]uint16
	phrases map[uint16][]phrase // by first word
}

type phrase struct {
	kind  Kind
	steps []step
}

type step struct {
	words []uint16 // alternatives
	gap   int      // how many other words may stand before it
}

// A token is a word of a text.
type token struct {
	number     uint16 // 0 for a word of no phrase
	start, end int    // in bytes
}

const sentenceEnd = 1<<16 - 1 // the number of a token that no phrase crosses

var phrases = sync.OnceValue(func() *phraseBook {
	b := &phraseBook{make(map[string]uint16), make(map[uint16][]phrase)}
	b.add(Instruction, instructionPhrases)
	b.add(Leak, leakPhrases)
	return b
})

func (b *phraseBook) add(kind Kind, table string) {
	for line := range strings.Lines(table) {
		p := phrase{kind: kind}
		gap := 0
		for _, alternatives := range strings.Fields(line) {
			if alternatives == ".." {
				gap = maxGap
				continue
			}
			s := step{gap: gap}
			gap = 0
			for _, word := range strings.Split(alternatives, "|") {
				if b.numbers[word] == 0 {
					b.numbers[word] = uint16(len(b.numbers) + 1)
				}
				s.words = append(s.words, b.numbers[word])
			}
			p.steps = append(p.steps, s)
		}
		for _, n := range p.steps[0].words {
			b.phrases[n] = append(b.phrases[n], p)
		}
	}
}

// match returns how many of tokens p takes, beginning with the first, or 0 if p
// does not match there.
func (p *phrase) match(tokens []token) int {
	at := 1
	for _, s := range p.steps[1:] {
		for last := at + s.gap; ; at++ {
			if at > last || at == len(tokens) || tokens[at].number == sentenceEnd {
				return 0
			}
			if slices.Contains(s.words, tokens[at].number) {
				break
			}
		}
		at++
	}
	return at
}

// tokens returns the words of line. They are words of prose: capitals divide none, and
// characters that are not seen hide none.
func (b *phraseBook) tokens(line string) (tokens []token) {
	var word []byte
	start, end := 0, 0
	flush := func() {
		if len(word) == 0 {
			return
		}
		if len(word) > maxWord {
			tokens = append(tokens, token{0, start, end})
			word = word[:0]
			return
		}
		word = norm.NFKC.Bytes(word)
		n := b.numbers[string(word)]
		for signs := 1; signs <= 2 && signs <= start; signs++ { // "<important", "</important"
			if m := b.numbers[line[start-signs:start]+string(word)]; m != 0 {
				n = m
			}
		}
		tokens = append(tokens, token{n, start, end})
		word = word[:0]
	}
	raw := []byte(line)
	for i := 0; i < len(line); {
		r, k, n := text.Next(raw[i:])
		switch {
		case r == '\'' || r == '’' || r >= utf8.RuneSelf && isHidden(r): // "don't", and a hidden character that divides a word
		case k == text.Dense:
			flush()
			t := token{0, i, i + n}
			for to := i + 4*n; to >= i+n && t.number == 0; to -= n { // the longest known word
				if to <= len(line) && b.numbers[line[i:to]] != 0 {
					t = token{b.numbers[line[i:to]], i, to}
				}
			}
			tokens = append(tokens, t)
			n = t.end - i
		case k != text.Separator:
			if len(word) == 0 {
				start = i
			}
			word, end = utf8.AppendRune(word, unicode.ToLower(r)), i+n
		default:
			flush()
			next, _ := utf8.DecodeRuneInString(line[i+n:])
			if strings.ContainsRune("。！？；", r) || strings.ContainsRune(".!?;", r) && (i+n == len(line) || unicode.IsSpace(next)) {
				tokens = append(tokens, token{sentenceEnd, i, i + n})
			}
		}
		i += n
	}
	flush()
	return tokens
}
