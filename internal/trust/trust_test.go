package trust

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func define(name, text string) *Definition {
	return &Definition{Name: name, Sum: sha256.Sum256([]byte(text)), Hash: func() string { return fmt.Sprintf("%x", sha256.Sum256([]byte("said "+text))) }}
}

func findings(verdicts []Verdict) (list []Finding) {
	for _, v := range verdicts {
		list = append(list, v.Finding)
	}
	return list
}

// A document is a Store in memory.
type memory struct {
	data []byte
	err  error
}

func (m *memory) Load() ([]byte, error) { return m.data, m.err }

func (m *memory) Save(data []byte) error {
	if m.err == nil {
		m.data = data
	}
	return m.err
}

func fresh(caution Caution, most int, doc store.Document) *Memory {
	return New(caution, most, names.NewBook(10), doc)
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for caution, want := range map[Caution][]Finding{
		Never:   {Known, Known, Changed, Known, Known},
		Suspect: {Known, Known, Changed, Added, Known},
		Always:  {Known, Added, Changed, Added, Added},
	} {
		m := fresh(caution, 100, nil)
		a, b, c := define("a", "1"), define("b", "1"), define("c", "1")
		got := findings(m.Judge("s", []*Definition{a}))
		got = append(got, m.Judge("s", []*Definition{a, b})[1].Finding)
		bad := define("a", "2")
		verdicts := m.Judge("s", []*Definition{bad, c})
		got = append(got, findings(verdicts)...)
		assert.Equal(t, a.Hash(), verdicts[0].Was)
		assert.False(t, verdicts[0].Since.IsZero())
		got = append(got, m.Judge("s", []*Definition{a, define("d", "1")})[1].Finding)
		assert.Equal(t, want, got, "caution %d", caution)
		assert.Equal(t, []Finding{Known}, findings(m.Judge("other", []*Definition{define("a", "5")})), "another server")
	}
}

// A server that changes a tool and then removes it does not get another one in.
func TestSuspicionStays(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	m := fresh(Suspect, 100, doc)
	require.NoError(t, m.Load())
	a, bad := define("a", "1"), define("a", "2")
	m.Judge("s", []*Definition{a})
	m.Judge("s", []*Definition{bad})
	again := define("a2", "2")
	assert.Equal(t, []Finding{Added}, findings(m.Judge("s", []*Definition{again})))
	_, err := m.Save()
	require.NoError(t, err)
	next := fresh(Suspect, 100, doc)
	require.NoError(t, next.Load())
	assert.Equal(t, []Finding{Added}, findings(next.Judge("s", []*Definition{again})), "in another process")
	next.Accept("s", bad)
	assert.Equal(t, []Finding{Known}, findings(next.Judge("s", []*Definition{again})))
	assert.Equal(t, []Finding{Changed}, findings(next.Judge("s", []*Definition{a})))
}

// Memories that save a file at once forget nothing of each other.
func TestSharedFile(t *testing.T) {
	t.Parallel()
	file := store.File(filepath.Join(t.TempDir(), "known.json"))
	const most = 8
	var wg sync.WaitGroup
	for i := range most {
		m := fresh(Suspect, 1000, file)
		m.Judge(fmt.Sprint(i), []*Definition{define("tool", "1")})
		wg.Go(func() {
			_, err := m.Save()
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	m := fresh(Suspect, 1000, file)
	require.NoError(t, m.Load())
	for i := range most {
		assert.Equal(t, []Finding{Changed}, findings(m.Judge(fmt.Sprint(i), []*Definition{define("tool", "2")})))
	}
}

// Who waits for what is stored learns how it went, also if another goroutine stores it.
func TestStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		doc := slow{make(chan error)}
		m := fresh(Never, 10, doc)
		assert.NoError(t, m.Stored())
		m.Judge("s", []*Definition{define("a", "1")})
		go m.Save()
		synctest.Wait()
		m.Accept("s", define("a", "2"))
		_, err := m.Save()
		assert.NoError(t, err, "it waits for nobody")
		assert.EqualError(t, m.Stored(), "storing the known tools has not ended within 10s")
		doc.saves <- nil
		go func() { doc.saves <- errors.New("no disk") }()
		assert.EqualError(t, m.Stored(), "storing the known tools: no disk")
		go func() { doc.saves <- nil }()
		_, err = m.Save()
		assert.NoError(t, err)
		assert.NoError(t, m.Stored())
	})
}

// slow is a Store whose Save returns what it is told.
type slow struct{ saves chan error }

func (slow) Load() ([]byte, error) { return nil, nil }
func (s slow) Save(_ []byte) error { return <-s.saves }

// A store that forgets to change its document is one that fails.
func TestForgetfulStore(t *testing.T) {
	t.Parallel()
	m := fresh(Never, 10, forgetful{store.File(filepath.Join(t.TempDir(), "known.json"))})
	m.Judge("s", []*Definition{define("a", "1")})
	for range 2 { // it goes on to try
		_, err := m.Save()
		assert.EqualError(t, err, "storing the known tools: the store did not call change")
	}
}

type forgetful struct{ store.File }

func (forgetful) Update(context.Context, func([]byte) ([]byte, error)) error { return nil }

// What was found here counts before what others found only as long as the known
// definition is the same.
func TestSuspicionOfOthers(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	a, b := fresh(Suspect, 1000, doc), fresh(Suspect, 1000, doc)
	save := func(m *Memory, seen string) {
		m.Judge("other", []*Definition{define(seen, "x")}) // there is something to save
		_, err := m.Save()
		require.NoError(t, err)
	}
	first, second, third := define("tool", "1"), define("tool", "2"), define("tool", "3")
	a.Judge("s", []*Definition{first})
	save(a, "1")
	require.NoError(t, b.Load())
	a.Judge("s", []*Definition{second})
	save(a, "2")
	b.Judge("s", []*Definition{second})
	require.True(t, b.Accept("s", second))
	save(b, "3")
	save(a, "4") // it learns of the second
	b.Judge("s", []*Definition{third})
	save(b, "5")
	save(a, "6") // and that the server lists a third
	assert.Equal(t, []Finding{Added}, findings(a.Judge("s", []*Definition{define("new", "x")})))
}

// A server is no longer suspected here once a person has accepted elsewhere what it changed.
func TestSuspicionEndsElsewhere(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	a, b := fresh(Suspect, 10, doc), fresh(Suspect, 10, doc)
	first, second := define("tool", "1"), define("tool", "2")
	a.Judge("s", []*Definition{first})
	_, err := a.Save()
	require.NoError(t, err)
	require.NoError(t, b.Load())
	require.Equal(t, []Finding{Changed, Added}, findings(a.Judge("s", []*Definition{second, define("new", "x")})))
	require.True(t, b.Accept("s", second))
	_, err = b.Save()
	require.NoError(t, err)
	_, err = a.Refresh()
	require.NoError(t, err)
	assert.Equal(t, []Finding{Known, Known}, findings(a.Judge("s", []*Definition{second, define("new", "x")})))
}

// A first list that is empty is one: what comes later is new, in another process too.
func TestEmptyFirstList(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	a, b := fresh(Always, 10, doc), fresh(Always, 10, doc)
	a.Judge("s", nil)
	_, err := a.Save()
	require.NoError(t, err)
	require.NoError(t, b.Load())
	assert.Equal(t, []Finding{Added}, findings(b.Judge("s", []*Definition{define("tool", "1")})))
}

// Who accepts last counts, also where the clock has not moved since the acceptance before.
func TestAcceptedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Store)
		a, b := fresh(Never, 10, doc), fresh(Never, 10, doc)
		a.Judge("s", []*Definition{define("tool", "1")})
		require.True(t, a.Accept("s", define("tool", "2")))
		_, err := a.Save()
		require.NoError(t, err)
		require.NoError(t, b.Load())
		require.True(t, b.Accept("s", define("tool", "3")))
		_, err = b.Save()
		require.NoError(t, err)
		_, err = a.Refresh()
		require.NoError(t, err)
		assert.Equal(t, []Finding{Known}, findings(a.Judge("s", []*Definition{define("tool", "3")})))
	})
}

// interrupted is a store that calls a function once, when it knows what to write.
type interrupted struct {
	*mcptest.Store
	then func()
}

func (s *interrupted) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	data, err := change(s.Data)
	if err != nil {
		return err
	}
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	s.Data = data
	return nil
}

// What is accepted while the acceptance before is stored is not stored yet: it counts before
// what others accept meanwhile, by whatever clock.
func TestAcceptedWhileItIsStored(t *testing.T) {
	t.Parallel()
	doc := &interrupted{Store: new(mcptest.Store)}
	a, b := fresh(Never, 10, doc), fresh(Never, 10, doc)
	a.Judge("s", []*Definition{define("tool", "1")})
	require.True(t, a.Accept("s", define("tool", "2")))
	doc.then = func() { require.True(t, a.Accept("s", define("tool", "3"))) }
	_, err := a.Save()
	require.NoError(t, err)
	require.NoError(t, b.Load())
	require.True(t, b.Accept("s", define("tool", "4")))
	b.servers["s"].tools["tool"].Since = time.Now().Add(time.Hour)
	_, err = b.Save()
	require.NoError(t, err)
	_, err = a.Save()
	require.NoError(t, err)
	assert.Equal(t, []Finding{Known}, findings(a.Judge("s", []*Definition{define("tool", "3")})))
}

func TestBounds(t *testing.T) {
	t.Parallel()
	m := fresh(Never, 3, nil)
	for i := range 10 {
		v := m.Judge("s", []*Definition{define(fmt.Sprint(i), "")})[0]
		want := Known
		if i >= 3 {
			want = Beyond
		}
		assert.Equal(t, want, v.Finding, i)
	}
	m.Accept("s", define("7", ""))
	assert.Equal(t, Beyond, m.Judge("s", []*Definition{define("7", "")})[0].Finding)
	assert.Equal(t, Changed, m.Judge("s", []*Definition{define("0", "other")})[0].Finding, "the first is not forgotten")
	assert.Len(t, m.servers["s"].tools, 3)
	for i := range 10_000 {
		m.Judge(fmt.Sprint("server ", i), nil)
	}
	assert.Len(t, m.servers, 10_000)
	assert.Equal(t, Beyond, m.Judge("one more", []*Definition{define("a", "")})[0].Finding)
}

// A late tool waits where new tools do: always under Always, and under Suspect if only who reports
// changes has seen it.
func TestWaits(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for by, want := range map[string]map[Caution]bool{
			"":           {Never: false, Suspect: false, Always: late},
			"warn":       {Never: false, Suspect: late, Always: late},
			"quarantine": {Never: false, Suspect: false, Always: late},
		} {
			for caution, want := range want {
				assert.Equal(t, want, fresh(caution, 10, nil).waits(&tool{Late: late, By: by}), "%v, %q, %v", late, by, caution)
			}
		}
	}
}

// What others have stored adds as many servers as there is room for.
func TestServersOfOthersAreBounded(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	other := fresh(Never, 10, doc)
	other.Judge("a", []*Definition{define("tool", "1")})
	other.Judge("b", []*Definition{define("tool", "1")})
	_, err := other.Save()
	require.NoError(t, err)
	m := fresh(Never, 10, doc)
	for i := range 9_999 {
		m.Judge(fmt.Sprint("server ", i), nil)
	}
	changed, err := m.Refresh()
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Len(t, m.servers, 10_000)
}

// Only hashes of former definitions are kept.
func TestOldDefinitionsAreDropped(t *testing.T) {
	t.Parallel()
	m := fresh(Never, 1000, nil)
	for i := range 50 {
		m.Judge("s", []*Definition{define("same", "x"), define(fmt.Sprint("tool ", i), "x")})
		held := 0
		for _, tool := range m.servers["s"].tools {
			if tool.def != nil {
				held++
			}
		}
		assert.LessOrEqual(t, held, 2)
		assert.LessOrEqual(t, len(m.servers["s"].fresh), 2)
	}
	assert.Equal(t, Known, m.Judge("s", []*Definition{define("tool 7", "x")})[0].Finding)
	assert.Equal(t, Changed, m.Judge("s", []*Definition{define("tool 7", "y")})[0].Finding)
}

func TestStore(t *testing.T) {
	t.Parallel()
	doc := &memory{err: errors.New("no disk")}
	m := fresh(Never, 10, doc)
	assert.EqualError(t, m.Load(), "loading the known tools: no disk")
	doc.data = []byte(`{"version":2,"servers":{}}`)
	assert.EqualError(t, m.Load(), "loading the known tools: no disk", "whatever comes with it")
	doc.data = nil
	m.Judge("s", []*Definition{define("a", "1")})
	_, err := m.Save()
	assert.EqualError(t, err, "storing the known tools: no disk")
	doc.err = nil
	changed, err := m.Save()
	require.NoError(t, err)
	assert.False(t, changed)
	saved := string(doc.data)
	_, err = m.Save()
	require.NoError(t, err)
	assert.Equal(t, saved, string(doc.data), "nothing is due")

	// Another process has seen the tool later, and accepts it.
	other := fresh(Never, 10, doc)
	other.Judge("s", []*Definition{define("a", "2"), define("b", "1")})
	changed, err = other.Save()
	require.NoError(t, err)
	assert.True(t, changed, "what was seen first counts")
	assert.Equal(t, Changed, other.Judge("s", []*Definition{define("a", "2")})[0].Finding)
	other.Accept("s", define("a", "2"))
	changed, err = other.Save()
	require.NoError(t, err)
	assert.False(t, changed)
	m.Judge("t", []*Definition{define("c", "1")})
	changed, err = m.Save()
	require.NoError(t, err)
	assert.True(t, changed, "a person has accepted it")
	assert.Equal(t, []Finding{Known, Known}, findings(m.Judge("s", []*Definition{define("a", "2"), define("b", "1")})))

	// A prefix belongs to the server that the store names.
	for i, server := range []string{"x", "y"} {
		m := fresh(Never, 10, doc)
		if i == 1 {
			require.NoError(t, m.Load())
		}
		_, _, err := m.names.Claim(server, "p")
		require.NoError(t, err)
		_, err = m.Save()
		require.NoError(t, err)
	}
	late := fresh(Never, 10, doc)
	_, _, err = late.names.Claim("z", "p")
	require.NoError(t, err)
	_, err = late.Save()
	require.NoError(t, err)
	assert.Len(t, late.names.Refused(), 1, "the one of x")
	var stored history
	require.NoError(t, json.Unmarshal(doc.data, &stored))
	require.Len(t, stored.Names, 2)
	assert.Equal(t, names.Claim{Server: "x", Wanted: "mcp_p", Prefix: "mcp_p"}, stored.Names[0])

	doc.data = []byte(`{"version":7}`)
	assert.EqualError(t, fresh(Never, 10, doc).Load(), "loading the known tools: the document has version 7, want 1 to 2")
}

// A torn store fails in one direction only.
type torn struct {
	memory
	load, save error
}

func (s *torn) Load() ([]byte, error) { return s.data, s.load }

func (s *torn) Save(data []byte) error {
	if s.save == nil {
		s.data = data
	}
	return s.save
}

// A store that could not be read is not overwritten. A failed save is repeated by the
// next one, even if nothing has changed since.
func TestSaveAfterFailures(t *testing.T) {
	t.Parallel()
	doc := &torn{memory: memory{data: []byte("history")}, load: errors.New("no disk")}
	m := fresh(Never, 10, doc)
	m.Judge("s", []*Definition{define("a", "1")})
	_, err := m.Save()
	assert.ErrorIs(t, err, doc.load)
	assert.Equal(t, "history", string(doc.data))

	doc = &torn{save: errors.New("the disk is full")}
	m = fresh(Never, 10, doc)
	m.Judge("s", []*Definition{define("a", "1")})
	_, err = m.Save()
	assert.ErrorIs(t, err, doc.save)
	assert.Nil(t, doc.data)
	doc.save = nil
	_, err = m.Save()
	require.NoError(t, err)
	assert.Contains(t, string(doc.data), `"a"`)
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"version":1,"servers":{"git":{"log":{"sum":"00","hash":"11","since":"2026-01-01T00:00:00Z"}}}}`))
	f.Add([]byte(`{"version":2,"servers":{"git":{"log":{"sum":"00","hash":"11","since":"2026-01-01T00:00:00Z","late":true,"by":"warn"}}}}`))
	f.Add([]byte(`{"version":1,"names":[{"server":"git","wanted":"mcp_git","prefix":"mcp_git"}],"servers":{"git":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := &memory{data: data}
		m := fresh(Suspect, 10, doc)
		if m.Load() != nil {
			return
		}
		require.Len(t, m.Judge("git", []*Definition{define("log", "1")}), 1)
		m.Accept("git", define("log", "2"))
		_, err := m.Save()
		require.NoError(t, err)
		again := fresh(Suspect, 10, doc)
		require.NoError(t, again.Load())
		require.Equal(t, len(m.servers), len(again.servers))
		for name, s := range m.servers {
			require.Equal(t, len(s.tools), len(again.servers[name].tools))
			require.Equal(t, s.changed, again.servers[name].changed)
		}
	})
}

// late calls change once more, as a store does whose document another process has changed
// after change was called.
type late struct{ *memory }

func (l late) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	if _, err := change(l.data); err != nil {
		return err
	}
	data, err := change(l.data)
	l.data = data
	return err
}

// What others know is reported, even if it was learned from a save that came too late.
func TestSaveIsCalledAgain(t *testing.T) {
	t.Parallel()
	doc := &memory{}
	other := fresh(Never, 10, doc)
	other.Judge("theirs", []*Definition{define("a", "1")})
	_, err := other.Save()
	require.NoError(t, err)
	m := fresh(Never, 10, late{doc})
	m.Judge("ours", []*Definition{define("b", "1")})
	changed, err := m.Save()
	require.NoError(t, err)
	assert.True(t, changed)
	for _, server := range []string{"ours", "theirs"} {
		assert.Contains(t, string(doc.data), server)
	}
}

// Of two definitions that processes know, what a person accepted last counts, else
// what was seen first.
func TestBefore(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	made := func(accepted bool, since time.Time) *tool {
		var of tool
		of.Accepted, of.Since = accepted, since
		return &of
	}
	for _, test := range []struct {
		first, second *tool
	}{
		{made(true, late), made(true, early)},
		{made(true, early), made(false, late)},
		{made(true, late), made(false, early)},
		{made(false, early), made(false, late)},
	} {
		assert.True(t, test.first.before(test.second), "%+v %+v", test.first, test.second)
		assert.False(t, test.second.before(test.first), "%+v %+v", test.first, test.second)
	}
}

// What was known of a tool stays known as a former definition, in every process that shares
// the store, and no more than maxFormer of these.
func TestFormer(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	m := fresh(Suspect, 10, doc)
	version := func(n int) *Definition { return define("a", fmt.Sprint(n)) }
	m.Judge("s", []*Definition{version(0)})
	for n := 1; n <= 8+2; n++ {
		assert.False(t, m.Knew("s", version(n)), n)
		m.Judge("s", []*Definition{version(n)})
		assert.False(t, m.Knew("s", version(n)), "listed, not accepted")
		require.True(t, m.Accept("s", version(n)))
	}
	_, err := m.Save()
	require.NoError(t, err)
	other := fresh(Suspect, 10, doc)
	other.Judge("s", []*Definition{define("a", "its own")})
	require.NoError(t, other.Load())
	for n := range 8 + 4 {
		kept := n >= 2 && n <= 8+2
		assert.Equal(t, kept, m.Knew("s", version(n)), n)
		assert.Equal(t, kept, other.Knew("s", version(n)), n)
	}
	assert.False(t, m.Knew("s", define("b", "0")))
	assert.False(t, m.Knew("t", version(0)))
	require.Len(t, m.servers["s"].tools["a"].Former, 8)
}

// Of two processes that saw different definitions first, both know both in the end, whichever
// of them saves first.
func TestFormerOfOthers(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, order func(a, b *Memory) []*Memory) {
		doc := new(memory)
		x, y := define("a", "x"), define("a", "y")
		a, b := fresh(Suspect, 10, doc), fresh(Suspect, 10, doc)
		a.Judge("s", []*Definition{x})
		time.Sleep(time.Second)
		b.Judge("s", []*Definition{y})
		for range 2 {
			for _, m := range order(a, b) {
				_, err := m.Refresh()
				require.NoError(t, err)
				_, err = m.Save()
				require.NoError(t, err)
			}
		}
		next := fresh(Suspect, 10, doc)
		require.NoError(t, next.Load())
		for name, m := range map[string]*Memory{"a": a, "b": b, "a later one": next} {
			assert.True(t, m.Knew("s", x), name)
			assert.True(t, m.Knew("s", y), name)
			assert.Equal(t, []Finding{Changed}, findings(m.Judge("s", []*Definition{y})), "what was seen first counts")
		}
	}
	t.Run("the first saves first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, func(a, b *Memory) []*Memory { return []*Memory{a, b} })
		})
	})
	t.Run("the first saves last", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, func(a, b *Memory) []*Memory { return []*Memory{b, a} })
		})
	})
}

// A hash can take long to compute. Nothing waits for those that Knew needs.
func TestKnewHashesWithoutTheLock(t *testing.T) {
	t.Parallel()
	m, hashed := fresh(Suspect, 10, nil), 0
	slow := func(text string) *Definition {
		d := define("a", text)
		hash := d.Hash()
		d.Hash = func() string {
			if hashed++; assert.True(t, m.mu.TryLock(), "of %s", text) {
				m.mu.Unlock()
			}
			return hash
		}
		return d
	}
	m.Judge("s", []*Definition{slow("1")})
	assert.False(t, m.Knew("s", slow("2")))
	assert.GreaterOrEqual(t, hashed, 2, "of the known one, and of the other")
}

// Processes that start at once see first lists that differ. Under Always what is not in all of
// them waits, whoever saves first, in every process and after a restart.
func TestFirstListsThatDiffer(t *testing.T) {
	t.Parallel()
	tool, evil := define("tool", "1"), define("evil", "x")
	for _, other := range []Caution{Never, Suspect, Always} {
		for _, strictFirst := range []bool{true, false} {
			doc := new(memory)
			strict, mild := fresh(Always, 10, doc), fresh(other, 10, doc)
			for _, m := range []*Memory{strict, mild} {
				require.NoError(t, m.Load())
			}
			strict.Judge("s", []*Definition{tool})
			mild.Judge("s", []*Definition{tool, evil})
			save := []*Memory{strict, mild, strict}
			if !strictFirst {
				save = []*Memory{mild, strict, mild}
			}
			for _, m := range save {
				_, err := m.Refresh()
				require.NoError(t, err)
				_, err = m.Save()
				require.NoError(t, err)
			}
			later := fresh(Always, 10, doc)
			require.NoError(t, later.Load())
			for name, m := range map[string]*Memory{"strict": strict, "later": later} {
				assert.Equal(t, []Finding{Known, Added}, findings(m.Judge("s", []*Definition{tool, evil})), "%s beside %d, %v", name, other, strictFirst)
				assert.False(t, m.Knew("s", evil))
				assert.True(t, m.Knew("s", tool))
			}
			want := Known
			if other == Always {
				want = Added
			}
			assert.Equal(t, []Finding{Known, want}, findings(mild.Judge("s", []*Definition{tool, evil})), "%d, %v", other, strictFirst)
			require.True(t, later.Accept("s", evil))
			_, err := later.Save()
			require.NoError(t, err)
			_, err = strict.Refresh()
			require.NoError(t, err)
			assert.Equal(t, []Finding{Known, Known}, findings(strict.Judge("s", []*Definition{tool, evil})))
		}
	}
}

// What a process has listed is not of the first list if another one has stored that meanwhile,
// which need not live on.
func TestFirstListOfOneThatHasEnded(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	tool, evil := define("tool", "1"), define("evil", "x")
	strict, mild, later := fresh(Always, 10, doc), fresh(Suspect, 10, doc), fresh(Always, 10, doc)
	require.NoError(t, mild.Load())
	strict.Judge("s", []*Definition{tool})
	_, err := strict.Save()
	require.NoError(t, err)
	mild.Judge("s", []*Definition{tool, evil})
	_, err = mild.Save()
	require.NoError(t, err)
	require.NoError(t, later.Load())
	assert.Equal(t, []Finding{Known, Added}, findings(later.Judge("s", []*Definition{tool, evil})))
}

// Where others have stored the first list, a tool that it lacks is late here, which changes what may
// be used.
func TestFirstListOfOthers(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	tool, evil := define("tool", "1"), define("evil", "x")
	first, m := fresh(Never, 10, doc), fresh(Always, 10, doc)
	require.NoError(t, m.Load())
	first.Judge("s", []*Definition{tool})
	first.servers["s"].tools["tool"].Since = time.Now().Add(time.Hour).UTC() // so ours counts, and nothing else changes
	_, err := first.Save()
	require.NoError(t, err)
	m.Judge("s", []*Definition{tool, evil})
	changed, err := m.Refresh()
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, []Finding{Known, Added}, findings(m.Judge("s", []*Definition{tool, evil})))
	changed, err = m.Refresh()
	require.NoError(t, err)
	assert.False(t, changed)
}

// Another definition that is said to be older does not take the place of one in the first list
// that is known under Always.
func TestOlderDefinitionOfOthers(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	good, evil := define("tool", "good"), define("tool", "evil")
	strict, mild := fresh(Always, 10, doc), fresh(Never, 10, doc)
	require.NoError(t, strict.Load())
	mild.Judge("s", []*Definition{evil})
	mild.servers["s"].tools["tool"].Since = time.Unix(0, 0)
	strict.Judge("s", []*Definition{good})
	for _, m := range []*Memory{strict, mild, strict} {
		_, err := m.Save()
		require.NoError(t, err)
	}
	_, err := strict.Refresh()
	require.NoError(t, err)
	assert.NotEqual(t, []Finding{Known}, findings(strict.Judge("s", []*Definition{evil})))
}

// A first list that another process's write has lost is one all the same.
func TestLostFirstList(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	m := fresh(Always, 10, doc)
	m.Judge("s", []*Definition{define("a", "1")})
	_, err := m.Save()
	require.NoError(t, err)
	doc.data = []byte(`{"version":2,"servers":{"s":{"b":{"sum":"","hash":"1","since":"2026-01-01T00:00:00Z"}}}}`)
	_, err = m.Refresh()
	require.NoError(t, err)
	assert.Equal(t, []Finding{Known}, findings(m.Judge("s", []*Definition{define("a", "1")})))
}

// What only a process that reports changes has seen waits in quarantine, while its server has a
// changed tool, whoever knows it.
func TestQuarantineIsStricterThanWarnings(t *testing.T) {
	t.Parallel()
	doc := new(memory)
	strict, mild := fresh(Suspect, 10, doc), fresh(Never, 10, doc)
	require.NoError(t, strict.Load())
	strict.Judge("s", []*Definition{define("a", "1")})
	_, err := strict.Save()
	require.NoError(t, err)
	require.NoError(t, mild.Load())
	next := []*Definition{define("a", "2"), define("b", "1")}
	assert.Equal(t, []Finding{Changed, Known}, findings(mild.Judge("s", next)))
	_, err = mild.Save()
	require.NoError(t, err)
	_, err = strict.Refresh()
	require.NoError(t, err)
	verdicts := strict.Judge("s", next)
	assert.Equal(t, []Finding{Changed, Added}, findings(verdicts))
	assert.Equal(t, policies[Never], verdicts[1].By)
}
