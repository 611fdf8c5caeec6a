package frontmatter

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A scalar is a value without parts.
type scalar struct {
	text  string
	plain bool // without quotes: it may mean a number, for example
}

// A mapping has named values.
type mapping map[string]any

// maxDepth is how many mappings and lists may be within each other.
const maxDepth = 100

// Why front matter can't be read.
var (
	errChar    = errors.New("it has a character that YAML does not permit, or that some take for the end of a line")
	errTab     = errors.New("a tab indents it")
	errIndent  = errors.New("its indentation fits nothing above it")
	errName    = errors.New("a name with a colon behind it is missing")
	errTwice   = errors.New("a name is there more than once")
	errSpecial = errors.New("it has an anchor, a tag or another sign of YAML that is not read here")
	errRest    = errors.New("something stands behind a value, such as a colon that needs quotes")
	errQuote   = errors.New("the text in quotes does not end, or has an escape that is not read here")
	errFlow    = errors.New("a list or a mapping in brackets is malformed")
	errDepth   = fmt.Errorf("it has more levels than the limit of %d", maxDepth)
)

// read returns what front says. Each value is a scalar, a list of values, which is a []any,
// or a mapping. It reads the YAML in which people write front matter, and fails on what few
// write and readers disagree about, such as anchors, tags and merge keys.
func read(front []byte) (mapping, error) {
	r := &reader{text: strings.TrimSuffix(strings.ReplaceAll(string(front), "\r\n", "\n"), "\n") + "\n"}
	all, err := r.document()
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", strings.Count(r.text[:min(r.pos, len(r.text))], "\n")+2, err)
	}
	return all, nil
}

// A reader is at a place of a text. Its methods that read a value go on to the next line that
// has one, and return how far that is indented: -1 at the end.
type reader struct {
	text  string
	pos   int
	depth int // number of mappings and lists around it
}

func (r *reader) document() (mapping, error) {
	for i, c := range r.text {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff || c == utf8.RuneError {
			r.pos = i
			return nil, errChar
		}
	}
	indent, err := r.next()
	if err != nil || indent < 0 {
		return mapping{}, err
	}
	all, rest, err := r.mapping(indent)
	if err == nil && rest >= 0 {
		err = errIndent
	}
	return all, err
}

// peek returns the byte so far ahead: at the end, that of a line.
func (r *reader) peek(ahead int) byte {
	if r.pos+ahead >= len(r.text) {
		return '\n'
	}
	return r.text[r.pos+ahead]
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// skip goes on to what is no space, in the same line.
func (r *reader) skip() {
	for c := r.peek(0); c == ' ' || c == '\t'; c = r.peek(0) {
		r.pos++
	}
}

// isComment reports whether the rest of the line is one.
func (r *reader) isComment() bool {
	return r.peek(0) == '#' && (r.pos == 0 || isBlank(r.text[r.pos-1]))
}

// endLine goes on to the end of the line. It reports whether nothing but a comment was left.
func (r *reader) endLine() bool {
	r.skip()
	if r.isComment() {
		for r.peek(0) != '\n' {
			r.pos++
		}
	}
	return r.peek(0) == '\n'
}

// spaces goes on to what is no space, and returns how many there were.
func (r *reader) spaces() (n int) {
	for ; r.peek(0) == ' '; n++ {
		r.pos++
	}
	return n
}

// next goes on to the next line that has more than a comment, from the end of one or from the
// beginning of the text.
func (r *reader) next() (indent int, err error) {
	if r.pos > 0 {
		r.pos++
	}
	for r.pos < len(r.text) {
		indent := r.spaces()
		line, tab := r.text[r.pos:], r.peek(0) == '\t'
		switch {
		case r.endLine():
			r.pos++
			continue
		case tab:
			return 0, errTab
		case indent == 0 && (strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...")) && (len(line) == 3 || isBlank(line[3])):
			return 0, errSpecial // it would end the document
		}
		return indent, nil
	}
	return -1, nil
}

// end goes on to the next value from behind one.
func (r *reader) end() (next int, err error) {
	if !r.endLine() {
		return 0, errRest
	}
	return r.next()
}

// column returns how far the place is from the beginning of its line.
func (r *reader) column() int {
	return r.pos - strings.LastIndexByte(r.text[:r.pos], '\n') - 1
}

func (r *reader) deeper() error {
	if r.depth++; r.depth > maxDepth {
		return errDepth
	}
	return nil
}

// mapping reads the mapping whose first name is here.
func (r *reader) mapping(indent int) (all mapping, next int, err error) {
	if err := r.deeper(); err != nil {
		return nil, 0, err
	}
	defer func() { r.depth-- }()
	all = make(mapping)
	for next = indent; next == indent; {
		name, err := r.name()
		if err != nil {
			return nil, 0, err
		}
		if _, twice := all[name]; twice {
			return nil, 0, errTwice
		}
		if all[name], next, err = r.value(indent, true); err != nil {
			return nil, 0, err
		}
	}
	if next > indent {
		return nil, 0, errIndent
	}
	return all, next, nil
}

// list reads the list whose first dash is here.
func (r *reader) list(indent int) (all []any, next int, err error) {
	if err := r.deeper(); err != nil {
		return nil, 0, err
	}
	defer func() { r.depth-- }()
	for next = indent; next == indent && r.isDash(); {
		r.pos++
		var value any
		if value, next, err = r.value(indent, false); err != nil {
			return nil, 0, err
		}
		all = append(all, value)
	}
	if next > indent {
		return nil, 0, errIndent
	}
	return all, next, nil
}

func (r *reader) isDash() bool { return r.peek(0) == '-' && isBlank(r.peek(1)) }

// isName reports whether a name is here.
func (r *reader) isName() bool {
	try := *r
	_, err := try.name()
	return err == nil
}

// name reads a name and its colon.
func (r *reader) name() (name string, err error) {
	line, _, _ := strings.Cut(r.text[r.pos:], "\n")
	try := reader{text: line} // it can't go beyond the line
	if c := try.peek(0); c == '"' || c == '\'' {
		if name, err = try.quoted(-1); err != nil {
			return "", err
		}
		try.skip()
		if try.peek(0) != ':' || !isBlank(try.peek(1)) {
			return "", errName
		}
	} else if name, err = try.word(true, false); err != nil {
		return "", err
	} else if try.peek(0) != ':' {
		return "", errName
	}
	if name == "<<" {
		return "", errSpecial
	}
	r.pos += try.pos + 1
	return name, nil
}

// value reads what stands behind a name or a dash that is so far indented.
func (r *reader) value(indent int, named bool) (value any, next int, err error) {
	begin := r.pos
	r.skip()
	switch tab := strings.Contains(r.text[begin:r.pos], "\t"); {
	case r.endLine():
		if next, err = r.next(); err != nil {
			return nil, 0, err
		}
		if next < indent || next == indent && !(named && r.isDash()) {
			return scalar{plain: true}, next, nil
		}
	case named:
		return r.scalar(indent)
	case tab:
		return nil, 0, errTab
	}
	switch {
	case r.isDash():
		return r.list(r.column())
	case r.isName():
		return r.mapping(r.column())
	}
	return r.scalar(indent)
}

// scalar reads a value that begins in the line of a name, or alone in one, within something
// that is so far indented.
func (r *reader) scalar(indent int) (value any, next int, err error) {
	switch r.peek(0) {
	case '"', '\'':
		s, err := r.quoted(indent)
		if err != nil {
			return nil, 0, err
		}
		value = scalar{text: s}
	case '[', '{':
		if value, err = r.flow(indent); err != nil {
			return nil, 0, err
		}
	case '|', '>':
		return r.block(indent)
	default:
		if value, err = r.plain(indent); err != nil {
			return nil, 0, err
		}
	}
	next, err = r.end()
	return value, next, err
}

// plain reads a text without quotes, and its further lines.
func (r *reader) plain(indent int) (value any, err error) {
	var b strings.Builder
	for first := true; ; first = false {
		line, err := r.word(first, false)
		if err != nil {
			return nil, err
		}
		b.WriteString(line)
		if r.skip(); r.peek(0) != '\n' { // a comment ends it, and a colon is an error
			break
		}
		lines := r.fold(indent, true)
		if lines == "" {
			break
		}
		b.WriteString(lines)
	}
	return scalar{b.String(), true}, nil
}

// fold goes on, from the end of a line of a text, to the next one that has text, and returns
// what stands for the ends of lines between. If that line is not far enough indented, fold
// returns "" and stays. comments says whether a comment ends the text.
func (r *reader) fold(indent int, comments bool) string {
	begin := r.pos
	for lines := 0; r.pos < len(r.text); {
		r.pos++
		lines++
		depth := r.spaces()
		if r.skip(); r.peek(0) == '\n' {
			continue
		}
		if depth <= indent || comments && r.isComment() {
			break
		}
		if lines == 1 {
			return " "
		}
		return strings.Repeat("\n", lines-1)
	}
	r.pos = begin
	return ""
}
