package saved

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// a state of n tools, each shown by one item, of which every third is active, and
// one more that is active only.
func stateOf(n int) *State {
	s := &State{Turn: 3, Intent: "browse", Refused: &Refusal{Sum: "00", Times: 2}}
	for i := range n {
		s.Tools = append(s.Tools, Tool{Subject: rules.Subject{Name: fmt.Sprintf("mcp_a__%03d", i), Server: "a", Own: fmt.Sprint(i)}, Definition: Bytes(fmt.Sprintf(`{ "name":"%d<&>" }`, i))})
		s.Shown = append(s.Shown, Item{Kind: "inline", Tool: i + 1})
		if i%3 == 2 {
			s.Active = append(s.Active, Active{Tool: i + 1, Used: i})
		}
	}
	s.Tools = append(s.Tools, Tool{Subject: rules.Subject{Name: "mcp_b__x", Server: "b", Own: "x", Wanted: "y"}, OfUser: true, Gone: true})
	s.Active = append(s.Active, Active{Tool: n + 1})
	s.Shown = append(s.Shown, Item{Kind: "meta", Meta: "search", Servers: list[*Server]{{Server: "b", Tools: 2, About: "c", Tool: rules.Subject{Name: "d"}}}},
		Item{Kind: "skills", Skills: &Skills{Listed: list[Skill]{{"a", "b", "c", "d"}}, Count: 1, More: true}})
	return s
}

func TestStateIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := stateOf(9)
	s.Tools[3].Definition = Bytes("{\"name\":\"\xff\xfe\"}") // no valid UTF-8
	data := s.JSON(1<<20, nil)
	got, err := Parse(data, len(data))
	require.NoError(t, err)
	read := *got
	read.left = 0
	assert.Equal(t, *s, read)
	assert.Contains(t, string(data), `"definition":"{ \"name\":\"0<&>\" }"`, "as a string, which nobody reformats")
	assert.JSONEq(t, string(data), string(got.JSON(1<<20, nil)))
}

// Whatever the limit, what is written keeps it and is a beginning of the whole.
func TestLimit(t *testing.T) {
	t.Parallel()
	whole := stateOf(30)
	size, items, active := len(whole.JSON(1<<20, nil)), 0, 0
	for limit := 150; limit <= size; limit++ {
		data := stateOf(30).JSON(limit, nil)
		require.LessOrEqual(t, len(data), limit)
		got, err := Parse(data, limit)
		require.NoError(t, err)
		assert.Equal(t, whole.Intent, got.Intent)
		assert.GreaterOrEqual(t, len(got.Shown), items)
		assert.GreaterOrEqual(t, len(got.Active), active)
		items, active = len(got.Shown), len(got.Active)
		assert.True(t, items == 0 || active == len(whole.Active), "what is active comes first")
		for i, e := range got.Shown {
			require.Equal(t, whole.Shown[i].Kind, e.Kind)
			if e.Tool > 0 {
				require.Equal(t, whole.Tools[whole.Shown[i].Tool-1], got.Tools[e.Tool-1])
			}
		}
		for i, a := range got.Active {
			require.Equal(t, whole.Active[i].Used, a.Used)
			require.Equal(t, whole.Tools[whole.Active[i].Tool-1].Name, got.Tools[a.Tool-1].Name)
		}
	}
	assert.Equal(t, len(whole.Shown), items)
	assert.Equal(t, len(whole.Active), active)
}

// More entries than a list may have are neither written nor read.
func TestEntries(t *testing.T) {
	t.Parallel()
	s := new(State)
	for range 1<<16 + 1 {
		s.Shown = append(s.Shown, Item{Kind: "x"})
	}
	_, err := Parse([]byte(text.JSON(struct {
		Version int    `json:"version"`
		Shown   []Item `json:"shown"`
	}{version, s.Shown})), 1<<30)
	assert.EqualError(t, err, "a list has more than 65536 entries")
	full, err := Parse([]byte(text.JSON(struct {
		Version int    `json:"version"`
		Shown   []Item `json:"shown"`
	}{version, s.Shown[:1<<16]})), 1<<30)
	require.NoError(t, err)
	assert.Len(t, full.Shown, 1<<16)
	got, err := Parse(s.JSON(1<<30, nil), 1<<30)
	require.NoError(t, err)
	assert.Len(t, got.Shown, 1<<16/2)
}

func TestParseNamesTheMistake(t *testing.T) {
	t.Parallel()
	tools := `"tools":[{"name":"mcp_a__x","server":"a","own":"x"}]`
	for data, want := range map[string]string{
		``:                                    "line 1, column 1: unexpected end of JSON input",
		`[]`:                                  "is a JSON array, want an object",
		`{"version":6}`:                       "a newer version of the library has saved it: it has version 6, want 2 to 5",
		`{"version":6,"tools":{},"lists":[]}`: "a newer version of the library has saved it: it has version 6, want 2 to 5",
		`{"version":1}`:                       "version 1, want 2 to 5",
		`{"version":"2"}`:                     `"version" is a JSON string, want a number`,
		`{"version":2,"tools":{}}`:            "a list is missing: {}",
		`{"version":2,"tools":[{"name":"a b","server":"a","own":"x"}]}`:              `tool 1 has no usable name, server and own name: "a b", "a", "x"`,
		`{"version":2,"tools":[{"name":"a","server":"","own":"x"}]}`:                 `tool 1 has no usable name, server and own name: "a", "", "x"`,
		`{"version":2,"active":[{"tool":1,"used":"x"}]}`:                             `"used" is a JSON string, want a number`,
		`{"version":2,"tools":[{"name":"a","server":"a","own":"x","definition":1}]}`: "a definition is neither a string nor an array of one in base 64",
		`{"version":2,` + tools + `,"shown":[{"tool":2}]}`:                           "item 1 refers to tool 2 of 1",
		`{"version":2,` + tools + `,"shown":[{"tool":-1}]}`:                          "item 1 refers to tool -1 of 1",
		`{"version":2,"shown":[{"servers":[{"server":"a"},null]}]}`:                  "item 1 has a server that is null",
		`{"version":2,` + tools + `,"active":[{"tool":1},{}]}`:                       "active tool 2 refers to tool 0 of 1",
		`{"version":2,"turn":1,"x":"` + strings.Repeat("x", 200) + `"}`:              "it has 229 bytes, more than the limit of 220",
	} {
		s, err := Parse([]byte(data), 220)
		assert.EqualError(t, err, want, data)
		assert.Nil(t, s)
	}
}

// What stores a state may write it in another way. It counts like the original.
func TestSizeOfOtherForms(t *testing.T) {
	t.Parallel()
	s := stateOf(30)
	s.Intent = "a/b \" \\ ü 世 😀 \n \u2028 <>"
	data := []byte(s.JSON(1<<20, nil))
	limit := len(data)
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, data, " ", "\t"))
	ascii := ""
	for _, r := range string(data) {
		if ascii += string(r); r > 0x7f {
			ascii = strings.TrimSuffix(ascii, string(r))
			for _, unit := range utf16.Encode([]rune{r}) {
				ascii += fmt.Sprintf(`\u%04x`, unit)
			}
		}
	}
	for name, other := range map[string]string{
		"itself": string(data), "indented": indented.String(), "in ASCII": ascii,
		"with slashes": strings.ReplaceAll(ascii, "/", `\/`), "for HTML": strings.ReplaceAll(string(data), "<", `\u003c`),
	} {
		assert.InDelta(t, limit, size([]byte(other)), 3, "%s: JSON writes U+2028 with six bytes", name)
		got, err := Parse([]byte(other), limit)
		require.NoError(t, err, name)
		assert.Equal(t, string(data), string(got.JSON(limit, nil)), name)
	}
	_, err := Parse(indented.Bytes(), limit-10)
	assert.EqualError(t, err, fmt.Sprintf("it has %d bytes, more than the limit of %d", limit-3, limit-10))
	_, err = Parse([]byte(strings.Repeat(" ", 4*limit+4)), limit)
	assert.EqualError(t, err, fmt.Sprintf("it has %d bytes, more than four times the limit of %d", 4*limit+4, limit))
}

// What is read at all can be written again, and is read as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(stateOf(3).JSON(1<<20, nil)))
	f.Add([]byte(`{"version":2,"tools":[{"name":"a","server":"b","own":"c","definition":["//79"]}],"shown":[{"kind":"x","tool":1,"skills":{"listed":null}}],"active":[{"tool":1}]}`))
	parts := partsOf(new(memory), new(bytes.Buffer))
	f.Add([]byte(begunOf(3, 2).JSON(1<<20, nil)))
	f.Add([]byte(begunOf(3, 2).JSON(1<<20, parts)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, 1<<16)
		if err != nil || s.Whole(parts) != nil {
			return
		}
		whole := s.JSON(1<<20, nil)
		require.True(t, json.Valid(whole))
		require.LessOrEqual(t, size(whole), len(whole))
		again, err := Parse(whole, 1<<20)
		require.NoError(t, err)
		require.NoError(t, again.Whole(nil))
		require.JSONEq(t, string(whole), string(again.JSON(1<<20, nil)))
		part, err := Parse(s.JSON(300+len(text.JSON(s.Intent+s.Catalog+s.User)), nil), 1<<20)
		require.NoError(t, err)
		require.NoError(t, part.Whole(nil))
		require.LessOrEqual(t, len(part.Shown), len(s.Shown))
	})
}

// A session that is restored has at least the lists that the saved one had, and an intent if
// that had one.
func TestFits(t *testing.T) {
	t.Parallel()
	s := &State{Lists: 2, Skills: 3, Intent: "mail"}
	assert.NoError(t, s.Fits(2, 3, "other"))
	assert.NoError(t, s.Fits(3, 4, "x"))
	assert.ErrorContains(t, s.Fits(1, 3, "x"), "has more access lists than the new one, 2 instead of 1: ")
	assert.ErrorContains(t, s.Fits(2, 2, "x"), "has more lists of skills than the new one, 3 instead of 2: ")
	assert.ErrorContains(t, s.Fits(2, 3, ""), `had the intent "mail"`)
	assert.NoError(t, new(State).Fits(0, 0, ""))
}

// A prefix that is named has a number of tools, within the limit, and one that is not has
// none.
func TestToolsOfAPrefix(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key   string
		tools int
		ok    bool
	}{{"k", 0, true}, {"k", 1, true}, {"k", 65536, true}, {"k", 65537, false}, {"k", -1, false}, {"", 0, true}, {"", 1, false}} {
		_, err := Parse(fmt.Appendf(nil, `{"version":5,"opening":%q,"first":%d}`, test.key, test.tools), 1000)
		if test.ok {
			assert.NoError(t, err, test)
		} else {
			assert.EqualError(t, err, fmt.Sprintf("its prefix %q has %d tools", test.key, test.tools))
		}
	}
	for gone, ok := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		_, err := Parse(fmt.Appendf(nil, `{"version":5,"opening":"k","first":2,"gone":[%d]}`, gone), 1000)
		assert.Equal(t, ok, err == nil, "%d: %v", gone, err)
	}
}

// A tool is known by its definition, or by the key of the part that has it.
func TestIs(t *testing.T) {
	t.Parallel()
	def := []byte(`{"name":"a"}`)
	sum := sha256.Sum256(def)
	for _, test := range []struct {
		t    Tool
		want bool
	}{{Tool{}, true}, {Tool{Definition: def}, true}, {Tool{Definition: []byte("x")}, false}, {Tool{Part: store.KeyOf(def)}, true}, {Tool{Part: store.KeyOf([]byte("x"))}, false}, {Tool{Part: store.KeyOf([]byte("x")), Definition: def}, false}} {
		assert.Equal(t, test.want, test.t.Is(def, &sum))
	}
	for _, tool := range []Tool{{Definition: def}, {Definition: def, Sum: &sum}} {
		assert.Equal(t, store.KeyOf(def), tool.part())
	}
}
