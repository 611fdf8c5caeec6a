package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// A process has a Keeper, as a Manager has.
type process struct {
	*Keeper
	book *names.Book
	errs *[]error // of saves
}

func begin(doc store.Document) process {
	p := process{book: names.NewBook(100), errs: new([]error)}
	p.Keeper = NewKeeper(doc, p.book, func(err error) {
		if err != nil {
			*p.errs = append(*p.errs, err)
		}
	})
	return p
}

// put notes the list of a server as of now.
func (p process) put(name string, tools ...string) {
	p.Put(name, time.Now(), true, func() *Server { return &Server{Config: "c", Lists: map[string][]string{Tools: tools}} })
}

// tools returns what a new process finds of a server in the store.
func tools(t *testing.T, doc store.Document, name string) []string {
	t.Helper()
	c, err := begin(doc).Read()
	require.NoError(t, err)
	if s := c.Server(name); s != nil {
		return s.Lists[Tools]
	}
	return nil
}

// stores returns a store without parts and one with them, by name.
func stores() map[string]store.Document {
	return map[string]store.Document{"whole": new(mcptest.Store), "split": new(mcptest.Split)}
}

func each(t *testing.T, run func(t *testing.T, doc store.Document)) {
	for name, doc := range stores() {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { run(t, doc) }) })
	}
}

// What is put is found, to the byte, and so are the names.
func TestKept(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		p := begin(doc)
		c, err := p.Read()
		require.NoError(t, err)
		assert.Nil(t, c.Server("a"))
		claim, _, err := p.book.Claim("a", "")
		require.NoError(t, err)
		listed := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
		want := &Server{Config: "c", Listed: listed, Lists: map[string][]string{Tools: {"{\"name\" : 1.0, \"<\":\"\\u00e9\"}\n", "x"}, "prompt": {"p"}, "resource": {}}}
		p.Put("a", listed, true, func() *Server { return &Server{Config: want.Config, Lists: want.Lists} })
		p.Save()
		p.Close()
		assert.Empty(t, *p.errs)

		p = begin(doc)
		c, err = p.Read()
		require.NoError(t, err)
		assert.Equal(t, []names.Claim{claim}, c.Names)
		got := c.Server("a")
		require.NotNil(t, got)
		got.Part = ""
		assert.Equal(t, want, got)
		assert.Nil(t, c.Server("b"))
	})
}

// tool is one of some 700 bytes.
func tool(i int, version string) string {
	return fmt.Sprintf(`{"name":"tool_%d","version":%q,"description":"%s"}`, i, version, strings.Repeat("d<\n", 200))
}

func catalog(n int) (list []string) {
	for i := range n {
		list = append(list, tool(i, ""))
	}
	return list
}

// However often servers change, they are saved once a second, and a change of one tool
// costs a few times its bytes.
func TestChangesAreSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p := begin(doc)
		const servers, most, seconds = 4, 100, 100
		size := len(tool(0, ""))
		lists := make([][]string, servers)
		changed := 0
		change := func(tools ...int) { // of each server
			for i := range servers {
				lists[i] = slices.Clone(lists[i])
				for _, j := range tools {
					lists[i][j] = tool(j, fmt.Sprint(changed))
					changed++
				}
				p.put(fmt.Sprint("s", i), lists[i]...)
			}
		}
		for i := range servers {
			lists[i] = catalog(most)
		}
		change()
		time.Sleep(2 * time.Second)
		assert.InDelta(t, servers*most*size*5/4, doc.Saved().Bytes, float64(servers*most*size/4))
		for name, which := range map[string]func(second int) int{
			"the same tool":  func(int) int { return 7 },
			"always another": func(second int) int { return second * 37 % most },
		} {
			changed = 0
			for second := range seconds {
				time.Sleep(2 * time.Second)
				change(which(second))
			}
			time.Sleep(2 * time.Second)
			saved := doc.Saved()
			t.Logf("%s: %.1f times its bytes", name, float64(saved.Bytes)/float64(changed*size))
			assert.LessOrEqual(t, saved.Bytes, 10*changed*size)
			assert.LessOrEqual(t, saved.Times, changed)
			for i := range servers {
				require.Equal(t, lists[i], tools(t, doc, fmt.Sprint("s", i)))
			}
		}
		change(7)
		change(8) // at the same time, by the clock
		p.Save()
		synctest.Wait()
		change(9)
		time.Sleep(2 * time.Second)
		require.Equal(t, lists[1], tools(t, doc, "s1"))
		doc.Saved()
		for range 3000 {
			change(7)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		saved := doc.Saved()
		assert.LessOrEqual(t, saved.Times, 4*servers, "once a second")
		assert.LessOrEqual(t, saved.Bytes, 4*servers*10*size)
		p.Close()
		assert.Empty(t, *p.errs)
	})
}

// A key that no part can have is none that a store is asked for: it may be the path of a file.
func TestForeignKeysAreNotAskedFor(t *testing.T) {
	const secret = "../secret"
	doc := new(mcptest.Split)
	require.NoError(t, doc.Put(secret, []byte(`{"version":2,"servers":{}}`)))
	part := []byte(`{"of":"` + secret + `","server":"s"}`)
	require.NoError(t, doc.Put(store.KeyOf(part), part))
	for data, asked := range map[string]int{
		`{"version":2,"base":"` + secret + `","servers":{}}`:                                                 0,
		`{"version":2,"servers":{"s":{"config":"c","part":"` + secret + `"}}}`:                               0,
		`{"version":2,"servers":{"s":{"config":"c","part":"` + store.KeyOf(part) + `"}}}`:                    1,
		`{"version":2,"servers":{"s":{"config":"c","part":"` + store.KeyOf([]byte("there is none")) + `"}}}`: 1,
	} {
		require.NoError(t, doc.Save([]byte(data)))
		doc.Gets()
		if c, err := begin(doc).Read(); err == nil {
			assert.Nil(t, c.Server("s"), data)
		}
		assert.Equal(t, asked, doc.Gets(), data)
	}
}

// An empty list that is listed again is the same.
func TestEmptyListsAreNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p := begin(doc)
		for i, prompts := range [][]string{{}, {}, {"one"}, {"one"}, {}, {}} {
			p.Put("a", time.Now(), true, func() *Server {
				return &Server{Config: "c", Lists: map[string][]string{Tools: {"t"}, "prompt": prompts}}
			})
			time.Sleep(2 * time.Second)
			assert.Equal(t, 1-i%2, doc.Saved().Times, "list %d", i)
			c, err := begin(doc).Read()
			require.NoError(t, err)
			assert.Equal(t, prompts, c.Server("a").Lists["prompt"], "list %d", i)
		}
		p.Close()
	})
}

// Changes take whole pieces of the old list, and no more of it than it has.
func TestPiecesOfOldLists(t *testing.T) {
	t.Parallel()
	old := map[string][]string{Tools: {"a", "b", "c"}}
	for _, test := range []struct {
		of   []piece
		want []string // nil: they do not fit
	}{
		{[]piece{}, []string{}},
		{[]piece{{N: 3}}, []string{"a", "b", "c"}},
		{[]piece{{From: 1, N: 2}, {New: "d"}, {N: 1}}, []string{"b", "c", "d", "a"}},
		{[]piece{{From: 2, N: 1}, {From: 3, N: 0, New: "x"}}, []string{"c", "x"}},
		{[]piece{{N: 3}, {N: 2}}, []string{"a", "b", "c", "a", "b"}}, // no more than the old list and the pieces together
		{[]piece{{N: 3}, {N: 3}}, nil},
		{[]piece{{N: 3}, {N: 3}, {N: 3}}, nil},
		{[]piece{{N: 4}}, nil},
		{[]piece{{From: 1, N: 3}}, nil},
		{[]piece{{From: 4, N: 1}}, nil},
		{[]piece{{From: -1, N: 1}}, nil},
		{[]piece{{N: -1}}, nil},
	} {
		next, err := pieces{Tools: test.of}.apply(old)
		if test.want == nil {
			assert.ErrorIs(t, err, errPieces, "%v", test.of)
		} else if assert.NoError(t, err, "%v", test.of) {
			assert.Equal(t, map[string][]string{Tools: test.want}, next, "%v", test.of)
		}
	}
}

// What is forgotten before it is stored is not stored, and what was stays.
func TestForget(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		p := begin(doc)
		p.put("stored", "1")
		time.Sleep(2 * time.Second)
		p.put("stored", "2")
		p.put("new", "1")
		p.Forget("stored")
		p.Forget("new")
		p.Forget("unknown")
		p.Close()
		assert.Empty(t, *p.errs)
		assert.Equal(t, []string{"1"}, tools(t, doc, "stored"))
		assert.Nil(t, tools(t, doc, "new"))
	})
}

// That a list was read again, and is the same, is written with what has changed, or by Close.
func TestUnchangedListsAreNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p := begin(doc)
		p.put("a", catalog(10)...)
		p.Save()
		synctest.Wait()
		doc.Saved()
		before, _ := doc.Load()
		for range 300 {
			time.Sleep(time.Second)
			p.Again("a", time.Now())
			p.Save()
		}
		synctest.Wait()
		after, _ := doc.Load()
		assert.Equal(t, string(before), string(after))
		listed := func() time.Time {
			c, err := begin(doc).Read()
			require.NoError(t, err)
			return c.Server("a").Listed
		}
		p.put("b", "1")
		time.Sleep(2 * time.Second)
		assert.WithinDuration(t, time.Now(), listed(), 3*time.Second)
		time.Sleep(2 * time.Minute)
		p.Again("a", time.Now())
		p.Close()
		assert.WithinDuration(t, time.Now(), listed(), 0)
		assert.Equal(t, 1, doc.Saved().Times, "the part of b")

		c, err := begin(doc).Read()
		require.NoError(t, err)
		p = begin(doc)
		c, _ = p.Read()
		p.Put("a", c.Server("a").Listed, false, func() *Server { return c.Server("a") })
		p.Save()
		p.Close()
		assert.Zero(t, doc.Saved(), "what is from the store is not written again")
	})
}

// Once a day it is written all the same that a list is the same: a process that crashes loses no more.
func TestUnchangedListsAreWrittenOnceADay(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		p := begin(doc)
		defer p.Close()
		first := time.Now()
		p.put("a", "1")
		listed := func() time.Time {
			time.Sleep(5 * time.Second)
			c, err := begin(doc).Read()
			require.NoError(t, err)
			return c.Server("a").Listed
		}
		assert.WithinDuration(t, first, listed(), 0)
		time.Sleep(24*time.Hour - 6*time.Second)
		p.Again("a", time.Now())
		assert.WithinDuration(t, first, listed(), 0)
		p.Again("b", time.Now())
		p.Again("a", first.Add(24*time.Hour))
		assert.WithinDuration(t, first.Add(24*time.Hour), listed(), 0)
	})
}

// That a list is the same is written beside another list if it is more than a minute newer.
func TestUnchangedListsAreWrittenBesideOthers(t *testing.T) {
	for after, want := range map[time.Duration]bool{time.Minute: false, time.Minute + 1: true} {
		synctest.Test(t, func(t *testing.T) {
			doc := new(mcptest.Split)
			p := begin(doc)
			defer p.Close()
			first := time.Now()
			p.put("a", "1")
			time.Sleep(2 * time.Second)
			p.Again("a", first.Add(after))
			p.put("b", "1")
			time.Sleep(2 * time.Second)
			c, err := begin(doc).Read()
			require.NoError(t, err)
			require.NotNil(t, c.Server("b"))
			assert.Equal(t, want, c.Server("a").Listed.Equal(first.Add(after)), after)
			assert.Equal(t, !want, c.Server("a").Listed.Equal(first), after)
		})
	}
}

// Another process's list of less than a minute ago, which is the same, is not written again.
func TestListsThatAnotherProcessHas(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: false, time.Minute - 1: false, time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			doc := new(mcptest.Split)
			first := time.Now()
			for _, listed := range []time.Time{first, first.Add(after)} {
				p := begin(doc)
				p.Put("a", listed, true, func() *Server { return &Server{Config: "c", Lists: map[string][]string{Tools: {"1"}}} })
				p.Close()
				assert.Empty(t, *p.errs)
			}
			c, err := begin(doc).Read()
			require.NoError(t, err)
			assert.Equal(t, want, c.Server("a").Listed.Equal(first.Add(after)) && after > 0, after)
			assert.Equal(t, 1, doc.Saved().Times, "one part has it")
		})
	}
}

// Of one server, what was listed later by the same configuration is newer, unless its clock was wrong.
func TestIsNewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		at := func(config string, d time.Duration) *Server { return &Server{Config: config, Listed: now.Add(d)} }
		old := at("c", -time.Hour)
		for _, test := range []struct {
			s    *Server
			want bool
		}{
			{nil, false}, {old, false}, {at("c", -2*time.Hour), false}, {at("c", 1-time.Hour), true}, {at("d", 0), false},
			{at("c", 5*time.Minute), true}, {at("c", 5*time.Minute+1), false},
		} {
			assert.Equal(t, test.want, test.s.isNewer(old), "%v", test.s)
		}
	})
}

// Where a document has lists in both forms, those of the newer form count.
func TestFormsOfLists(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]map[string][]string{
		`{}`:                                 {},
		`{"lists":{"tool":["a"]}}`:           {"tool": {"a"}},
		`{"tools":["a"],"more":{"x":["b"]}}`: {Tools: {"a"}, "x": {"b"}},
		`{"more":{"x":["b"]}}`:               {},
		`{"lists":{"x":["a"]},"tools":["b"],"more":{"y":["c"]}}`: {"x": {"a"}},
	} {
		c := &Catalog{Servers: map[string]json.RawMessage{"s": json.RawMessage(said)}}
		got := c.server("s")
		require.NotNil(t, got, said)
		assert.Len(t, got.Lists, len(want), said)
		for kind, list := range want {
			assert.Equal(t, list, got.Lists[kind], said)
		}
	}
	assert.Nil(t, (&Catalog{}).server("s"))
}

// A document of version 1 has all lists. It is read; from then on each server has a part.
func TestOldDocument(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		require.NoError(t, doc.Save([]byte(`{"version":1,"names":[{"server":"a","wanted":"mcp_a","prefix":"mcp_a"}],"servers":{
			"a":{"config":"c","listed":"2000-01-01T00:00:00Z","tools":["t"],"more":{"prompt":["p"]}},
			"b":{"config":"c","listed":"1999-12-31T00:00:00Z","tools":[]},"c":{"config":"c","listed":"1999-11-30T00:00:00Z","tools":["old"]}}}`)))
		p := begin(doc)
		c, err := p.Read()
		require.NoError(t, err)
		s := c.Server("a")
		require.Equal(t, &Server{Config: "c", Listed: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Lists: map[string][]string{Tools: {"t"}, "prompt": {"p"}}}, s)
		p.book.Restore(c.Names)
		p.Put("a", s.Listed, false, func() *Server { return s })
		p.Save()
		p.Close()
		for name, want := range map[string][]string{"a": {"t"}, "b": {}, "c": nil} {
			assert.Equal(t, want, tools(t, doc, name), name)
		}
		if split, ok := doc.(*mcptest.Split); ok {
			assert.Len(t, split.Parts(), 1)
			data, _ := doc.Load()
			assert.NotContains(t, string(data), `"p"`, "it has moved")
		}
		c, err = begin(doc).Read()
		require.NoError(t, err)
		assert.Equal(t, []names.Claim{{Server: "a", Wanted: "mcp_a", Prefix: "mcp_a"}}, c.Names)
	})
}

// Processes that share a store lose nothing of each other. Of one server, the list that was
// saved last counts.
func TestTwoProcesses(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		a, b := begin(doc), begin(doc)
		second := func() { // one after the other: the stores are not shared
			time.Sleep(2 * time.Second)
			a.Save()
			time.Sleep(2 * time.Second)
			b.Save()
			time.Sleep(2 * time.Second)
		}
		_, _, err := a.book.Claim("a-b", "")
		require.NoError(t, err)
		a.put("a-b", "1", "2")
		second()
		_, _, err = b.book.Claim("c", "")
		require.NoError(t, err)
		b.put("c", "3")
		second()
		claim, first, err := b.book.Claim("a_b", "")
		require.NoError(t, err)
		assert.Equal(t, "a-b", first, "it learned of a-b when it saved: %v", claim)

		both := catalog(20)
		a.put("both", both...)
		second()
		b.put("both", append(catalog(20), "b")...)
		second()
		assert.Equal(t, append(catalog(20), "b"), tools(t, doc, "both"))
		both[3] = "a"
		a.put("both", both...) // the list that it changes is not there any more
		second()
		assert.Equal(t, both, tools(t, doc, "both"))
		both[4] = "a"
		a.put("both", both...)
		second()
		assert.Equal(t, both, tools(t, doc, "both"))
		a.Forget("a-b") // b may have it
		a.put("d", "4")
		a.Save()
		a.Close()
		b.Close()
		assert.Equal(t, []string{"1", "2"}, tools(t, doc, "a-b"))
		assert.Equal(t, []string{"3"}, tools(t, doc, "c"))
		assert.Equal(t, []string{"4"}, tools(t, doc, "d"))
		c, err := begin(doc).Read()
		require.NoError(t, err)
		assert.Len(t, c.Names, 3)
		assert.Empty(t, append(*a.errs, *b.errs...))
	})
}

// The same with files, and at once.
func TestProcessesAtOnce(t *testing.T) {
	t.Parallel()
	doc := store.File(filepath.Join(t.TempDir(), "catalog.json"))
	const processes, rounds = 4, 5
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			for round := range rounds {
				p := begin(doc)
				name := fmt.Sprint("s", i, "-", round)
				_, _, err := p.book.Claim(name, "")
				assert.NoError(t, err)
				p.put(name, name)
				p.put("both", name)
				p.Save()
				p.Close()
				assert.Empty(t, *p.errs)
			}
		})
	}
	all.Wait()
	c, err := begin(doc).Read()
	require.NoError(t, err)
	assert.Len(t, c.Names, processes*rounds)
	for i := range processes {
		for round := range rounds {
			name := fmt.Sprint("s", i, "-", round)
			assert.Equal(t, []string{name}, tools(t, doc, name))
		}
	}
	assert.Len(t, tools(t, doc, "both"), 1)
}

// What can't be saved is saved later, and what can't be read is not overwritten.
func TestSaveFails(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		burning := errors.New("disk on fire")
		whole, _ := doc.(*mcptest.Store)
		split, _ := doc.(*mcptest.Split)
		if split != nil {
			whole = &split.Store
		}
		fail := func(err error) {
			whole.Fail(err)
			if split != nil {
				split.FailParts(err)
			}
		}
		require.NoError(t, doc.Save([]byte("{}")))
		before := whole.Data
		fail(burning)
		p := begin(doc)
		_, err := p.Read()
		assert.ErrorIs(t, err, burning)
		p.put("a", "1")
		p.Save()
		synctest.Wait()
		require.NotEmpty(t, *p.errs)
		assert.ErrorIs(t, (*p.errs)[0], burning)
		assert.Equal(t, before, whole.Data, "not overwritten")
		fail(nil)
		p.Save()
		p.Close()
		assert.Len(t, *p.errs, 1)
		assert.Equal(t, []string{"1"}, tools(t, doc, "a"))
	})
}

// A malformed document is told of, and replaced by the next save, with all that we have.
func TestMalformedDocument(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		p := begin(doc)
		p.put("a", "1")
		p.Save()
		for data, want := range map[string]string{
			"": "unexpected end of JSON input", "{": "unexpected end of JSON input", `{"version":2,"servers":[]}`: `"servers" is a JSON array`,
		} {
			time.Sleep(time.Minute)
			require.NoError(t, doc.Save([]byte(data)))
			_, err := begin(doc).Read()
			assert.ErrorContains(t, err, "loading the catalog: ")
			assert.ErrorContains(t, err, want)
			_, _, err = p.book.Claim(fmt.Sprint("s", len(data)), "")
			require.NoError(t, err)
			p.Save()
			synctest.Wait()
			assert.Equal(t, []string{"1"}, tools(t, doc, "a"))
		}
		for version, want := range map[int][]string{0: nil, 2: {"1"}, 3: nil} {
			require.NoError(t, doc.Save(fmt.Appendf(nil, `{"version":%d,"servers":{"x":{"config":"c","listed":"2026-01-01T00:00:00Z","lists":{"tool":["1"]}}}}`, version)))
			assert.Equal(t, want, tools(t, doc, "x"), "version %d", version)
		}
		p.Close()
		assert.Empty(t, *p.errs)
	})
}

// What is no document is no failure of a server that lists the same again.
func TestMalformedDocumentIsLookedAt(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		p := begin(doc)
		p.put("a", "1")
		time.Sleep(2 * time.Second)
		require.NoError(t, doc.Save([]byte("{")))
		p.Again("a", time.Now())
		time.Sleep(2 * time.Second)
		assert.Empty(t, *p.errs)
		p.Close()
		assert.Empty(t, *p.errs)
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	assert.Len(t, Key("command", []string{"a"}), 32)
	assert.Equal(t, Key("command", []string{"a"}), Key("command", []string{"a"}))
	assert.NotEqual(t, Key("command", []string{"a"}), Key("command", []string{"b"}))
	assert.NotEqual(t, Key("ab", "c"), Key("a", "bc"))
}

// What is known of a server are its lists, in the form of any version, and they are known if
// they are empty.
func TestServersOfACatalog(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	require.NoError(t, doc.Save([]byte(`{"version":1,"servers":{"none":{"config":"c"},"null":null,"odd":5,"old":{"config":"c","tools":["t"],"more":{"prompt":["p"]}},
		"empty":{"config":"c","tools":[]},"of more":{"config":"c","more":{"prompt":["p"]}}}}`)))
	c, err := begin(doc).Read()
	require.NoError(t, err)
	for name, want := range map[string]map[string][]string{"old": {Tools: {"t"}, "prompt": {"p"}}, "empty": {Tools: {}}} {
		s := c.Server(name)
		require.NotNil(t, s, name)
		assert.Equal(t, want, s.Lists, name)
		assert.Equal(t, "c", s.Config)
	}
	for _, name := range []string{"none", "null", "odd", "of more", "nowhere"} {
		assert.Nil(t, c.Server(name), name)
	}
}
