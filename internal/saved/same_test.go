package saved

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/rules"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSame(t *testing.T) {
	t.Parallel()
	whole := Tool{Subject: rules.Subject{Name: "n", Server: "s", Own: "o"}, OfUser: true, Definition: []byte("{}")}
	same := whole
	same.Definition = bytes.Clone(whole.Definition)
	assert.True(t, whole.Same(&same))
	for name, change := range map[string]func(*Tool){
		"name": func(t *Tool) { t.Name = "x" }, "server": func(t *Tool) { t.Server = "x" }, "own name": func(t *Tool) { t.Own = "x" },
		"owner": func(t *Tool) { t.OfUser = false }, "definition": func(t *Tool) { t.Definition = []byte("[]") },
	} {
		other := whole
		change(&other)
		assert.False(t, whole.Same(&other), name)
		assert.False(t, other.Same(&whole), name)
	}
}

// A server is told again if anything that a model read of it is another.
func TestSameServer(t *testing.T) {
	t.Parallel()
	one := Server{Server: "s", Tools: 1, About: "a", Gist: "g", Own: "o", Tool: rules.Subject{Name: "n", Server: "s", Own: "o", Wanted: "w"}}
	same := one
	assert.True(t, one.Same(&one))
	assert.True(t, one.Same(&same))
	for name, change := range map[string]func(*Server){
		"server": func(s *Server) { s.Server = "x" }, "tools": func(s *Server) { s.Tools = 2 }, "about": func(s *Server) { s.About = "x" },
		"gist": func(s *Server) { s.Gist = "x" }, "own": func(s *Server) { s.Own = "x" },
		"the tool's name": func(s *Server) { s.Tool.Name = "x" }, "the tool's server": func(s *Server) { s.Tool.Server = "x" },
		"the tool's own name": func(s *Server) { s.Tool.Own = "x" }, "the tool's wanted name": func(s *Server) { s.Tool.Wanted = "x" },
	} {
		other := one
		change(&other)
		assert.False(t, one.Same(&other), name)
	}
}

// A prefix of one item is one.
func TestShortestPrefix(t *testing.T) {
	t.Parallel()
	for items, want := range map[int]bool{0: false, 1: true, 2: true} {
		s := begunOf(9, items)
		data := s.JSON(1<<20, nil)
		got, err := Parse(data, 1<<20)
		require.NoError(t, err)
		assert.Equal(t, want, got.PrefixKey != "", items)
		require.NoError(t, got.Whole(nil))
		assert.Equal(t, s.Shown, got.Shown)
		assert.Len(t, got.Tools, len(s.Tools))
	}
}

// A state whose prefix is missing or damaged is not taken for one without a prefix.
func TestPrefixThatCannotBeRead(t *testing.T) {
	t.Parallel()
	null := []byte("null")
	for name, test := range map[string]struct {
		change func(s *memory, key string)
		want   string
	}{
		"missing": {func(s *memory, key string) { delete(s.parts, key) }, "its prefix: the store has no part"},
		"other":   {func(s *memory, key string) { s.parts[key] = []byte("x") }, "its prefix: the store has something else"},
	} {
		kept := new(memory)
		data := begunOf(9, 4).JSON(1<<20, partsOf(kept, new(bytes.Buffer)))
		s, err := Parse(data, 1<<20)
		require.NoError(t, err)
		test.change(kept, s.PrefixKey)
		assert.ErrorContains(t, s.Whole(partsOf(kept, new(bytes.Buffer))), test.want, name)
	}
	tool := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"name":"n","server":"s","own":"o"},`, n), ",")
	}
	few := len(begunOf(9, 4).prefix().Tools)
	for part, want := range map[string]string{
		`{}`: fmt.Sprintf("its prefix has 0 tools, want %d", few), `{"tools":[` + tool(few-1) + `,{}]}`: "tool", `{"tools":[` + tool(few) + `],"shown":[{"kind":"k","tool":99}]}`: "item 1 refers to tool 99 of 4",
	} {
		kept := &memory{parts: map[string][]byte{store.KeyOf([]byte(part)): []byte(part)}}
		s, err := Parse(begunOf(9, 4).JSON(1<<20, partsOf(kept, new(bytes.Buffer))), 1<<20)
		require.NoError(t, err)
		s.PrefixKey = store.KeyOf([]byte(part))
		assert.ErrorContains(t, s.Whole(partsOf(kept, new(bytes.Buffer))), want, part)
	}
	for _, part := range [][]byte{null, []byte("[]"), []byte(`{"tools":`)} {
		kept := &memory{parts: map[string][]byte{store.KeyOf(part): part}}
		s, err := Parse(begunOf(9, 4).JSON(1<<20, partsOf(kept, new(bytes.Buffer))), 1<<20)
		require.NoError(t, err)
		s.PrefixKey = store.KeyOf(part)
		assert.ErrorContains(t, s.Whole(partsOf(kept, new(bytes.Buffer))), "its prefix: ", "%s", part)
	}
}

// Whatever a text ends with, its size is counted, and nothing behind it is read.
func TestSizeOfATornText(t *testing.T) {
	t.Parallel()
	const text = `{"a":"b\u0041\\\/\"\ud83d\ude00é","c": 1}`
	for n := range len(text) + 1 {
		data := slices.Clip([]byte(text)[:n])
		assert.LessOrEqual(t, size(data), n, "%s", data)
	}
	for torn, want := range map[string]int{`"\u`: 3, `"\u0`: 4, `"\u00`: 5, `"\u004`: 6, `"\u0041`: 2, `"\u0041"`: 3, `"\`: 2, `"\/`: 2} {
		assert.Equal(t, want, size(slices.Clip(append(make([]byte, 0, len(torn)), torn...))), torn)
	}
}

// Space between values does not count, whatever it is; within a text it does.
func TestSizeWithoutSpace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"{ \n\t\r}": 2, "\r\r[1,\t2]\n": 5, `" "`: 3, "1 2": 2} {
		assert.Equal(t, want, size([]byte(text)), "%q", text)
	}
}

// scribbling is a store of a host that goes on to use the memory of what it gets and gives.
type scribbling struct{ memory }

func (s *scribbling) Put(key string, part []byte) error {
	err := s.memory.Put(key, bytes.Clone(part))
	clear(part)
	return err
}

// The bytes of a state are its own, whatever a store does with those that it was given or has
// returned.
func TestPartsAreNotShared(t *testing.T) {
	t.Parallel()
	kept := new(scribbling)
	parts := partsOf(kept, new(bytes.Buffer))
	s := begunOf(9, 4)
	data := s.JSON(1<<20, parts)
	require.NotEmpty(t, kept.parts)
	assert.Equal(t, begunOf(9, 4).Tools, s.Tools)
	got := read(t, data, 1<<20, parts)
	for _, part := range kept.parts {
		clear(part)
	}
	for i := range s.Tools {
		assert.Equal(t, string(s.Tools[i].Definition), string(got.Tools[i].Definition))
	}
}

// Tools of the prefix that are gone are tools of the prefix.
func TestPlacesOfWhatIsGone(t *testing.T) {
	t.Parallel()
	for place, want := range map[int]bool{-1: false, 0: false, 1: true, 4: true, 5: false} {
		var all map[string]any
		require.NoError(t, json.Unmarshal(begunOf(9, 4).JSON(1<<20, nil), &all))
		all["gone"] = []int{place}
		data, err := json.Marshal(all)
		require.NoError(t, err)
		if _, err = Parse(data, 1<<20); want {
			assert.NoError(t, err, place)
		} else {
			assert.EqualError(t, err, fmt.Sprintf("tool %d of 4 of its prefix is gone", place))
		}
	}
}
