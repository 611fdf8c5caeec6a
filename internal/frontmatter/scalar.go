package frontmatter

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// word reads the part of a text without quotes that is in this line, without the spaces at its
// end. first says whether the text begins here, and flow whether it is within brackets.
func (r *reader) word(first, flow bool) (string, error) {
	begin, end := r.pos, r.pos
	ends := func(c byte) bool { return isBlank(c) || flow && strings.IndexByte(",[]{}", c) >= 0 }
	if c := r.peek(0); first && (strings.IndexByte(",[]{}#&*!|>'\"%@`", c) >= 0 || strings.IndexByte("-?:", c) >= 0 && ends(r.peek(1))) {
		return "", errSpecial
	}
	for c := r.peek(0); c != '\n'; c = r.peek(0) {
		if c == ':' && ends(r.peek(1)) || r.isComment() && r.pos > begin || flow && c != ' ' && c != '\t' && ends(c) {
			break
		}
		if r.pos++; c != ' ' && c != '\t' {
			end = r.pos
		}
	}
	if end == begin {
		return "", errRest
	}
	r.pos = end
	return r.text[begin:end], nil
}

// quoted reads a text in quotes, and its further lines, which are indented further than that.
func (r *reader) quoted(indent int) (string, error) {
	quote := r.peek(0)
	r.pos++
	var b []byte
	kept := 0 // bytes of b that are no spaces at the end of a line
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch {
		case c == quote && quote == '\'' && r.peek(1) == '\'':
			b, r.pos = append(b, c), r.pos+2
			kept = len(b)
		case c == quote:
			r.pos++
			return string(b), nil
		case c == '\\' && quote == '"' && r.peek(1) == '\n': // the lines are one
			r.pos++
			lines := r.fold(indent, false)
			if lines == "" {
				return "", errQuote
			}
			b = append(b, strings.TrimPrefix(lines, " ")...)
			kept = len(b)
		case c == '\\' && quote == '"':
			r.pos++
			decoded, ok := r.escape()
			if !ok {
				return "", errQuote
			}
			b = utf8.AppendRune(b, decoded)
			kept = len(b)
		case c == '\n':
			lines := r.fold(indent, false)
			if lines == "" {
				return "", errQuote
			}
			b = append(b[:kept], lines...)
			kept = len(b)
		default:
			b, r.pos = append(b, c), r.pos+1
			if c != ' ' && c != '\t' {
				kept = len(b)
			}
		}
	}
	return "", errQuote
}

// escapes are what stands for a character behind a backslash.
var escapes = map[byte]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '/': '/', '\\': '\\', 'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// escape reads what stands behind a backslash.
func (r *reader) escape() (c rune, ok bool) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[r.peek(0)]
	if digits == 0 {
		c, ok = escapes[r.peek(0)]
		r.pos++
		return c, ok
	}
	rest := r.text[r.pos+1:]
	n, err := strconv.ParseUint(rest[:min(digits, len(rest))], 16, 32)
	r.pos += 1 + digits
	return rune(n), err == nil && len(rest) >= digits && n <= utf8.MaxRune && utf8.ValidRune(rune(n))
}

// block reads a text below a line with | or >.
func (r *reader) block(indent int) (value any, next int, err error) {
	folded, depth, chomp := r.peek(0) == '>', 0, byte(0)
	for r.pos++; ; r.pos++ {
		c := r.peek(0)
		if (c == '+' || c == '-') && chomp == 0 {
			chomp = c
		} else if c >= '1' && c <= '9' && depth == 0 {
			depth = indent + int(c-'0')
		} else {
			break
		}
	}
	if !r.endLine() {
		return nil, 0, errSpecial
	}
	r.pos++
	if depth == 0 {
		if depth, err = r.depthBelow(indent); err != nil {
			return nil, 0, err
		}
	}
	var b strings.Builder
	ends := 0                 // of lines, since the last text
	any, wide := false, false // there was a text, and the last one is indented further
	for r.pos < len(r.text) {
		line, _, _ := strings.Cut(r.text[r.pos:], "\n")
		text := strings.TrimLeft(line, " ")
		if len(line)-len(text) > depth {
			text = line[depth:]
		}
		if text == "" {
			ends++
			r.pos += len(line) + 1
			continue
		}
		if len(line)-len(text) < depth {
			break
		}
		was := wide
		wide = text[0] == ' ' || text[0] == '\t'
		switch {
		case any && folded && !wide && !was && ends == 1:
			b.WriteByte(' ')
		case any && folded && !wide && !was:
			b.WriteString(strings.Repeat("\n", ends-1))
		default:
			b.WriteString(strings.Repeat("\n", ends))
		}
		b.WriteString(text)
		any, ends = true, 1
		r.pos += len(line) + 1
	}
	switch {
	case chomp == '+':
		b.WriteString(strings.Repeat("\n", ends))
	case chomp == 0 && any:
		b.WriteByte('\n')
	}
	r.pos-- // at the end of the last line
	next, err = r.next()
	return scalar{text: b.String()}, next, err
}

// depthBelow returns how far a block is indented, within something that is so far indented, from
// the beginning of its first line: as its first line with text is.
func (r *reader) depthBelow(indent int) (depth int, err error) {
	widest := 0
	for line := range strings.Lines(r.text[r.pos:]) {
		text := strings.TrimLeft(line, " ")
		depth = len(line) - len(text)
		if text == "\n" {
			widest = max(widest, depth)
			continue
		}
		if depth <= indent {
			break
		}
		if widest > depth {
			return 0, errIndent
		}
		return depth, nil
	}
	return max(widest, indent+1), nil
}

// flow reads a list or a mapping in brackets. Its further lines are indented further than that.
func (r *reader) flow(indent int) (value any, err error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	list, all := []any{}, make(mapping)
	named := r.peek(0) == '{'
	closing := map[bool]byte{true: '}', false: ']'}[named]
	for r.pos++; ; r.pos++ {
		if !r.within(indent) {
			return nil, errFlow
		}
		if r.peek(0) == closing {
			break
		}
		name := ""
		if named {
			if name, err = r.flowName(indent); err != nil {
				return nil, err
			}
			if _, twice := all[name]; twice {
				return nil, errTwice
			}
		}
		value, err := r.flowValue(indent)
		if err != nil {
			return nil, err
		}
		if all[name] = value; !named {
			list = append(list, value)
		}
		if !r.within(indent) || r.peek(0) != ',' && r.peek(0) != closing {
			return nil, errFlow
		}
		if r.peek(0) == closing {
			break
		}
	}
	r.pos++
	if named {
		return all, nil
	}
	return list, nil
}

// flowName reads a name within brackets, and what stands before its value.
func (r *reader) flowName(indent int) (name string, err error) {
	quoted := r.peek(0) == '"' || r.peek(0) == '\''
	if quoted {
		name, err = r.quoted(indent)
	} else {
		name, err = r.word(true, true)
	}
	switch {
	case err != nil:
		return "", err
	case name == "<<":
		return "", errSpecial
	}
	r.skip()
	if r.peek(0) != ':' || !quoted && !isBlank(r.peek(1)) {
		return "", errFlow
	}
	r.pos++
	if !r.within(indent) {
		return "", errFlow
	}
	return name, nil
}

// flowValue reads a value within brackets.
func (r *reader) flowValue(indent int) (any, error) {
	switch r.peek(0) {
	case ',', '}', ']':
		return nil, errFlow
	case '[', '{':
		return r.flow(indent)
	case '"', '\'':
		s, err := r.quoted(indent)
		return scalar{text: s}, err
	}
	s, err := r.word(true, true)
	return scalar{s, true}, err
}

// within goes on to what is neither a space nor a comment, also in a further line. It reports
// whether that is within brackets in something that is so far indented.
func (r *reader) within(indent int) bool {
	for r.endLine() {
		if r.pos++; r.pos >= len(r.text) {
			return false
		}
		begin := r.pos
		depth := r.spaces()
		if r.endLine(); r.peek(0) != '\n' && depth <= indent {
			r.pos = begin
			return false
		}
	}
	return true
}
