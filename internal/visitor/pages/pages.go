// Package pages finds what the project's pages have their reader run: blocks of code, and
// commands.
//
// Of a page, a fence "```go" is code, "```yaml" a file of rules, "```json" a configuration,
// and "```text" neither. Each line of a fence "```sh" or of an indented block is a command,
// and so is a span such as `go run ./x` in a sentence. A comment "needs …" at the end of a
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
	sentences := func() {
		pieces = append(pieces, spans(path, from, strings.Join(words, "\n"))...)
		words = nil
	}
	for i := 0; i < len(lines); i++ {
		kind, fenced := strings.CutPrefix(lines[i], "```")
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
			kind = "sh"
			for end = begin; end < len(lines) && strings.HasPrefix(lines[end], "    "); end++ {
				if !command.MatchString(strings.TrimSpace(lines[end])) {
					return nil, fmt.Errorf("%s:%d: only commands are indented: use a fence", path, end+1)
				}
			}
			i = end - 1
		}
		pieces = append(pieces, block(path, kind, begin, lines[begin:end])...)
	}
	sentences()
	return pieces, nil
}

// block returns the pieces of a block of a kind, whose first line has the index begin.
func block(path, kind string, begin int, lines []string) (pieces []Piece) {
	switch {
	case kind == "text":
	case kind == "sh":
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
