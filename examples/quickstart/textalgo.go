package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words splits s at everything but letters and digits, and within camelCase.
func words(s string) []string {
	var list []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			list = append(list, string(word))
			word = nil
		}
	}
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return list
}

func capitalize(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToTitle(first)) + strings.ToLower(word[size:])
}

func changeCase(text, style string) string {
	switch style {
	case "upper":
		return strings.ToUpper(text)
	case "lower":
		return strings.ToLower(text)
	case "title":
		inWord := false
		return strings.Map(func(r rune) rune {
			first := !inWord
			inWord = unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'' || r == '’'
			if first {
				return unicode.ToTitle(r)
			}
			return unicode.ToLower(r)
		}, text)
	}
	list := words(text)
	for i, word := range list {
		switch {
		case style == "constant":
			list[i] = strings.ToUpper(word)
		case style == "pascal" || style == "camel" && i > 0:
			list[i] = capitalize(word)
		default:
			list[i] = strings.ToLower(word)
		}
	}
	separators := map[string]string{"snake": "_", "constant": "_", "kebab": "-"}
	return strings.Join(list, separators[style])
}

// ascii spells accented Latin letters without their accents.
var ascii = strings.NewReplacer(
	"ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "æ", "ae", "œ", "oe", "þ", "th", "ð", "d", "đ", "d", "ł", "l", "ø", "o",
	"á", "a", "à", "a", "â", "a", "ã", "a", "å", "a", "ą", "a", "ç", "c", "ć", "c", "č", "c", "ď", "d",
	"é", "e", "è", "e", "ê", "e", "ë", "e", "ę", "e", "ě", "e", "ğ", "g", "í", "i", "ì", "i", "î", "i", "ï", "i", "ı", "i",
	"ñ", "n", "ń", "n", "ň", "n", "ó", "o", "ò", "o", "ô", "o", "õ", "o", "ő", "o", "ř", "r", "ś", "s", "š", "s", "ş", "s",
	"ť", "t", "ú", "u", "ù", "u", "û", "u", "ů", "u", "ű", "u", "ý", "y", "ÿ", "y", "ź", "z", "ż", "z", "ž", "z",
	"'", "", "’", "",
)

func slugify(text string, maxLength int) string {
	fields := strings.FieldsFunc(ascii.Replace(strings.ToLower(text)), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	slug := strings.Join(fields, "-")
	if len(slug) <= maxLength {
		return slug
	}
	if end := strings.LastIndexByte(slug[:maxLength+1], '-'); end > 0 {
		return slug[:end]
	}
	return slug[:maxLength]
}

type wordCount struct {
	Words      int `json:"words"`
	Characters int `json:"characters"`
	Lines      int `json:"lines"`
	Sentences  int `json:"sentences"`
	Minutes    int `json:"reading_minutes"`
}

var sentenceEnd = regexp.MustCompile(`[.!?…]+(\s|$)`)

func countWords(text string) wordCount {
	n := len(strings.Fields(text))
	return wordCount{
		Words:      n,
		Characters: utf8.RuneCountInString(text),
		Lines:      len(splitLines(text)),
		Sentences:  len(sentenceEnd.FindAllStringIndex(text, -1)),
		Minutes:    int(math.Ceil(float64(n) / 230)),
	}
}

type frequency struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

func wordFrequency(text string, limit, minLength int) []frequency {
	counts := map[string]int{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’'
	}) {
		if utf8.RuneCountInString(word) >= minLength {
			counts[word]++
		}
	}
	list := []frequency{}
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, frequency{word, counts[word]})
	}
	slices.SortStableFunc(list, func(a, b frequency) int { return cmp.Compare(b.Count, a.Count) })
	return list[:min(limit, len(list))]
}

func regexFind(in regexArgs) (any, error) {
	re, err := compile(in.Pattern, in.IgnoreCase)
	if err != nil {
		return nil, err
	}
	type match struct {
		Text   string   `json:"match"`
		Offset int      `json:"offset"` // in bytes
		Groups []string `json:"groups,omitempty"`
	}
	matches := []match{}
	size := 0
	for _, at := range re.FindAllStringSubmatchIndex(in.Text, in.Limit) {
		m := match{Text: in.Text[at[0]:at[1]], Offset: at[0]}
		for i := 2; i < len(at); i += 2 {
			group := ""
			if at[i] >= 0 {
				group = in.Text[at[i]:at[i+1]]
			}
			size += len(group)
			m.Groups = append(m.Groups, group)
		}
		if err := checkOutput(size); err != nil {
			return nil, err
		}
		matches = append(matches, m)
	}
	return matches, nil
}

func regexReplace(in regexArgs) (any, error) {
	re, err := compile(in.Pattern, in.IgnoreCase)
	if err != nil {
		return nil, err
	}
	var out []byte
	end := 0
	references := strings.Count(in.Replacement, "$")
	for _, at := range re.FindAllStringSubmatchIndex(in.Text, -1) {
		out = append(out, in.Text[end:at[0]]...)
		end = at[1]
		// No group is longer than the match.
		if err := checkOutput(len(out) + len(in.Replacement) + references*(at[1]-at[0])); err != nil {
			return nil, err
		}
		out = re.ExpandString(out, in.Replacement, in.Text, at)
	}
	return string(append(out, in.Text[end:]...)), nil
}

type sortArgs struct {
	Text, By   string
	Reverse    bool
	IgnoreCase bool `json:"ignore_case"`
}

var leadingNumber = regexp.MustCompile(`^\s*[-+]?\d+(\.\d+)?`)

// sortLines sorts stably; lines without a number come after those with one.
func sortLines(in sortArgs) string {
	type entry struct {
		line, text string
		key        float64
	}
	var list []entry
	for _, line := range splitLines(in.Text) {
		e := entry{line: line, text: line}
		if in.IgnoreCase {
			e.text = strings.ToLower(line)
		}
		switch in.By {
		case "length":
			e.key = float64(utf8.RuneCountInString(line))
		case "number":
			e.key = math.Inf(1)
			if n, err := strconv.ParseFloat(strings.TrimSpace(leadingNumber.FindString(line)), 64); err == nil {
				e.key = n
			}
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		order := cmp.Compare(a.key, b.key)
		if in.By == "alphabet" {
			order = cmp.Compare(a.text, b.text)
		}
		if in.Reverse {
			return -order
		}
		return order
	})
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = e.line
	}
	return strings.Join(lines, "\n")
}

func dedupeLines(text string, ignoreCase bool) string {
	seen := map[string]bool{}
	var lines []string
	for _, line := range splitLines(text) {
		key := line
		if ignoreCase {
			key = strings.ToLower(line)
		}
		if !seen[key] {
			seen[key] = true
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

var blankLines = regexp.MustCompile(`\n\s*\n`)

func wrapText(text, indent string, width int) string {
	var paragraphs []string
	for _, paragraph := range blankLines.Split(text, -1) {
		var out strings.Builder
		column := 0
		for _, word := range strings.Fields(paragraph) {
			size := utf8.RuneCountInString(word)
			switch {
			case column == 0:
				out.WriteString(indent)
				column = utf8.RuneCountInString(indent)
			case column+1+size > width:
				out.WriteString("\n" + indent)
				column = utf8.RuneCountInString(indent)
			default:
				out.WriteByte(' ')
				column++
			}
			out.WriteString(word)
			column += size
		}
		paragraphs = append(paragraphs, out.String())
	}
	return strings.Join(paragraphs, "\n\n")
}

type editDistance struct {
	Distance   int     `json:"distance"`
	Similarity float64 `json:"similarity"`
}

func levenshtein(a, b []rune) editDistance {
	distances := make([]int, len(b)+1) // from the current prefix of a to each of b
	for j := range distances {
		distances[j] = j
	}
	for i := range a {
		diagonal := distances[0]
		distances[0] = i + 1
		for j := range b {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = distances[j+1]
			distances[j+1] = min(substituted, distances[j]+1, distances[j+1]+1)
		}
	}
	d := distances[len(b)]
	return editDistance{d, tidy(1 - float64(d)/float64(max(1, len(a), len(b))))}
}

type templateArgs struct {
	Template    string
	Values      map[string]any
	KeepUnknown bool `json:"keep_unknown"`
}

var placeholder = regexp.MustCompile(`\{\{\s*([\pL\d_.-]+)\s*\}\}`)

func fillTemplate(in templateArgs) (any, error) {
	var out strings.Builder
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(in.Template, -1) {
		out.WriteString(in.Template[end:at[0]])
		end = at[1]
		name := in.Template[at[2]:at[3]]
		value, ok := in.Values[name]
		switch {
		case ok:
			fmt.Fprint(&out, value)
		case in.KeepUnknown:
			out.WriteString(in.Template[at[0]:at[1]])
		default:
			return nil, fmt.Errorf("there is no value for %q", name)
		}
		if err := checkOutput(out.Len()); err != nil {
			return nil, err
		}
	}
	out.WriteString(in.Template[end:])
	return out.String(), nil
}

var (
	emailPattern = regexp.MustCompile(`[\w.%+-]+@[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}`)
	urlPattern   = regexp.MustCompile(`https?://[^\s<>"]+`)
)

// extract returns what matches the pattern in the text, without any of the
// trailing punctuation marks.
func extract(pattern *regexp.Regexp, in uniqueArgs, punctuation string) []string {
	list := []string{}
	seen := map[string]bool{}
	for _, match := range pattern.FindAllString(in.Text, -1) {
		match = strings.TrimRight(match, punctuation)
		if !in.Unique || !seen[match] {
			seen[match] = true
			list = append(list, match)
		}
	}
	return list
}
