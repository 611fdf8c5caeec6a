package schema

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/expression"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allocated returns how many bytes f allocates in all.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

const mostPerSchema = 16 << 20

// No keyword of a schema takes more than 16 MB to compile, however often it occurs. It
// must not be parallel: it measures the process.
func TestSchemaCost(t *testing.T) {
	each := func(n int, form string) string { // form may have the number
		return repeat(n, func(i int) string { return strings.ReplaceAll(form, "#N", fmt.Sprint(i)) })
	}
	pattern := func(p string) string { return fmt.Sprintf(`{"properties":{"p":{"pattern":%q}}}`, p) }
	tests := []struct {
		name string
		of   func(n int) string
	}{
		{"one pattern of long repetitions", func(n int) string { return pattern(strings.Repeat("x{1000}", n)) }},
		{"optional repetitions", func(n int) string { return pattern(strings.Repeat("x{0,1000}", n)) }},
		{"nested repetitions", func(n int) string { return pattern(strings.Repeat("((x{0,10}){0,10}){0,10}", n)) }},
		{"repetitions of nothing", func(n int) string { return pattern(strings.Repeat("(?:){1000}", n)) }},
		{"groups", func(n int) string { return pattern(strings.Repeat("(a*)", n)) }},
		{"alternatives", func(n int) string { return pattern(strings.Repeat("a|bc|", n)) }},
		{"unicode classes", func(n int) string { return pattern(strings.Repeat(`\pL`, n)) }},
		{"unicode classes in a class", func(n int) string { return pattern("[" + strings.Repeat(`\pL`, n) + "]") }},
		{"folded unicode classes in a class", func(n int) string { return pattern("(?i)[" + strings.Repeat(`\PL`, n) + "]") }},
		{"folded ranges", func(n int) string { return pattern("(?i)[" + strings.Repeat(`b-\x{1e942}`, n) + "]") }},
		{"folded literal ranges", func(n int) string { return pattern("(?s)((?sm-Ui:)(?mi)[" + strings.Repeat("b-\U0001e942", n) + "])") }},
		{"folded ASCII ranges", func(n int) string { return pattern("(?i)" + strings.Repeat("[a-z]", n)) }},
		{"repeated classes in one pass", func(n int) string { return pattern(fmt.Sprintf(`^\pL{%d}`, min(n, 900))) }},
		{"many patterns", func(n int) string { return `{"allOf":[` + each(n, `{"pattern":"x#N"}`) + `]}` }},
		{"many names", func(n int) string { return `{"patternProperties":{` + each(n, `"^#N\\pL{50}":{}`) + `}}` }},
		{"many invalid patterns", func(n int) string { return `{"allOf":[` + each(n, `{"pattern":"(?=x#N)"}`) + `]}` }},
		{"properties", func(n int) string { return `{"properties":{` + each(n, `"p#N":{"type":"string"}`) + `}}` }},
		{"empty properties", func(n int) string { return `{"properties":{` + each(n, `"p#N":{}`) + `}}` }},
		{"true properties", func(n int) string { return `{"properties":{` + each(n, `"p#N":true`) + `}}` }},
		{"allOf", func(n int) string { return `{"allOf":[` + each(n, `{}`) + `]}` }},
		{"anyOf", func(n int) string { return `{"anyOf":[` + each(n, `true`) + `]}` }},
		{"invalid", func(n int) string { return `{"allOf":[` + each(n, `{"type":1}`) + `]}` }},
		{"invalid numbers in lists", func(n int) string { return `{"allOf":[` + each(n, `1`) + `]}` }},
		{"invalid names", func(n int) string { return `{"required":[` + each(n, `1`) + `]}` }},
		{"required", func(n int) string { return `{"required":[` + each(n, `"p#N"`) + `]}` }},
		{"types", func(n int) string { return `{"type":[` + each(n, `"string"`) + `]}` }},
		{"enum", func(n int) string { return `{"enum":[` + each(n, `"p#N"`) + `]}` }},
		{"dependentRequired", func(n int) string { return `{"dependentRequired":{` + each(n, `"p#N":["a"]`) + `}}` }},
		{"dependencies", func(n int) string {
			return `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{` + each(n, `"p#N":{"not":true}`) + `}}`
		}},
		{"bounds", func(n int) string { return `{"allOf":[` + each(n, `{"minimum":1e-400,"maximum":1e400}`) + `]}` }},
		{"multiples", func(n int) string { return `{"allOf":[` + each(n, `{"multipleOf":1e400}`) + `]}` }},
		{"numbers", func(n int) string { return `{"enum":[` + each(n, `1e400`) + `]}` }},
		{"identifiers", func(n int) string { return `{"allOf":[` + each(n, `{"$id":"schema://a/#N"}`) + `]}` }},
		{"identifiers below a long one", func(n int) string {
			return `{"$id":"schema://a/` + strings.Repeat("y", 500*n) + `/","allOf":[` + each(n, `{"$id":"#N"}`) + `]}`
		}},
		{"anchors", func(n int) string { return `{"allOf":[` + each(n, `{"$anchor":"a#N"}`) + `]}` }},
		{"dynamic anchors", func(n int) string {
			return `{"allOf":[` + each(n, `{"$dynamicAnchor":"a#N","$dynamicRef":"#a#N"}`) + `]}`
		}},
		{"drafts", func(n int) string {
			return `{"allOf":[` + each(n, `{"$id":"schema://a/#N","$schema":"http://json-schema.org/draft-04/schema#"}`) + `]}`
		}},
		{"references", func(n int) string {
			return `{"x":{` + each(n, `"p#N":{}`) + `},"allOf":[` + each(n, `{"$ref":"#/x/p#N"}`) + `]}`
		}},
		{"lost references", func(n int) string { return `{"allOf":[` + each(n, `{"$ref":"#/x/p#N"}`) + `]}` }},
		{"metaschemas", func(n int) string {
			return `{"allOf":[` + each(n, `{"$ref":"https://json-schema.org/draft/2020-12/schema"},{"$ref":"http://json-schema.org/draft-07/schema#"}`) + `]}`
		}},
		{"depth", func(n int) string { return strings.Repeat(`{"items":`, n) + "{}" + strings.Repeat("}", n) }},
		{"depth under long names", func(n int) string {
			return strings.Repeat(`{"properties":{"`+strings.Repeat("a", 100)+`":`, n) + "{}" + strings.Repeat("}}", n)
		}},
		{"a long name", func(n int) string {
			return `{"properties":{"` + strings.Repeat("a", 16*n) + `":{"items":{"items":1}}}}`
		}},
		{"long references", func(n int) string {
			return `{"properties":{` + each(max(n/256, 1), `"p#N":{"$ref":"#/`+strings.Repeat("a", 8000)+`"}`) + `}}`
		}},
		{"all at once", func(n int) string {
			return `{"allOf":[` + each(n, `{"type":"string"}`) + `],"properties":{"p":{"pattern":"` + strings.Repeat("x{0,1000}", min(16, n)) + strings.Repeat("(a*)", min(n, 1900)) + `"}}}`
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			accepted, most, worst := 0, 0, time.Duration(0)
			for n := 1; n <= 8192; n = max(n+1, n*5/4) {
				schema := json.RawMessage(test.of(n))
				if len(schema) > 256<<10 { // the limit of a definition
					break
				}
				start := time.Now()
				bytes := allocated(func() {
					if NewValidator(schema).Err() == nil {
						accepted = n
					}
				})
				worst = max(worst, time.Since(start))
				most = max(most, bytes)
				require.Less(t, bytes, mostPerSchema, "%d times", n)
				if n < 16 || n%4 == 0 { // with all that is exact
					require.Less(t, allocated(func() { Allows(schema) }), mostPerSchema, "%d times", n)
				}
			}
			t.Logf("up to %d times: at most %.1f MB and %v", accepted, float64(most)/1e6, worst)
		})
	}
}

// Schemas that are compiled at once, take turns.
func TestSchemasAreCompiledInTurn(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"a":{"pattern":"^a{10}$"}}}`)
	compiling.Lock()
	var done sync.WaitGroup
	started := make(chan struct{})
	finished := make(chan error, 17)
	for range 16 {
		done.Go(func() {
			started <- struct{}{}
			finished <- NewValidator(schema).Err()
		})
		<-started
	}
	done.Go(func() { started <- struct{}{}; Allows(schema); finished <- nil })
	<-started
	assert.Empty(t, finished)
	compiling.Unlock()
	done.Wait()
	for range 17 {
		assert.NoError(t, <-finished)
	}
}

// What is too large for its patterns says by how much.
func TestPatternErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		strings.Repeat("x", 1<<13+1):                        "the patterns of a schema may have 8192 bytes",
		"(?i)[a-" + strings.Repeat("ſa-", 8) + "]":          "and a range of letters beyond ASCII without regard to case 4096",
		strings.Repeat("x{1000}", 17):                       "the patterns of a schema may have 16384 instructions",
		`^[` + strings.Repeat(`\\pL\\pN`, 3) + `\\pM]{500}`: "the classes in the patterns of a schema may have 524288 ends of ranges",
		`(?P<unclosed`: "invalid propertyName",
		strings.Repeat("(", 1500) + strings.Repeat(")", 1500):  "invalid propertyName",
		strings.Repeat(`(?:`, 900) + strings.Repeat(`)+`, 900): "",
	} {
		err := NewValidator(json.RawMessage(`{"patternProperties":{"` + pattern + `":{}}}`)).Err()
		if want == "" {
			assert.NoError(t, err, pattern)
		} else {
			assert.ErrorContains(t, err, want, pattern)
		}
	}
}

// The patterns of a schema may have 16384 instructions together, and not one more.
func TestPatternsAtTheirLimit(t *testing.T) {
	full := strings.Repeat("x{1000}", 16) + strings.Repeat("x", 352)
	for more, ok := range map[string]bool{"": true, "x": false} {
		err := NewValidator(json.RawMessage(`{"patternProperties":{"` + full + more + `":{}}}`)).Err()
		assert.Equal(t, ok, err == nil, "%v", err)
	}
}

// What patterns take grows with their instructions and ranges, and not beyond the limits.
func TestKeptOfPatterns(t *testing.T) {
	t.Parallel()
	p := newPatterns()
	assert.Zero(t, p.kept())
	require.NotNil(t, p.find("[a-fx]y"))
	require.NotNil(t, p.find("z"))
	size := func(source string) expression.Size {
		parsed, err := syntax.Parse(source, syntax.Perl)
		require.NoError(t, err)
		return expression.SizeOf(parsed)
	}
	one, other := size("[a-fx]y"), size("z")
	assert.EqualValues(t, 100*(one.Instructions+other.Instructions)+6*(one.Runes+other.Runes), p.kept())
	p.left.Instructions, p.left.Runes = -5, -5
	assert.Equal(t, 100*maxPatternSize+6*maxPatternRunes, p.kept())
}

// Matching costs as many steps as the pattern is large and the text is long, and a schema as
// much memory as it has objects and as their paths are long.
func TestCostsOfAMatchAndAnObject(t *testing.T) {
	t.Parallel()
	m := &meter{left: 1000}
	m.match(&pattern{size: 32}, strings.Repeat("x", 34))
	assert.EqualValues(t, 1000-1-68, m.left)
	m.match(nil, "x")
	assert.EqualValues(t, 1000-1-68, m.left)
	g := &gauge{left: 1000}
	g.object(5)
	g.object(7)
	assert.EqualValues(t, 1612, g.kept)
	assert.EqualValues(t, 1000-2*(perObject-1), g.left)
}
