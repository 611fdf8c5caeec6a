package mcphybrid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/saved"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A partMap is a [store.Parts] in memory.
type partMap struct {
	mu    sync.Mutex
	parts map[string][]byte
	gets  int
	err   error // of all calls, or nil
}

func (p *partMap) Put(key string, part []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts == nil {
		p.parts = make(map[string][]byte)
	}
	if p.err == nil {
		p.parts[key] = part
	}
	return p.err
}

func (p *partMap) Get(key string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gets++
	return p.parts[key], p.err
}

// forgetting sets what calls return from now on, and drops all parts.
func (p *partMap) forgetting(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts, p.err = nil, err
}

// manyServers returns a Manager with 80 servers of 5 tools each.
func manyServers(t *testing.T, parts store.Parts) *Manager {
	m, _ := newTestManager(t, &Options{StateParts: parts})
	for i := range 80 {
		name := fmt.Sprintf("server%02d", i)
		require.NoError(t, m.AddTools(name, mcptest.Chores(name, 5)...))
	}
	return m
}

// What many states have in common is in the store: a state has what is its own. It is
// restored to the byte wherever the store is, whatever servers are there.
func TestSaveInParts(t *testing.T) {
	t.Parallel()
	parts := new(partMap)
	m := manyServers(t, parts)
	s := m.NewSession(nil)
	s.PromptSections(PromptFull)
	s.ActivateTools([]string{"mcp_server20__tool_000", "mcp_server30__tool_000", "mcp_server40__tool_000", "mcp_server50__tool_000", "mcp_server60__tool_000"})
	sections, tools := sentBytes(s)
	state := s.Save()
	assert.Less(t, len(state), 2<<10)
	assert.Len(t, parts.parts, 6, "what it began with, and five definitions")

	// Where others begin with the same, nobody asks the store, and the list is shared.
	restored, changed, err := m.RestoreSession(state, nil)
	require.NoError(t, err)
	assert.Empty(t, changed)
	assert.Same(t, s.prefix, restored.prefix)
	assert.Equal(t, string(state), string(restored.Save()))
	assert.Zero(t, parts.gets)
	require.NoError(t, check(m, restored))

	// Elsewhere the store has what is missing.
	for _, servers := range [][]string{nil, {"server20", "other"}} {
		on, changed := turned(t, replicaOf(t, &Options{StateParts: parts}, servers...), state, nil)
		onSections, onTools := sentBytes(on)
		assert.True(t, strings.HasPrefix(onSections, sections), servers)
		assert.Equal(t, tools, onTools[:len(tools)])
		assert.NotEmpty(t, changed)
		next := on.Save()
		assert.Less(t, len(next), 3<<10, "it still refers to what it began with")
		back, changed := turned(t, m, next, nil)
		assert.Empty(t, changed)
		backSections, backTools := sentBytes(back)
		assert.Equal(t, onSections, backSections)
		assert.Equal(t, onTools, backTools)
		assert.Same(t, s.prefix, back.prefix)
	}

	// Without the store, it can be restored only where others begin with the same.
	without := manyServers(t, nil)
	on, _ := turned(t, without, state, nil)
	onSections, _ := sentBytes(on)
	assert.Equal(t, sections, onSections)
	_, _, err = replicaOf(t, nil).RestoreSession(state, nil)
	assert.ErrorContains(t, err, "mcphybrid: the state of the session: its prefix: it is the part ")
	assert.ErrorContains(t, err, " of a store, and there is none here")
}

// A store that fails loses nothing: then a state has all itself, and what can't be read
// is an error.
func TestPartStoreThatFails(t *testing.T) {
	t.Parallel()
	parts, down := new(partMap), errors.New("the store is down")
	parts.err = down
	m := manyServers(t, parts)
	s := m.NewSession(nil)
	sections, tools := sentBytes(s)
	state := s.Save()
	assert.Greater(t, len(state), 10<<10)
	elsewhere := replicaOf(t, &Options{StateParts: parts}, "server20")
	on, _ := turned(t, elsewhere, state, nil)
	onSections, onTools := sentBytes(on)
	assert.Equal(t, sections, onSections)
	assert.Equal(t, tools, onTools)

	parts = new(partMap)
	s = manyServers(t, parts).NewSession(nil)
	s.Tools()
	state = s.Save()
	elsewhere = replicaOf(t, &Options{StateParts: parts}, "server20")
	turned(t, elsewhere, state, nil)
	parts.forgetting(down)
	_, _, err := elsewhere.RestoreSession(state, nil)
	assert.ErrorIs(t, err, down)
	assert.ErrorIs(t, elsewhere.AwaitServers(t.Context(), state), down)
	parts.forgetting(nil)
	_, _, err = elsewhere.RestoreSession(state, nil)
	assert.ErrorContains(t, err, "its prefix: the store has no part ")
}

// A state does not name files: a key that is none reaches no store.
func TestForgedKeysReachNoStore(t *testing.T) {
	t.Parallel()
	parts := new(partMap)
	m := replicaOf(t, &Options{StateParts: parts}, "s0")
	for state, problem := range map[string]string{
		`{"version":3,"opening":"../../etc/passwd","first":1}`:                                                                   `its prefix: "../../etc/passwd" is no key of a part`,
		`{"version":3,"tools":[{"name":"mcp_x__run","server":"x","own":"run","part":"x"}],"shown":[{"kind":"inline","tool":1}]}`: `tool "mcp_x__run": "x" is no key of a part`,
		`{"version":3,"first":1}`:                                                                                                                      `its prefix "" has 1 tools`,
		`{"version":3,"opening":"x","first":1,"gone":[2],"began":{}}`:                                                                                  `tool 2 of 1 of its prefix is gone`,
		`{"version":3,"opening":"x","first":1,"began":{"tools":[]}}`:                                                                                   `its prefix has 0 tools, want 1`,
		`{"version":3,"opening":"x","first":1,"began":{"tools":[{"name":"a b","server":"a","own":"x"}]}}`:                                              `tool 1 has no usable name, server and own name: "a b", "a", "x"`,
		`{"version":3,"opening":"x","first":1,"began":{"tools":[{"name":"a","server":"a","own":"x"}],"shown":[{"kind":"inline","tool":2}]}}`:           `item 1 refers to tool 2 of 1`,
		`{"version":3,"opening":"x","first":1,"began":{"tools":[{"name":"mcp_a__x","server":"a","own":"x"}],"shown":[{"kind":"inline","tool":1}]}`:     `line 1, column 136: unexpected end of JSON input`,
		`{"version":3,"opening":"x","first":1,"shown":[{"kind":"x"}],"began":{"tools":[{"name":"mcp_a__x","server":"a","own":"x"}],"shown":[]},"x":1}`: `item 1: there is no kind "x" of items, or it has no tool`,
	} {
		s, _, err := m.RestoreSession(json.RawMessage(state), nil)
		assert.EqualError(t, err, "mcphybrid: the state of the session: "+problem)
		assert.Nil(t, s)
	}
	assert.Zero(t, parts.gets)
}

// The store's word counts for nothing: a part is what its key says.
func TestPartsAreChecked(t *testing.T) {
	t.Parallel()
	parts := new(partMap)
	s := manyServers(t, parts).NewSession(nil)
	s.Tools()
	state := s.Save()
	require.Len(t, parts.parts, 1)
	key := slices.Collect(maps.Keys(parts.parts))[0]
	parts.parts[key] = bytes.Replace(parts.parts[key], []byte("Does chore 1"), []byte("Obey this 11"), 1)
	_, _, err := replicaOf(t, &Options{StateParts: parts}).RestoreSession(state, nil)
	assert.EqualError(t, err, fmt.Sprintf("mcphybrid: the state of the session: its prefix: the store has something else as the part %q", key))
}

// Users' sessions have parts too, and each user's state is still that user's.
func TestUserSavesInParts(t *testing.T) {
	t.Parallel()
	parts := new(partMap)
	m := manyServers(t, parts)
	alice, bob := newUser(t, m, "alice", nil), newUser(t, m, "bob", nil)
	require.NoError(t, alice.AddTools("own", mcptest.Chores("own", 3)...))
	s := alice.NewSession(nil)
	s.Tools()
	s.ActivateTools([]string{"mcp_own__tool_001"})
	sections, tools := sentBytes(s)
	state := s.Save()
	assert.Less(t, len(state), 1<<10)
	restored, changed := turned(t, alice, state, nil)
	restoredSections, restoredTools := sentBytes(restored)
	assert.Empty(t, changed)
	assert.Equal(t, sections, restoredSections)
	assert.Equal(t, tools, restoredTools)
	_, _, err := bob.RestoreSession(state, nil)
	assert.EqualError(t, err, "mcphybrid: the state belongs to a session of another user")
}

// States are read that were saved before they had prefixes and parts.
func TestOldStatesAreRead(t *testing.T) {
	t.Parallel()
	state, err := os.ReadFile("testdata/states/v2.json")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/states/v2.txt")
	require.NoError(t, err)
	opts := &Options{Inline: InlineOptions{Max: 3}, Skills: someSkills(2), StateParts: new(partMap)}
	for _, servers := range [][]string{{"s0", "s1", "s2"}, {"s1"}, nil} {
		m := replicaOf(t, opts, servers...)
		for range 2 {
			s, changed := turned(t, m, state, nil)
			sections, tools := sentBytes(s)
			assert.True(t, strings.HasPrefix(sections+"\n"+strings.Join(tools, "\n"), string(want)), servers)
			assert.Equal(t, len(servers) == 3, len(changed) == 0)
			state = s.Save()
		}
	}
}

// In an upgrade, states have the form that the version before reads: everything in one. Nothing
// that the model was shown changes, in either direction. A state of a version to come is refused as such.
func TestStateVersion(t *testing.T) {
	t.Parallel()
	parts := new(partMap)
	now := replicaOf(t, &Options{Inline: InlineOptions{Max: 3}, StateParts: parts}, "s0", "s1")
	before := replicaOf(t, &Options{Inline: InlineOptions{Max: 3}, StateParts: parts, StateVersion: 4}, "s0", "s1")
	s, first := now.NewSession(nil), ""
	for i, m := range []*Manager{now, before, before, now, before} {
		turn, err := s.Turn(provider.OpenAIChat, "")
		require.NoError(t, err)
		if i == 0 {
			first = turn.System
		}
		assert.Equal(t, first, turn.System)
		require.NotEmpty(t, s.ActivateTools([]string{fmt.Sprintf("mcp_s1__tool_%03d", i)}))
		sections, tools := sentBytes(s)
		restored, changed := turned(t, m, s.Save(), nil)
		assert.Empty(t, changed)
		gotSections, gotTools := sentBytes(restored)
		assert.Equal(t, sections, gotSections)
		assert.Equal(t, tools, gotTools)

		kept, data := len(parts.parts), restored.Save()
		form, err := saved.Parse(data, NoLimit)
		require.NoError(t, err)
		if m == before {
			assert.Equal(t, 4, form.Version)
			assert.NotContains(t, string(data), `"part":`)
			assert.NotContains(t, string(data), `"opening":`)
			assert.Len(t, parts.parts, kept, "nothing was put")
		} else {
			assert.Equal(t, 5, form.Version)
		}
		s = restored
	}

	for state, newer := range map[string]bool{`{"version":6}`: true, `{"version":7,"lists":{}}`: true, `{"version":1}`: false, `{"lists":{}}`: false} {
		_, _, err := now.RestoreSession(json.RawMessage(state), nil)
		require.Error(t, err)
		assert.Equal(t, newer, errors.Is(err, ErrNewerState), "%s: %v", state, err)
	}
	for _, v := range []int{-1, 3, 6} {
		assert.Panics(t, func() { NewManager(&Options{StateVersion: v}) }, v)
	}
}

// The form of a state is what testdata/states/form.txt has, under the number of its newest version. A
// release reads what those before have written. So once a release has written a version, what its readers
// would refuse, misread or leave out needs a new number, and Save must still be able to write the version
// before: see [Options.StateVersion].
func TestStateForm(t *testing.T) {
	t.Parallel()
	var form strings.Builder
	fmt.Fprintf(&form, "version %d, and %d while older processes restore states\n", saved.Newest, saved.Oldest)
	var members func(of reflect.Type, indent string)
	members = func(of reflect.Type, indent string) {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			element := f.Type
			for element.Kind() == reflect.Slice && element.Elem().Kind() != reflect.Uint8 || element.Kind() == reflect.Pointer {
				element = element.Elem()
			}
			switch {
			case f.Anonymous:
				members(f.Type, indent)
				continue
			case name == "-", !f.IsExported():
				continue
			}
			fmt.Fprintf(&form, "%s%s %s\n", indent, name, element.Kind())
			if element.Kind() == reflect.Struct {
				members(element, indent+"\t")
			}
		}
	}
	members(reflect.TypeFor[saved.State](), "\t")
	form.WriteString("items\n")
	for _, f := range savedForms {
		fmt.Fprintf(&form, "\t%s, with a tool: %v\n", f.kind, f.tool)
	}
	fmt.Fprintf(&form, "told by %q\n", disclosureNames)
	golden.Compare(t, "states/form.txt", form.String())
}

// whole returns a state in the form that has all itself and no prefix.
func whole(t *testing.T, state json.RawMessage) string {
	s, err := saved.Parse(state, NoLimit)
	require.NoError(t, err)
	require.NoError(t, s.Whole(nil))
	s.PrefixLen = saved.PrefixLen{}
	return string(s.JSON(NoLimit, nil))
}
