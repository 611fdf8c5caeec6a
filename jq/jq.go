// Package jq selects parts of results by jq expressions, for a model that reads a long result
// and for a host that wants a part of each result of a tool.
//
//	mgr := mcphybrid.NewManager(&mcphybrid.Options{Select: jq.Selector{}})
//
// The language is that of github.com/itchyny/gojq, without what could take more time or memory
// than a result is worth: see [Functions]. An expression ends within its [limits], whatever it is.
//
// [limits]: https://pkg.go.dev/github.com/mcphybrid/mcphybrid/jq#pkg-constants
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

// The limits of a selection.
const (
	MaxExpression = 2000            // bytes of an expression
	MaxInput      = 4 << 20         // bytes of the JSON that it selects from
	MaxValues     = 500_000         // numbers, strings, arrays and so on in that JSON; an object counts as four
	MaxSteps      = 2_000_000       // steps of the evaluation
	MaxTime       = 2 * time.Second // of the evaluation
	MaxMade       = 64 << 20        // bytes of the values that it makes, all together
	maxValue      = 16 << 20        // bytes of one of them
	MaxOutput     = 1 << 20         // bytes of what is selected
)

var (
	errSteps  = fmt.Errorf("it takes more than %d steps or %v", MaxSteps, MaxTime)
	errMade   = errors.New("it makes values that are too large")
	errOutput = fmt.Errorf("it selects more than %d bytes: select less, for example with .[:10] or {id, name}", MaxOutput)
)

// A Selector selects by jq expressions. It is what [mcphybrid.Options] take as Select.
//
// [mcphybrid.Options]: https://pkg.go.dev/github.com/mcphybrid/mcphybrid#Options
type Selector struct{}

// Select returns what an expression selects in a JSON text, each value on a line of its own, as
// JSON without spaces. It is "" if that is nothing. The error says in one line what is wrong with
// the expression or the text, or that a limit is reached. It ends soon after ctx.
func (Selector) Select(ctx context.Context, expression, text string) (selected string, err error) {
	code, spent, err := compile(expression)
	if err != nil {
		return "", err
	}
	value, err := decode(text)
	if err != nil {
		return "", err
	}
	return evaluate(ctx, code, spent, value)
}

// evaluate returns what an expression that was compiled selects in a value.
func evaluate(ctx context.Context, code *gojq.Code, spent *spending, value any) (selected string, err error) {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	steps := &stepContext{Context: ctx, over: make(chan struct{})}
	var out strings.Builder
	for values := code.RunWithContext(steps, value); ; {
		v, ok := values.Next()
		if !ok {
			break
		}
		if spent.over {
			return "", errMade
		}
		if err, ok := v.(error); ok {
			return "", why(err)
		}
		line, err := gojq.Marshal(v)
		if err != nil {
			return "", err
		}
		if out.Len()+len(line) >= MaxOutput {
			return "", errOutput
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	if spent.over { // try may have caught it
		return "", errMade
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Check returns what is wrong with an expression, or nil.
func (Selector) Check(expression string) error {
	_, _, err := compile(expression)
	return err
}

// why returns an error of the evaluation in words.
func why(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errSteps) {
		return errSteps
	}
	return errors.New(cut(err.Error()))
}

// maxError is how many bytes of an error are told.
const maxError = 300

func cut(s string) string {
	s = s[:min(len(s), 4*maxError)] // it may repeat megabytes
	if s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "); len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + "…"
	}
	return s
}

// compile checks an expression and makes it one that stays within the limits.
func compile(expression string) (*gojq.Code, *spending, error) {
	if len(expression) > MaxExpression {
		return nil, nil, fmt.Errorf("the expression has %d bytes, more than %d", len(expression), MaxExpression)
	}
	q, err := gojq.Parse(expression)
	if bad := new(gojq.ParseError); errors.As(err, &bad) {
		if bad.Token == "" {
			return nil, nil, errors.New("the expression ends too early")
		}
		return nil, nil, fmt.Errorf("the expression is wrong before byte %d, at %q", bad.Offset, bad.Token)
	}
	if err != nil {
		return nil, nil, errors.New(cut(err.Error()))
	}
	b := new(bounder)
	b.query(q)
	if b.err != nil {
		return nil, nil, b.err
	}
	spent := new(spending)
	code, err := gojq.Compile(q, spent.functions()...)
	if err != nil {
		return nil, nil, errors.New(cut(err.Error()))
	}
	return code, spent, nil
}

// check returns the JSON of a text, or an error if it is not within the limits.
func check(text string) (string, error) {
	if len(text) > MaxInput {
		return "", fmt.Errorf("the result has %d bytes, more than %d", len(text), MaxInput)
	}
	text, ok := findJSON(text)
	if !ok {
		return "", errors.New("the result is not JSON")
	}
	_, err := measure(text, "result")
	return text, err
}

// decode reads the JSON of a text. Numbers keep their digits.
func decode(text string) (value any, err error) {
	if text, err = check(text); err != nil {
		return nil, err
	}
	values := json.NewDecoder(strings.NewReader(text))
	values.UseNumber()
	if err := values.Decode(&value); err != nil {
		return nil, errors.New("the result is not JSON")
	}
	return value, nil
}

// measure returns how many objects a JSON text has, or an error if its values are too many or too
// large. Up to where a text is wrong it counts right; who decodes it tells.
func measure(text, what string) (objects int, err error) {
	values, digits := 1, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			digits = 0
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '.', 'e', 'E':
			if digits++; digits > maxDigits {
				return 0, fmt.Errorf("the %s has a number of more than %d digits", what, maxDigits)
			}
		case '{', '[', ',':
			if c == '{' {
				objects++
				values += 3 // what it takes in memory
			}
			if values++; values > MaxValues {
				return 0, fmt.Errorf("the %s has more than %d values", what, MaxValues)
			}
			digits = 0
		default:
			digits = 0
		}
	}
	return objects, nil
}

// A stepContext ends after [MaxSteps] looks at it: gojq looks before each step.
type stepContext struct {
	context.Context
	steps int
	over  chan struct{}
}

func (c *stepContext) Done() <-chan struct{} {
	if c.steps++; c.steps == MaxSteps {
		close(c.over)
	}
	if c.steps >= MaxSteps {
		return c.over
	}
	return c.Context.Done()
}

func (c *stepContext) Err() error {
	if c.steps >= MaxSteps {
		return errSteps
	}
	return c.Context.Err()
}

// A spending counts the bytes of the values that an evaluation has made.
type spending struct {
	bytes int
	over  bool
}

// spend returns v, or an error if there is too much of it.
func (s *spending) spend(v any) any {
	if n := cost(v, maxValue); s.pay(n) && n <= maxValue {
		return v
	}
	s.over = true
	return errMade
}

// pay reports whether so many more bytes may be made.
func (s *spending) pay(n int) bool {
	if s.over = s.over || n > MaxMade-s.bytes; s.over {
		return false
	}
	s.bytes += n
	return true
}

// cost returns about how many bytes v would have if no part of it were shared, in memory or as
// JSON, or more than most.
func cost(v any, most int) int {
	n := 16
	switch v := v.(type) {
	case string:
		n += size(v)
	case json.Number:
		n = max(n, len(v))
	case *big.Int:
		n = max(n, v.BitLen()/3)
	case []any:
		for _, e := range v {
			if n += cost(e, most-n); n > most || n < 0 {
				return math.MaxInt
			}
		}
	case map[string]any:
		for key, e := range v {
			if n += 32 + size(key) + cost(e, most-n); n > most || n < 0 {
				return math.MaxInt
			}
		}
	}
	return n
}

// size returns how many bytes a string has as JSON, without its quotes, or a few more.
func size(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			n++
		case c < ' ', c == 0x7f:
			n += len(`\u0000`) - 1
		}
	}
	return n
}
