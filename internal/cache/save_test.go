package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A document that would have more than 8 KiB has a base, and only what has changed since.
func TestBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p := begin(doc)
		const servers = 500
		for i := range servers {
			_, _, err := p.book.Claim(fmt.Sprint("s", i), "")
			require.NoError(t, err)
			p.put(fmt.Sprint("s", i), "a", tool(i, ""))
		}
		time.Sleep(2 * time.Second)
		assert.Len(t, doc.Parts(), servers+1, "and the base")
		doc.Saved()
		reader := begin(doc)
		found, err := reader.Read()
		require.NoError(t, err)
		for i := range servers {
			require.NotNil(t, found.Server(fmt.Sprint("s", i)))
		}
		doc.Gets()
		_, err = reader.Read()
		require.NoError(t, err)
		assert.Zero(t, doc.Gets(), "the base is known")
		written := 0
		const changes = 200
		for i := range changes {
			p.put(fmt.Sprint("s", i), fmt.Sprint("b", i), tool(i, ""))
			time.Sleep(2 * time.Second)
			doc, _ := doc.Load()
			require.LessOrEqual(t, len(doc), 8<<10)
			written += len(doc)
		}
		written += doc.Saved().Bytes
		t.Logf("%d bytes for each change among %d servers", written/changes, servers)
		assert.Less(t, written/changes, 10_000)
		assert.Len(t, doc.Parts(), servers+changes+1, "a change for each, and one base")
		for i := range changes {
			want := []string{fmt.Sprint("b", i), tool(i, "")}
			require.Equal(t, want, tools(t, doc, fmt.Sprint("s", i)))
		}
		found, err = begin(doc).Read()
		require.NoError(t, err)
		assert.Len(t, found.Names, servers)

		for name, data := range doc.Parts() { // somebody has removed it
			if strings.HasPrefix(string(data), `{"version"`) {
				require.NoError(t, doc.Put(name, nil))
			}
		}
		_, err = begin(doc).Read()
		assert.ErrorIs(t, err, errGone)
		p.Close()
		assert.Empty(t, *p.errs)

		next := begin(doc) // it lists all again
		_, _, err = next.book.Claim("new", "")
		require.NoError(t, err)
		next.put("new", "a", "b")
		next.put("s3", "c")
		next.Close()
		assert.Empty(t, *next.errs)
		found, err = begin(doc).Read()
		require.NoError(t, err, "the cache works again")
		assert.Equal(t, []string{"a", "b"}, found.Server("new").Lists[Tools])
		assert.Equal(t, []string{"c"}, found.Server("s3").Lists[Tools])
		assert.Len(t, found.Names, 1)
	})
}

// A store without parts may have what one with parts has written. What it can't read is missing;
// the rest is saved again.
func TestBaseInAStoreWithoutParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Store)
		key := store.KeyOf([]byte("gone"))
		require.NoError(t, doc.Save(fmt.Appendf(nil, `{"version":2,"base":%q,"servers":{"a":{"listed":"2000-01-01T00:00:00Z","lists":{"tool":["1"]}},"b":{"listed":"2000-01-01T00:00:00Z","part":%q}}}`, key, key)))
		p := begin(doc)
		_, err := p.Read()
		require.ErrorIs(t, err, errGone)
		p.put("c", "3")
		p.Close()
		assert.Empty(t, *p.errs)
		assert.Equal(t, []string{"1"}, tools(t, doc, "a"))
		assert.Nil(t, tools(t, doc, "b"))
		assert.Equal(t, []string{"3"}, tools(t, doc, "c"))
	})
}

// Who looks for news reads the parts that are new, and sees each list of others once.
func TestNews(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		split, _ := doc.(*mcptest.Split)
		a, b := begin(doc), begin(doc)
		news := func(p process) []string {
			t.Helper()
			found, err := p.Read()
			require.NoError(t, err)
			if s := found.News("s"); s != nil {
				return s.Lists[Tools]
			}
			return nil
		}
		assert.Nil(t, news(b))
		list := catalog(20)
		a.put("s", list...)
		time.Sleep(2 * time.Second)
		assert.Equal(t, list, news(b), "it has no list")
		found, err := b.Read()
		require.NoError(t, err)
		mine := found.Server("s")
		require.Equal(t, list, mine.Lists[Tools])
		b.Put("s", mine.Listed, false, func() *Server { return &Server{Config: mine.Config, Lists: mine.Lists} })
		for i := range 50 {
			next := slices.Clone(list)
			next[i%20] = tool(i, "changed")
			list = next
			a.put("s", next...)
			time.Sleep(2 * time.Second)
			if split != nil {
				split.Gets()
			}
			require.True(t, slices.Equal(next, news(b)), i)
			if split != nil {
				assert.Equal(t, 1, split.Gets(), "only what is new")
			}
			assert.Nil(t, news(b), "once")
			assert.Nil(t, news(a), "it is its own")
			b.Put("s", time.Now(), false, func() *Server { return &Server{Config: "c", Lists: map[string][]string{Tools: next}} })
		}
		b.put("s", list...) // it has listed the same
		time.Sleep(2 * time.Second)
		assert.Nil(t, news(a))
		a.Close()
		b.Close()
		assert.Empty(t, append(*a.errs, *b.errs...))
	})
}

// What is in the store is news whether our own list is stored or waits for that.
func TestNewsBesideAListThatWaits(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		news := func(p process) []string {
			found, err := p.Read()
			require.NoError(t, err)
			s := found.News("s")
			require.NotNil(t, s)
			return s.Lists[Tools]
		}
		a, b := begin(doc), begin(doc)
		list := catalog(20)
		a.put("s", list...)
		time.Sleep(2 * time.Second)
		b.put("other")
		synctest.Wait() // it has saved, so its next save waits
		b.put("s", append(catalog(20), "of b")...)
		assert.Equal(t, list, news(b), "nothing of b is stored")
		time.Sleep(2 * time.Second)
		next := append(catalog(19), "of a")
		a.put("s", next...)
		time.Sleep(2 * time.Second)
		slices.Reverse(list)
		b.Put("s", time.Now(), false, func() *Server { return &Server{Config: "c", Lists: map[string][]string{Tools: list}} })
		assert.Equal(t, next, news(b), "an older list of b is stored")
		a.Close()
		b.Close()
		assert.Empty(t, append(*a.errs, *b.errs...))
	})
}

// Parts that were put for a document that could not be stored, or of which that was not known,
// leave with the next save, and no other.
func TestPartsOfFailedSavesLeave(t *testing.T) {
	for name, sure := range map[string]bool{"the document was not stored": true, "it was": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				doc := &unsure{Split: new(mcptest.Split)}
				p := begin(doc)
				for i := range 100 { // more than fit into a document without a base
					p.put(fmt.Sprint("s", i), tool(i, ""))
				}
				time.Sleep(2 * time.Second)
				require.Len(t, doc.Parts(), 101)
				for i := range 20 {
					doc.fails.Store(true)
					doc.stores.Store(!sure)
					for j := range 100 {
						p.put(fmt.Sprint("s", j), tool(j, ""), fmt.Sprint(i))
					}
					time.Sleep(2 * time.Second)
					require.LessOrEqual(t, len(doc.Parts()), 1200, "at most those of one save are left, beside a chain for each")
				}
				doc.fails.Store(false)
				p.Save()
				p.Close()
				require.GreaterOrEqual(t, len(*p.errs), 20)
				c, err := begin(doc).read()
				require.NoError(t, err)
				want := 1
				for i := range 100 {
					of := fmt.Sprint("s", i)
					lists, chain, err := p.follow(c.server(of).Part, nil, nil)
					require.NoError(t, err)
					require.Equal(t, []string{tool(i, ""), "19"}, lists[Tools])
					want += len(chain.keys)
				}
				assert.Len(t, doc.Parts(), want)
			})
		})
	}
}

// unsure is a store whose saves fail, though they may have done their work.
type unsure struct {
	*mcptest.Split
	fails, stores atomic.Bool
}

func (u *unsure) Save(data []byte) error {
	if u.fails.Load() && !u.stores.Load() {
		return errors.New("no network")
	}
	if err := u.Split.Save(data); err != nil || !u.fails.Load() {
		return err
	}
	return errors.New("no answer")
}

// A server that is rolled back is in the store as it is now, once whoever knew it so has listed
// it again, whether or not that process has looked at the store meanwhile.
func TestServerThatIsRolledBack(t *testing.T) {
	for _, looks := range []bool{false, true} {
		each(t, func(t *testing.T, doc store.Document) {
			a, b := begin(doc), begin(doc)
			old, now := catalog(20), append(catalog(19), "new")
			news := func(p process) []string {
				found, err := p.Read()
				require.NoError(t, err)
				if s := found.News("s"); s != nil {
					return s.Lists[Tools]
				}
				return nil
			}
			a.put("s", old...)
			time.Sleep(2 * time.Second)
			for range 3 {
				time.Sleep(5 * time.Minute)
				a.Again("s", time.Now())
				b.put("s", now...)
				time.Sleep(2 * time.Second)
				require.Equal(t, now, tools(t, doc, "s"), "the newer list counts")
				if looks {
					require.Equal(t, now, news(a))
				}
				time.Sleep(5 * time.Minute)
				a.Again("s", time.Now())
				time.Sleep(2 * time.Second)
				require.Equal(t, old, tools(t, doc, "s"))
				require.Nil(t, news(a))
				require.Equal(t, old, news(b), "who is connected lists again")
			}
			a.Close()
			b.Close()
			assert.Empty(t, append(*a.errs, *b.errs...))
		})
	}
}

// If the store can't be read when a server has listed the same again, it is looked at once
// more: the list of another process must not stay for that.
func TestLookThatFails(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		whole, _ := doc.(*mcptest.Store)
		if split, ok := doc.(*mcptest.Split); ok {
			whole = &split.Store
		}
		a, b := begin(doc), begin(doc)
		a.put("s", "old")
		time.Sleep(2 * time.Second)
		b.put("s", "new")
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"new"}, tools(t, doc, "s"))
		burning := errors.New("disk on fire")
		whole.Fail(burning)
		a.Again("s", time.Now())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.NotEmpty(t, *a.errs)
		assert.ErrorIs(t, (*a.errs)[0], burning)
		whole.Fail(nil)
		a.Save()
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"old"}, tools(t, doc, "s"))
		a.Close()
		b.Close()
		assert.Empty(t, *b.errs)
	})
}

// If a server is no more in the store, its next list is saved as a whole, and not as a change of
// what was there.
func TestServerThatIsGoneFromTheStore(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		p := begin(doc)
		list := catalog(20)
		p.put("s", list...)
		time.Sleep(2 * time.Second)
		require.NoError(t, doc.Save([]byte("{}")))
		list = append(list[:19:19], tool(99, ""))
		p.put("s", list...)
		time.Sleep(2 * time.Second)
		assert.Equal(t, list, tools(t, doc, "s"))
		p.Close()
		assert.Empty(t, *p.errs)
	})
}

// hurried is a store in which another process is faster with a server, some times.
type hurried struct {
	*mcptest.Split
	races int
	lists func() // has another process save a list
}

func (h *hurried) Put(key string, part []byte) error {
	if part != nil && h.races > 0 {
		h.races--
		h.lists()
	}
	return h.Split.Put(key, part)
}

// However often another process is faster, the newer list is saved in the end, without anybody
// asking for it.
func TestOtherProcessIsFaster(t *testing.T) {
	for races := range 8 {
		synctest.Test(t, func(t *testing.T) {
			doc := &hurried{Split: new(mcptest.Split), races: races}
			var atOnce []int // attempts between pauses
			var last time.Time
			doc.lists = func() {
				if !time.Now().Equal(last) {
					last, atOnce = time.Now(), append(atOnce, 0)
				}
				atOnce[len(atOnce)-1]++
				p := begin(doc.Split)
				listed := time.Now().Add(-time.Hour - time.Duration(doc.races)*time.Minute)
				p.Put("s", listed, true, func() *Server {
					return &Server{Config: "c", Lists: map[string][]string{Tools: {fmt.Sprint("old ", doc.races)}}}
				})
				p.Close()
				assert.Empty(t, *p.errs)
			}
			p := begin(doc)
			p.put("s", "new")
			time.Sleep(10 * time.Second)
			synctest.Wait()
			assert.Zero(t, doc.races)
			assert.Equal(t, []string{"new"}, tools(t, doc, "s"), "%d races", races)
			want := [][]int{nil, {1}, {2}, {3}, {3, 1}, {3, 2}, {3, 3}, {3, 3, 1}}
			assert.Equal(t, want[races], atOnce, "three attempts at once")
			p.Close()
			assert.Empty(t, *p.errs)
		})
	}
}

// conflicted is a store in which another process changes the document during an update.
type conflicted struct {
	*mcptest.Split
	other func() // nil once it has
}

func (c *conflicted) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	if other := c.other; other != nil {
		c.other = nil
		data, err := c.Load()
		if _, err2 := change(data); err != nil || err2 != nil {
			return errors.Join(err, err2)
		}
		other()
	}
	data, err := c.Load()
	if err != nil {
		return err
	}
	if data, err = change(data); err != nil {
		return err
	}
	return c.Save(data)
}

// What an update has entered in vain is saved all the same.
func TestUpdateThatBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := &conflicted{Split: new(mcptest.Split)}
		doc.other = func() {
			p := begin(doc.Split)
			p.Put("s", time.Now().Add(-time.Hour), true, func() *Server {
				return &Server{Config: "c", Lists: map[string][]string{Tools: {"old"}}}
			})
			p.Close()
			assert.Empty(t, *p.errs)
		}
		p := begin(doc)
		p.put("s", "new")
		p.Close()
		assert.Empty(t, *p.errs)
		assert.Equal(t, []string{"new"}, tools(t, doc, "s"))
	})
}

// broken counts attempts to save in it.
type broken struct {
	*mcptest.Split
	saves atomic.Int32
}

func (b *broken) Save([]byte) error {
	b.saves.Add(1)
	return errors.New("no network")
}

// A store that fails is left alone until the next save.
func TestBrokenStoreIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := &broken{Split: new(mcptest.Split)}
		p := begin(doc)
		p.put("s", "tool")
		p.Save()
		synctest.Wait()
		assert.EqualValues(t, 1, doc.saves.Load())
		assert.Len(t, *p.errs, 1)
		p.Close()
	})
}

// A list from a process whose clock was ahead is replaced.
func TestClockThatWasAhead(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		for i, list := range []string{"old", "new", "new"} {
			p := begin(doc)
			listed := time.Now().Add([]time.Duration{24 * time.Hour, 0, 0}[i])
			p.Put("s", listed, true, func() *Server { return &Server{Config: "c", Lists: map[string][]string{Tools: {list}}} })
			p.Close()
			assert.Empty(t, *p.errs)
			found, err := begin(doc).Read()
			require.NoError(t, err)
			assert.Equal(t, []string{list}, found.Server("s").Lists[Tools])
			assert.True(t, found.Server("s").Listed.Equal(listed))
		}
		p := begin(doc)
		p.Put("s", time.Now().Add(-time.Minute), true, func() *Server { return &Server{Config: "c", Lists: map[string][]string{Tools: {"older"}}} })
		p.Close()
		assert.Equal(t, []string{"new"}, tools(t, doc, "s"), "clocks differ a little")
	})
}

// Processes that change the lists of one server at once never mix them, and leave no part that
// nobody needs.
func TestListsAreNotMixed(t *testing.T) {
	t.Parallel()
	doc := store.File(filepath.Join(t.TempDir(), "catalog.json"))
	const processes, rounds = 3, 40
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			p := begin(doc)
			p.paced.Every = 0
			list := catalog(30)
			for round := range rounds {
				for j := range list { // all of one process and round
					if j == 0 || j == round%30 {
						list[j] = tool(j, fmt.Sprint(i, ".", round))
					}
				}
				now := slices.Clone(list)
				p.put("s", now...)
				p.Save()
				found, err := p.Read()
				if !assert.NoError(t, err) {
					return
				}
				if s := found.Server("s"); s != nil { // else its parts were removed meanwhile
					assert.Len(t, s.Lists[Tools], 30)
				}
			}
			p.Close()
			assert.Empty(t, *p.errs)
		})
	}
	all.Wait()
	got := tools(t, doc, "s")
	require.Len(t, got, 30)
	var by, last int
	_, err := fmt.Sscanf(strings.SplitN(got[0], `"version":"`, 2)[1], "%d.%d", &by, &last)
	require.NoError(t, err)
	for j := 1; j < 30; j++ {
		want := ""
		for round := j; round <= last; round += 30 {
			want = fmt.Sprint(by, ".", round)
		}
		assert.Equal(t, tool(j, want), got[j])
	}
	k := begin(doc).Keeper
	c, err := k.read()
	require.NoError(t, err)
	_, chain, err := k.follow(c.server("s").Part, nil, nil)
	require.NoError(t, err)
	files, err := filepath.Glob(string(doc) + ".parts/*")
	require.NoError(t, err)
	assert.Len(t, files, len(chain.keys))
}

// Servers that nobody lists leave after a month.
func TestOldServersLeave(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		split, _ := doc.(*mcptest.Split)
		p := begin(doc)
		p.put("stays", "1")
		p.put("leaves", "2")
		p.Save()
		p.Close()
		p = begin(doc)
		c, _ := p.Read()
		p.Put("stays", c.Server("stays").Listed, false, func() *Server { return &Server{Lists: map[string][]string{Tools: {"1"}}} })
		for range 40 { // days
			time.Sleep(24 * time.Hour)
			p.Again("stays", time.Now())
			p.Save()
		}
		p.Close()
		assert.Equal(t, []string{"1"}, tools(t, doc, "stays"))
		assert.Nil(t, tools(t, doc, "leaves"))
		if split != nil {
			assert.Len(t, split.Parts(), 1)
		}
	})
}

// A server that another process has forgotten, with its parts, is stored as a whole by who still has it.
func TestForgottenElsewhere(t *testing.T) {
	each(t, func(t *testing.T, doc store.Document) {
		idle, other := begin(doc), begin(doc)
		idle.put("s", "1", "2")
		time.Sleep(31 * 24 * time.Hour)
		other.put("other", "3")
		time.Sleep(2 * time.Second)
		assert.Nil(t, tools(t, doc, "s"), "nobody has listed it for a month")
		idle.put("mine", "4")
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"1", "2"}, tools(t, doc, "s"))
		idle.put("s", "1", "3")
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"1", "3"}, tools(t, doc, "s"))
		idle.Close()
		other.Close()
		assert.Empty(t, *idle.errs)
	})
}

func TestTooManyServers(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]time.Duration{"some are older": -5 * 24 * time.Hour, "all are of one time": 0, "all are from the future": time.Hour} {
		now := time.Now()
		c, err := parse(nil)
		require.NoError(t, err)
		for i := range 10_000 + 3 {
			at := now.Add(listed)
			if i >= 3 && listed < 0 {
				at = now.Add(-time.Hour)
			}
			c.Servers[fmt.Sprint(i)] = []byte(text.JSON(Server{Listed: at, Part: fmt.Sprint(i)}))
		}
		c.Servers["ours"] = []byte(`{}`)
		gone := c.forget([]*kept{{name: "ours"}}, now)
		assert.Equal(t, 10_000+4-len(gone), len(c.Servers), name)
		assert.NotNil(t, c.Servers["ours"])
		if listed < 0 {
			assert.ElementsMatch(t, []string{"0", "1", "2"}, gone)
		} else {
			assert.Len(t, gone, 10_000+3, "%s: they are equal", name)
		}
	}
}

// A store with parts has room for any number of lists: no document has them all.
func TestLargeCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p := begin(doc)
		large := strings.Repeat("x", mcptest.Long(14, 2)<<20)
		const servers = 5
		for i := range servers {
			p.put(fmt.Sprint("s", i), large, "small")
		}
		p.Save()
		synctest.Wait()
		assert.Greater(t, doc.Saved().Bytes, servers*len(large), "above 64 MiB")
		time.Sleep(time.Second)
		p.put("s3", large, "changed")
		p.Save()
		p.Close()
		assert.Less(t, doc.Saved().Bytes, 500)
		assert.Empty(t, *p.errs)
		assert.Equal(t, []string{large, "changed"}, tools(t, doc, "s3"))
		for _, data := range doc.Parts() {
			assert.LessOrEqual(t, len(data), len(large)+500)
		}
	})
}

// Names that are given after a base was written are in the document beside it, and those of
// the base are not there again.
func TestNamesBesideABase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p := begin(doc)
		add := func(server string) {
			_, _, err := p.book.Claim(server, "")
			require.NoError(t, err)
			p.put(server, "a", tool(1, ""))
		}
		for i := range 300 { // all before a save begins, which has those that are there
			_, _, err := p.book.Claim(fmt.Sprint("s", i), "")
			require.NoError(t, err)
		}
		for i := range 300 {
			add(fmt.Sprint("s", i))
		}
		time.Sleep(2 * time.Second)
		add("late")
		time.Sleep(2 * time.Second)
		data, err := doc.Load()
		require.NoError(t, err)
		var recent Catalog
		require.NoError(t, json.Unmarshal(data, &recent))
		require.NotEmpty(t, recent.Base)
		assert.Equal(t, []names.Claim{names.Alone("late", "")}, recent.Names)
		found, err := begin(doc).Read()
		require.NoError(t, err)
		assert.Len(t, found.Names, 301)
		assert.Contains(t, found.Names, names.Alone("late", ""))
		p.Close()
		assert.Empty(t, *p.errs)
	})
}

// A chain takes 32 changes, as long as they have taken no more bytes than the lists.
func TestRoomOfAChain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keys, size, spent, part int
		want                    bool
	}{{1, 10, 0, 10, true}, {1, 10, 0, 11, false}, {1, 10, 4, 6, true}, {1, 10, 4, 7, false}, {32, 10, 0, 1, true}, {33, 10, 0, 1, false}} {
		c := &chain{keys: make([]string, test.keys), size: test.size, spent: test.spent}
		assert.Equal(t, test.want, c.takes(make([]byte, test.part)), test)
	}
}

// A store is read once, and without one nothing is known.
func TestStoreIsReadOnce(t *testing.T) {
	t.Parallel()
	doc := &counting{}
	_, err := begin(doc).Read()
	require.NoError(t, err)
	assert.Equal(t, 1, doc.loads)
	doc.err = errors.New("no disk")
	_, err = begin(doc).Read()
	assert.EqualError(t, err, "loading the catalog: no disk")
	assert.Equal(t, 2, doc.loads)
	assert.Nil(t, (*Found)(nil).Lists("a"))
	none := Open(nil, names.NewBook(1), nil)
	found, err := none.Read()
	assert.NoError(t, err)
	assert.Empty(t, found.Names)
	none.Close()
}

type counting struct {
	mcptest.Store
	loads int
	err   error
}

func (c *counting) Load() ([]byte, error) {
	if c.loads++; c.err != nil {
		return nil, c.err
	}
	return c.Store.Load()
}
