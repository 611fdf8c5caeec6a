// Package pages finds what the project's pages have their reader run: blocks of code, and
// commands.
//
// Of a page, a fence "```go" is code, "```yaml" a file of rules, "```json" a configuration,
// and "```text" neither. Behind the kind, a fence may name the file that the reader makes of
// it: "```go main.go". Each line of a fence "```sh" or of an indented block is a command,
// and so is a span such as `go run ./x` in a sentence. A fence "```text" that is the next
// block behind commands is what the last of them prints, or they all together. A comment "needs …" at the end of a
// command, or in the first line of a block, says what a reader must have first that not
// everybody has. So does a word in capitals, which the reader replaces.
package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Piece is one thing to run.
type Piece struct {
	Path  string
	Line  int    // of its first line, from 1
	Kind  string // "go", "yaml", "json", or "sh" for one command
	Text  string
	Needs string // what the reader must have; "" if everybody has it
	Saved string // of a block: the path of the file that the reader makes of it, with slashes, or ""
	Says  string // of a command: the text behind it, or ""
}

// Prints reports whether out, of the commands with p as the last one, has the lines of
// p.Says in their order. In a line, "…" stands for any text. Other lines may be between them.
func (p Piece) Prints(out string) error {
	lines := strings.Split(out, "\n")
	for want := range strings.Lines(p.Says) {
		want = strings.TrimRight(want, " \n")
		line := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		n := slices.IndexFunc(lines, func(l string) bool { return line.MatchString(strings.TrimRight(l, " \r")) })
		if n < 0 {
			return fmt.Errorf("%s:%d: it does not print %q, or not there", p.Path, p.Line, want)
		}
		lines = lines[n+1:]
	}
	return nil
}

var (
	command = regexp.MustCompile("^go (-C|get|install|mod|run|test) ")
	span    = regexp.MustCompile("`([^`]+)`")
	needs   = regexp.MustCompile(`^(?:.*\s)?(?:#|//) needs (.+)$`)
	capital = regexp.MustCompile(`\b[A-Z]{3,}\b`)
	kinds   = []string{"go", "json", "sh", "text", "yaml"}
)

// Read returns the pieces of a page in their order. It fails for a block that does not say
// what it is.
func Read(path, text string) (pieces []Piece, err error) {
	lines := strings.Split(text, "\n")
	var words []string // lines of sentences, up to the next block
	from := 0          // the index of the first of them
	commands := false  // whether the last block has some, and no sentence has since
	sentences := func() {
		found := spans(path, from, strings.Join(words, "\n"))
		commands = commands && found == nil
		pieces = append(pieces, found...)
		words = nil
	}
	for i := 0; i < len(lines); i++ {
		kind, fenced := strings.CutPrefix(lines[i], "```")
		kind, saved, _ := strings.Cut(kind, " ")
		indented := strings.HasPrefix(lines[i], "    ") && (i == 0 || lines[i-1] == "")
		if !fenced && !indented {
			if strings.Contains(lines[i], "```") {
				return nil, fmt.Errorf("%s:%d: a fence must begin its line", path, i+1)
			}
			if words == nil {
				from = i
			}
			words = append(words, lines[i])
			continue
		}
		sentences()
		begin, end := i, 0
		if fenced {
			begin++
			n := slices.Index(lines[begin:], "```")
			if n < 0 || !slices.Contains(kinds, kind) {
				return nil, fmt.Errorf("%s:%d: a fence must be one of %q, and end", path, i+1, kinds)
			}
			end = begin + n
			i = end
		} else {
			kind, saved = "sh", ""
			for end = begin; end < len(lines) && strings.HasPrefix(lines[end], "    "); end++ {
				if !command.MatchString(strings.TrimSpace(lines[end])) {
					return nil, fmt.Errorf("%s:%d: only commands are indented: use a fence", path, end+1)
				}
			}
			i = end - 1
		}
		if kind == "text" {
			if last := len(pieces) - 1; last >= 0 && commands {
				pieces[last].Says = strings.Join(lines[begin:end], "\n") + "\n"
			}
			commands = false
			continue
		}
		found := block(path, kind, begin, lines[begin:end])
		for n := range found {
			found[n].Saved = saved
		}
		commands = kind == "sh" && len(found) > 0
		pieces = append(pieces, found...)
	}
	sentences()
	return pieces, nil
}

// block returns the pieces of a block of a kind, whose first line has the index begin.
func block(path, kind string, begin int, lines []string) (pieces []Piece) {
	switch kind {
	case "sh":
		for i, line := range lines {
			if line = strings.TrimSpace(line); line != "" {
				pieces = append(pieces, shell(path, begin+i+1, line))
			}
		}
	default:
		p := Piece{Path: path, Line: begin + 1, Kind: kind, Text: strings.Join(lines, "\n") + "\n"}
		if m := needs.FindStringSubmatch(lines[0]); m != nil {
			p.Needs = m[1]
		}
		pieces = []Piece{p}
	}
	return pieces
}

// spans returns the commands in sentences, of which the first line has the index begin.
func spans(path string, begin int, text string) (pieces []Piece) {
	for _, m := range span.FindAllStringSubmatchIndex(text, -1) {
		line := strings.Join(strings.Fields(text[m[2]:m[3]]), " ")
		if command.MatchString(line) {
			pieces = append(pieces, shell(path, begin+strings.Count(text[:m[0]], "\n")+1, line))
		}
	}
	return pieces
}

func shell(path string, line int, text string) Piece {
	p := Piece{Path: path, Line: line, Kind: "sh", Text: text}
	if m := needs.FindStringSubmatch(text); m != nil {
		p.Needs = m[1]
	} else if words := capital.FindAllString(text, -1); words != nil {
		p.Needs = "the reader's " + strings.Join(words, " and ")
	}
	return p
}
