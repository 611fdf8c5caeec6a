package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChangeAsALine(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 23, 12, 0, 0, 0, time.FixedZone("", 3600))
	for _, test := range []struct {
		change Change
		want   string
	}{
		{Change{Kind: "tool", Name: "a", Server: "s", Added: true, Is: "0123456789abcdef"}, `tool "a" of server "s" is new, hash 0123456789ab`},
		{Change{Kind: "skill", Name: "a\nb", Server: "s", Is: "0123456789abcdef"}, `skill "a b" of server "s" exceeds the number of skills remembered for a server, hash 0123456789ab`},
		{Change{Kind: "tool", Name: "a", Server: "s", Since: since, Was: "fedcba9876543210", Is: "0123456789abcdef"}, `tool "a" of server "s" has changed since 2026-11-23T11:00:00Z, from fedcba987654 to 0123456789ab`},
	} {
		assert.Equal(t, test.want, test.change.String())
	}
}

// At its limit, a server's memory takes no further tool and still takes what a person
// accepts of one that it has.
func TestAcceptAtTheLimit(t *testing.T) {
	t.Parallel()
	m := fresh(Never, 2, nil)
	m.Judge("s", []*Definition{define("a", "1")})
	assert.True(t, m.Accept("s", define("b", "1")), "one below the limit")
	assert.False(t, m.Accept("s", define("c", "1")), "one more than the limit")
	assert.True(t, m.Accept("s", define("a", "2")))
	assert.Equal(t, []Finding{Known, Beyond}, findings(m.Judge("s", []*Definition{define("a", "2"), define("c", "1")})))
	assert.False(t, m.Accept("other", define("a", "1")), "a server that is not known")
}

// Whatever a store has of what was known before, the newest of it are kept, up to a limit.
func TestFormerIsBoundedWhenRead(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1: 1, 8 - 1: 8 - 1, 8: 8, 8 + 1: 8, 10 * 8: 8} {
		var former []string
		for i := range n {
			former = append(former, fmt.Sprint("f", i))
		}
		data, err := json.Marshal(history{Version: version, Servers: map[string]map[string]*tool{"s": {"a": {Hash: "h", Former: former}}}})
		require.NoError(t, err)
		doc, err := readDocument(data, nil)
		require.NoError(t, err)
		assert.Len(t, doc.Servers["s"]["a"].Former, want)
		if n > 0 {
			assert.Equal(t, former[:want], doc.Servers["s"]["a"].Former)
		}
	}
}

// twice is a store during whose first update something else is to be saved.
type twice struct {
	*memory
	meanwhile func()
}

func (s *twice) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	data, err := change(s.data)
	if err != nil {
		return err
	}
	s.data = data
	if do := s.meanwhile; do != nil {
		s.meanwhile = nil
		do()
	}
	return nil
}

// A Save that has to go on with what came meanwhile still reports what its first round
// has learned.
func TestSaveGoesOn(t *testing.T) {
	t.Parallel()
	doc := &twice{memory: new(memory)}
	other := fresh(Never, 10, doc)
	other.Judge("theirs", []*Definition{define("a", "1")})
	_, err := other.Save()
	require.NoError(t, err)
	m := fresh(Never, 10, doc)
	m.Judge("ours", []*Definition{define("b", "1")})
	doc.meanwhile = func() {
		m.Judge("later", []*Definition{define("c", "1")})
		_, err := m.Save()
		assert.NoError(t, err)
		assert.NotContains(t, string(doc.data), "later", "it returns at once")
	}
	changed, err := m.Save()
	require.NoError(t, err)
	assert.True(t, changed)
	for _, server := range []string{"ours", "theirs", "later"} {
		assert.Contains(t, string(doc.data), server)
	}
}

// What is remembered of a tool is never changed: two that follow it share nothing that either
// writes.
func TestToolsShareNoFormer(t *testing.T) {
	t.Parallel()
	was := tool{Sum: "1", Hash: "h", Former: append(make([]string, 0, 8), "f")}
	one := was.replacing(&tool{Sum: "2", Hash: "x"})
	other := was.replacing(&tool{Sum: "3", Hash: "y"})
	assert.Equal(t, []string{"f", "x"}, one.Former)
	assert.Equal(t, []string{"f", "y"}, other.Former)
	assert.Equal(t, []string{"f"}, was.Former)
}

// A store is loaded once, and again after an error.
func TestLoadedOnce(t *testing.T) {
	t.Parallel()
	doc := &counting{err: errors.New("no disk")}
	m := fresh(Never, 10, doc)
	assert.ErrorContains(t, m.Load(), "loading the known tools: no disk")
	doc.err = nil
	for range 3 {
		assert.NoError(t, m.Load())
	}
	assert.Equal(t, 2, doc.loads)
	_, err := m.Refresh()
	assert.NoError(t, err)
	assert.Equal(t, 3, doc.loads)
	assert.NoError(t, fresh(Never, 10, nil).Load(), "there is no store")
}

// counting is a store that counts how often it is loaded.
type counting struct {
	memory
	err   error
	loads int
}

func (c *counting) Load() ([]byte, error) {
	c.loads++
	return nil, c.err
}

// What was said of a server that is gone is over; its tools stay known.
func TestLeft(t *testing.T) {
	t.Parallel()
	m := fresh(Never, 10, nil)
	m.Judge("s", []*Definition{define("a", "1")})
	m.Left("s")
	m.Left("never was")
	assert.Equal(t, Changed, m.Judge("s", []*Definition{define("a", "2")})[0].Finding)
}

// Who does not wait for new tools marks none of others' as one that came late: those who wait,
// and share the store, would hold it back.
func TestOnlyWhoWaitsMarksLateTools(t *testing.T) {
	t.Parallel()
	for caution, want := range map[Caution]bool{Never: false, Suspect: false, Always: true} {
		doc := new(memory)
		first, other := fresh(caution, 10, doc), fresh(Never, 10, doc)
		first.Judge("s", []*Definition{define("a", "1")})
		other.Judge("s", []*Definition{define("a", "1"), define("b", "1")})
		_, err := other.Save()
		require.NoError(t, err)
		_, err = first.Refresh()
		require.NoError(t, err)
		assert.Equal(t, want, first.servers["s"].tools["b"].Late, caution)
	}
}

// A refresh says that something has changed if another process has stored a tool, or another
// definition of one.
func TestRefreshTellsChanges(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	m := fresh(Never, 10, doc)
	m.Judge("s", []*Definition{define("a", "1")})
	_, err := m.Save()
	require.NoError(t, err)
	changed, err := m.Refresh()
	require.NoError(t, err)
	assert.False(t, changed, "it is ours")
	other := fresh(Never, 10, doc)
	require.NoError(t, other.Load())
	require.True(t, other.Accept("s", define("a", "2")))
	_, err = other.Save()
	require.NoError(t, err)
	changed, err = m.Refresh()
	require.NoError(t, err)
	assert.True(t, changed)
	changed, err = m.Refresh()
	require.NoError(t, err)
	assert.False(t, changed)
}

// What a person has accepted is not late, whatever a store says.
func TestAcceptedIsNotLate(t *testing.T) {
	t.Parallel()
	for accepted, want := range map[string]string{"true": "a1 known", "false": "a1 added"} {
		doc := &memory{data: []byte(`{"version":2,"servers":{"s":{"a":{"hash":"a1","late":true,"accepted":` + accepted + `}}}}`)}
		m := fresh(Always, 100, doc)
		require.NoError(t, m.Load())
		assert.Equal(t, want, judged(m, "a1"))
	}
}
