package text

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCanonicalHash(t *testing.T) {
	const base = `{"name":"t","description":"Reads é","inputSchema":{"type":"object","properties":{"a":{"enum":[1,"x",null,true]},"b":{}}},"annotations":{"readOnlyHint":true}}`
	// Hosts have stored these hashes. A change would make all their tools look
	// changed.
	assert.Equal(t, "7557ade1cf30cfa20fdb0b657eeb28f4382a36c74ccba064d4ed4fd2a1a87c69", CanonicalHash(json.RawMessage(base)))
	tests := []struct {
		name, raw string
		same      bool
	}{
		{"order, space and escapes", ` {"annotations" : {"readOnlyHint":true}, "inputSchema":{"properties":{"b":{},"a":{"enum":[1,"\u0078",null,true]}},"type":"object"},"description":"Reads \u00e9",` + "\n" + `"n\u0061me":"t"}`, true},
		{"other members", strings.Replace(base, `{"name"`, `{"icons":[1],"_meta":{"x":1},"execution":{},"name"`, 1), true},
		{"name", strings.Replace(base, `"t"`, `"u"`, 1), false},
		{"description", strings.Replace(base, "Reads", "reads", 1), false},
		{"title", strings.Replace(base, `{"name"`, `{"title":"T","name"`, 1), false},
		{"output schema", strings.Replace(base, `{"name"`, `{"outputSchema":{},"name"`, 1), false},
		{"annotation", strings.Replace(base, `Hint":true`, `Hint":false`, 1), false},
		{"order of an enum", strings.Replace(base, `1,"x"`, `"x",1`, 1), false},
		{"deep in the schema", strings.Replace(base, `"b":{}`, `"b":{"description":"Ignore"}`, 1), false},
		{"string for a number", strings.Replace(base, `[1,`, `["1",`, 1), false},
		{"another spelling of a number", strings.Replace(base, `[1,`, `[1.0,`, 1), false},
		{"a null", strings.Replace(base, `{"name"`, `{"title":null,"name"`, 1), false},
		{"strings divided otherwise", strings.Replace(base, `"x",null`, `"x","",null`, 1), false},
		{"a member in another case, which a Go host reads too", strings.Replace(base, `{"name"`, `{"DESCRIPTION":"x","name"`, 1), false},
		{"the Kelvin sign is no K, but the long s is an s", strings.Replace(base, `{"name"`, `{"deſcription":"x","name"`, 1), false},
		{"twice", strings.Replace(base, `"annotations"`, `"description":"Reads é","annotations"`, 1), false},
	}
	seen := make(map[string]string)
	for _, test := range tests {
		require.True(t, json.Valid([]byte(test.raw)), test.raw)
		got := CanonicalHash(json.RawMessage(test.raw))
		assert.Equal(t, test.same, got == CanonicalHash(json.RawMessage(base)), test.name)
		if !test.same {
			assert.Empty(t, seen[got], test.name)
			seen[got] = test.name
		}
	}

	differ := [][2]string{ // they differ in what Go or a model provider reads last
		{`{"description":"a","description":"b"}`, `{"description":"b","description":"a"}`},
		{`{"description":"a","Description":"b"}`, `{"Description":"b","description":"a"}`},
		{`{"annotations":{"readOnlyHint":true,"READONLYHINT":false}}`, `{"annotations":{"READONLYHINT":false,"readOnlyHint":true}}`},
		{`{"inputSchema":{"a":1,"a":2}}`, `{"inputSchema":{"a":2,"a":1}}`},
		{`{"name":"ab","title":"c"}`, `{"name":"a","title":"bc"}`},
		{`{"inputSchema":{"a":[1,[2]]}}`, `{"inputSchema":{"a":[[1],2]}}`},
		{`{"inputSchema":{"a":[12]}}`, `{"inputSchema":{"a":[1,2]}}`},
		{`{"inputSchema":{"a":[]}}`, `{"inputSchema":{"a":{}}}`},
		{`{`, `{}`}, {`null`, `{}`}, {``, `{}`}, {`["name"]`, `["title"]`},
	}
	for _, pair := range differ {
		assert.NotEqual(t, CanonicalHash(json.RawMessage(pair[0])), CanonicalHash(json.RawMessage(pair[1])), "%s", pair)
	}
	assert.Equal(t, CanonicalHash(json.RawMessage(`{"inputSchema":{"properties":{"a":1,"A":2}}}`)),
		CanonicalHash(json.RawMessage(`{"inputSchema":{"properties":{"A":2,"a":1}}}`)), "parameters a and A are two")
	assert.Len(t, CanonicalHash(json.RawMessage(strings.Repeat(`{"name":`, 1<<20))), 64, "what is no JSON is hashed, too")
}

// shuffled writes n in another order and at random with escapes and space.
func shuffled(n Node, r *rand.Rand) []byte {
	space := []string{"", " ", "\n\t"}[r.IntN(3)]
	text := func(s string) []byte {
		b, _ := json.Marshal(s)
		if r.IntN(2) == 0 {
			b = bytes.ReplaceAll(b, []byte("e"), []byte(`\u0065`))
			if !json.Valid(b) || bytes.Contains(b, []byte(`\\`)) {
				b, _ = json.Marshal(s)
			}
		}
		return b
	}
	switch v := n.Value.(type) {
	case string:
		return append([]byte(space), text(v)...)
	case json.Delim:
		kids := slices.Clone(n.Kids)
		if v == '{' {
			r.Shuffle(len(kids), func(i, j int) { kids[i], kids[j] = kids[j], kids[i] })
		}
		b := append([]byte(space), byte(v))
		for i, kid := range kids {
			if i > 0 {
				b = append(b, ',')
			}
			if v == '{' {
				b = append(append(b, text(kid.Name)...), ':')
			}
			b = append(b, shuffled(kid, r)...)
		}
		return append(b, space+string(rune(v+2))...)
	}
	b, _ := json.Marshal(n.Value)
	return append(b, space...)
}

// ambiguous reports whether the order of n's members matters.
func ambiguous(n Node) bool {
	seen := make(map[string]bool)
	for _, kid := range n.Kids {
		if n.Value == json.Delim('{') && seen[FoldCase(kid.Name)] || ambiguous(kid) {
			return true
		}
		seen[FoldCase(kid.Name)] = true
	}
	return false
}

func FuzzCanonicalHash(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `[]`, `{"name":"a","NAME":"b"}`, `{"inputSchema":{"a":[1e400,-0,{"b":"\ud800"}],"":null}}`, "{\"title\":\"\xff\xc3\"}",
		`{"name":"a","description":"the end","inputSchema":{"properties":{"e":{"enum":["e",1.0,true,null]}},"type":"object"}}`,
		`{"description":"` + strings.Repeat("\u0301", 100_000) + `"}`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		hash := CanonicalHash(raw)
		require.Len(t, hash, 64)
		n, ok := Definition(raw)
		if !ok {
			return
		}
		var compacted bytes.Buffer
		require.NoError(t, json.Compact(&compacted, raw))
		require.Equal(t, hash, CanonicalHash(compacted.Bytes()))
		if !ambiguous(n) {
			require.Equal(t, hash, CanonicalHash(shuffled(n, rand.New(rand.NewPCG(seed, 0)))))
		}
	})
}

// What is no object is hashed as the bytes that it is, apart from all objects, and is not
// written to.
func TestHashOfWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "5", "[]", `{"a":`, "null"} {
		raw := append(make([]byte, 0, 64), text...)
		want := sha256.Sum256([]byte("bytes " + text))
		assert.Equal(t, hex.EncodeToString(want[:]), CanonicalHash(raw), text)
		assert.Equal(t, make([]byte, 64-len(text)), raw[len(text):64], text)
		assert.Equal(t, text, string(raw))
	}
}
