package resources

import (
	"errors"
	"fmt"
	"strings"
)

// A template may have so many bytes and so many expressions. Matching takes time in
// proportion to them.
const (
	maxTemplate    = 1 << 10
	maxExpressions = 16
)

// A template is a URI template (RFC 6570) that URIs are matched with. It knows which
// characters an expression can expand to, and not which variable has which value: so
// it has a state for each part, and no more work than parts times characters.
type template struct {
	parts []part // at least one
}

// A part is a text or an expression.
type part struct {
	text  string
	chars *[256]bool // of an expression: the bytes of which it expands to any number; else nil
}

const (
	letters    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	unreserved = letters + "-._~%" // and what is written with a percent sign
	reserved   = ":/?#[]@!$&'()*+,;="
)

// What expressions expand to beside values, by operator.
const operators = "+#./;?&"

var expansions = [len(operators)]string{reserved, reserved, ".,", "/,", ";=,", "?&=,", "&=,"}

// parseTemplate reads a template.
func parseTemplate(s string) (*template, error) {
	if len(s) > maxTemplate {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(s), maxTemplate)
	}
	t := new(template)
	expressions := 0
	for s != "" {
		literal, rest, found := strings.Cut(s, "{")
		if strings.Contains(literal, "}") {
			return nil, errors.New("it has a } without a {")
		}
		if literal != "" {
			t.parts = append(t.parts, part{text: literal})
		}
		if !found {
			break
		}
		expression, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, errors.New("an expression does not end")
		}
		if expressions++; expressions > maxExpressions {
			return nil, fmt.Errorf("it has more expressions than the limit of %d", maxExpressions)
		}
		chars, err := expands(expression)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, part{chars: chars})
		s = after
	}
	return t, nil
}

// expands returns the bytes that an expression can expand to.
func expands(expression string) (*[256]bool, error) {
	also := ","
	if expression != "" && !strings.Contains(letters+"_%", expression[:1]) {
		i := strings.IndexByte(operators, expression[0])
		if i < 0 {
			return nil, fmt.Errorf("an expression has the unknown operator %q", expression[:1])
		}
		also, expression = expansions[i], expression[1:]
	}
	for name := range strings.SplitSeq(expression, ",") {
		if plain, ok := strings.CutSuffix(name, "*"); ok {
			name, also = plain, also+"="
		} else if plain, digits, ok := strings.Cut(name, ":"); ok {
			if digits == "" || len(digits) > 4 || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' {
				return nil, errors.New("an expression has a malformed length")
			}
			name = plain
		}
		if name == "" || strings.Trim(name, letters+"_.%") != "" {
			return nil, errors.New("an expression has a malformed name")
		}
	}
	chars := new([256]bool)
	for _, list := range []string{unreserved, also} {
		for i := range len(list) {
			chars[list[i]] = true
		}
	}
	return chars, nil
}

// matches reports whether t can expand to uri, as far as characters tell.
func (t *template) matches(uri string) bool {
	if len(uri) > MaxURI {
		return false
	}
	if !strings.HasPrefix(uri, t.parts[0].text) {
		return false
	}
	// ends[i] tells whether the parts so far can end before uri[i].
	ends, next := make([]bool, len(uri)+1), make([]bool, len(uri)+1)
	ends[0] = true
	for _, p := range t.parts {
		if p.chars == nil {
			clear(next)
			for i, end := range ends {
				if end && strings.HasPrefix(uri[i:], p.text) {
					next[i+len(p.text)] = true
				}
			}
			ends, next = next, ends
			continue
		}
		for i := range len(uri) { // ends[i] stays true
			ends[i+1] = ends[i+1] || ends[i] && p.chars[uri[i]]
		}
	}
	return ends[len(uri)]
}
