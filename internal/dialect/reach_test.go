package dialect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// largest returns how large the Gemini form of a schema may be. What Gemini requires of
// any schema, such as items, does not count as growth.
func largest(given json.RawMessage) int {
	_, bare := Gemini.convert(given, reach{bare: true})
	size := max(len(schema.Prune(given)), len(bare))
	return size + max(size/3, 1<<10)
}

// graphOf returns a schema with types that refer to each other, as the entities of a mail or
// notebook service do: each has scalars, and each refers to others, in lists or
// alternatives. Its parameters are of the first types.
func graphOf(r *rand.Rand, types, scalars, references, parameters int) string {
	var b strings.Builder
	refer := func(to int) string {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/T%d"}`, to)
		switch r.IntN(4) {
		case 0:
			return `{"type":"array","items":` + ref + `}`
		case 1:
			return `{"anyOf":[` + ref + `,{"type":"null"}]}`
		case 2:
			return fmt.Sprintf(`{"allOf":[%s],"description":"The parent of all that stands in it."}`, ref)
		}
		return ref
	}
	b.WriteString(`{"type":"object","properties":{`)
	for i := range parameters {
		fmt.Fprintf(&b, `"p%d":%s,`, i, refer(i%types))
	}
	b.WriteString(`"id":{"type":"string"}},"required":["id"],"$defs":{`)
	for i := range types {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"T%d":{"type":"object","description":"An entity of kind %d, as the service keeps it.","properties":{`, i, i)
		for k := range references {
			fmt.Fprintf(&b, `"r%d":%s,`, k, refer(r.IntN(types)))
		}
		for k := range scalars {
			fmt.Fprintf(&b, `"s%d":{"type":["string","null"],"description":"A value that is read only, number %d."},`, k, k)
		}
		b.WriteString(`"name":{"type":"string"}}}`)
	}
	b.WriteString(`}}`)
	return b.String()
}

// A graph of types unrolls to a multiple of its size. The Gemini form grows by a third at
// most, and has the properties of each parameter's type.
func TestGeminiGrowth(t *testing.T) {
	t.Parallel()
	grows := 0
	seeds := mcptest.Long[uint64](10, 3)
	for seed := range seeds {
		for _, size := range []struct{ types, scalars, references, parameters int }{{8, 10, 4, 1}, {20, 10, 3, 2}, {12, 4, 6, 3}, {24, 6, 5, 2}} {
			given := graphOf(rand.New(rand.NewPCG(seed, 1)), size.types, size.scalars, size.references, size.parameters)
			_, unrolled := Gemini.convert(json.RawMessage(given), everything)
			if len(unrolled) <= 2*len(given) {
				continue // this graph is cut at its first levels
			}
			grows++
			converted, losses := convertTwice(t, gemini, given)
			require.LessOrEqual(t, len(converted), len(given)+len(given)/3, "%v: unrolled %d", size, len(unrolled))
			require.Greater(t, 10*len(converted), 5*len(given), "%v: room is left", size)
			require.NotEmpty(t, losses)
			var in struct{ Properties map[string]json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(converted), &in))
			for i := range size.parameters {
				require.Contains(t, string(in.Properties[fmt.Sprint("p", i)]), `"s0":{"type":["string","null"]`, "%v", size)
			}
			for _, loss := range losses[:min(len(losses), 100)] {
				require.Regexp(t, `: (is recursive|would make the schema too large), cut here$|/description: there twice`, loss)
			}
		}
	}
	assert.Greater(t, grows, int(seeds)*3, "of four graphs for each seed")
}

// References are cut level by level, the room that is left is used in order, and what fits is not
// cut at all.
func TestGeminiReach(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 900)
	chain := `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"}%s},"$defs":{"A":{"type":"object","description":"An A.","properties":{"x":{"$ref":"#/$defs/B"},"y":{"$ref":"#/$defs/B"}}},"B":{"type":"string","default":"` + pad + `"}}}`
	given := fmt.Sprintf(chain, "")
	converted, losses := convertTwice(t, gemini, given)
	assert.Equal(t, 2, strings.Count(converted, pad), "1 KiB more is allowed")
	assert.Equal(t, []string{
		"/properties/b/properties/x/$ref: would make the schema too large, cut here",
		"/properties/b/properties/y/$ref: would make the schema too large, cut here",
	}, losses)
	assert.Contains(t, converted, `"b":{"type":"object","description":"An A.","properties":{"x":{"type":"string"},"y":{"type":"string"}}}`)

	for _, of := range []string{openAI, anthropic} {
		same, losses := convertTwice(t, of, given)
		assert.Equal(t, given, same)
		assert.Empty(t, losses)
	}

	small := `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"},"c":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"x":{"type":"string","description":"An X of an A."}}}}}`
	converted, losses = convertTwice(t, gemini, small)
	assert.Equal(t, 3, strings.Count(converted, "An X of an A."))
	assert.Empty(t, losses)

	// The root is never cut, whatever is left of it.
	var parameters strings.Builder
	for i := range 40 {
		fmt.Fprintf(&parameters, `"p%d":{"$ref":"#/$defs/D"},`, i)
	}
	root := fmt.Sprintf(`{"$ref":"#/$defs/Args","$defs":{"Args":{"type":"object","properties":{%s"z":{"$ref":"#/$defs/D"}}},"D":{"type":"object","description":%q}}}`, parameters.String(), pad)
	converted, losses = convertTwice(t, gemini, root)
	assert.Contains(t, converted, `"z":{"type":"object"}`)
	assert.Equal(t, 1+41, strings.Count(converted, `{"type":"object"`))
	assert.NotEmpty(t, losses)
}

// Whatever refers to what, the Gemini form is valid and within its bound.
func FuzzGrowth(f *testing.F) {
	f.Add(uint64(0), uint8(8), uint8(10), uint8(4), uint8(1))
	f.Add(uint64(1), uint8(1), uint8(0), uint8(1), uint8(9))
	f.Add(uint64(2), uint8(30), uint8(1), uint8(7), uint8(30))
	f.Fuzz(func(t *testing.T, seed uint64, types, scalars, references, parameters uint8) {
		given := graphOf(rand.New(rand.NewPCG(seed, 2)), int(types%32)+1, int(scalars%32), int(references%8), int(parameters%32))
		for of := range dialects {
			convertTwice(t, of, given)
		}
	})
}
