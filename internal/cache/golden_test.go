package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
)

// A walk is two processes over one store, and all that can be seen of both.
type walk struct {
	t     *testing.T
	doc   *mcptest.Split
	store store.Document // doc, or what of it has no parts
	ps    [2]process

	mu    sync.Mutex
	b     strings.Builder
	keys  map[string]string // readable ones, by key
	shown string
	begun time.Time
}

func (w *walk) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.b, format, args...)
}

// key returns a readable key.
func (w *walk) key(key string) string {
	if key == "" {
		return "-"
	}
	if w.keys[key] == "" {
		w.keys[key] = fmt.Sprintf("#%d", len(w.keys)+1)
	}
	return w.keys[key]
}

// at returns a time since the walk began.
func (w *walk) at(t time.Time) string { return t.Sub(w.begun).String() }

// written returns the catalog in a document or a base, as a line.
func (w *walk) written(data []byte) string {
	if data == nil {
		return "nothing"
	}
	var c Catalog
	if json.Unmarshal(data, &c) != nil {
		return fmt.Sprintf("%.40q", data)
	}
	line := fmt.Sprintf("version %d, base %s, %d names", c.Version, w.key(c.Base), len(c.Names))
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		var s Server
		require.NoError(w.t, json.Unmarshal(c.Servers[name], &s))
		line += fmt.Sprintf("; %s of %s by %s", name, w.at(s.Listed), s.Config)
		if s.Part != "" {
			line += " in " + w.key(s.Part)
		} else {
			line += fmt.Sprintf(" %q", s.Lists)
		}
	}
	return line
}

// shows writes what the store has, if that has changed.
func (w *walk) shows() {
	now := "    document: " + w.written(w.doc.Data) + "\n"
	parts := w.doc.Parts()
	var lines []string
	for key, data := range parts {
		var p part
		require.NoError(w.t, json.Unmarshal(data, &p))
		if p.Server == "" {
			lines = append(lines, fmt.Sprintf("~ base %s: %s", key, w.written(data)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s of %s after %s: %v", p.Server, key, w.at(p.Listed), w.key(p.Of), p.Lists))
	}
	// Keys are hashes, so they are numbered by what stands there beside them.
	slices.SortFunc(lines, func(a, b string) int {
		fields := func(s string) string { f := strings.SplitN(s, " ", 3); return f[0] + f[2] }
		return strings.Compare(fields(a), fields(b))
	})
	for _, line := range lines {
		for key := range parts {
			if strings.Contains(line, key) {
				line = strings.ReplaceAll(line, key, w.key(key))
			}
		}
		now += "    part: " + line + "\n"
	}
	if now == w.shown {
		return
	}
	w.b.WriteString(now)
	w.shown = now
	if w.doc.Err != nil {
		return
	}
	k := NewKeeper(w.store, nil, nil)
	c, err := k.read()
	require.NoError(w.t, err)
	for name := range c.Servers {
		s := c.server(name)
		require.NotNil(w.t, s)
		if s.Part != "" {
			_, _, err := k.follow(s.Part, nil, nil)
			require.NoError(w.t, err, "the document leads to parts that are there")
		}
	}
}

// tell writes what was found of a server.
func (w *walk) tell(s *Server) {
	if s == nil {
		w.say("nothing\n")
		return
	}
	w.say("of %s by %s %q\n", w.at(s.Listed), s.Config, s.Lists)
}

func (w *walk) begin(i int) {
	w.ps[i] = begin(w.store)
	w.ps[i].Keeper.saved = func(err error) {
		if err != nil {
			w.say("    process %d saves: %v\n", i, err)
		}
	}
}

// Two processes over one store, step by step: what they find there, and what it has after each step.
func TestGoldenWalks(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"whole": true, "split": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			all.WriteString("Two processes over one store: what they put and find, and what the store has then, if that has changed. Keys are numbered.\n")
			for seed := range uint64(8) {
				synctest.Test(t, func(t *testing.T) {
					w := &walk{t: t, doc: new(mcptest.Split), keys: make(map[string]string), begun: time.Now()}
					w.store = w.doc
					if whole {
						w.store = &w.doc.Store
					}
					w.begin(0)
					w.begin(1)
					random := rand.New(rand.NewPCG(seed, 1))
					w.say("\nWalk %d\n", seed)
					for range 28 {
						i := random.IntN(2)
						p := w.ps[i]
						server := []string{"a", "b"}[random.IntN(2)]
						w.say("%s process %d: ", w.at(time.Now()), i)
						switch what := random.IntN(16); what {
						case 0, 1, 2, 3, 4:
							lists := map[string][]string{Tools: {}}
							for n := range 4 {
								if random.IntN(4) > 0 {
									lists[Tools] = append(lists[Tools], fmt.Sprintf("t%d-%d", n, random.IntN(4)/3))
								}
							}
							if random.IntN(3) == 0 {
								lists["prompt"] = []string{"p"}
							}
							config := []string{"c", "c", "c", "d"}[random.IntN(4)]
							isNew := random.IntN(4) > 0
							w.say("%s has listed %q by %s, new %v\n", server, lists, config, isNew)
							p.Put(server, time.Now(), isNew, func() *Server { return &Server{Config: config, Lists: lists} })
						case 5, 6, 7:
							w.say("%s has listed the same again\n", server)
							p.Again(server, time.Now())
						case 8:
							w.say("%s is forgotten\n", server)
							p.Forget(server)
						case 9:
							w.say("ends, and another begins\n")
							p.Close()
							w.begin(i)
						case 10:
							if _, _, err := p.book.Claim(fmt.Sprintf("server-%d", random.IntN(3)), ""); err != nil {
								w.say("no name, ")
							}
							w.say("there is a name\n")
							p.Save()
						case 11:
							w.say("the store fails from now on\n")
							w.doc.Fail(errors.New("no disk"))
							w.doc.FailParts(errors.New("no parts"))
						case 12, 13:
							found, err := p.Read()
							if err != nil {
								w.say("reads: %v\n", err)
								break
							}
							w.say("reads %d names; finds of %s ", len(found.Names), server)
							w.tell(found.Server(server))
						default:
							found, err := p.Read()
							if err != nil {
								w.say("reads: %v\n", err)
								break
							}
							w.say("news of %s: ", server)
							w.tell(found.News(server))
						}
						time.Sleep([]time.Duration{0, time.Second, 2 * time.Second, time.Minute, time.Minute, 25 * time.Hour, 31 * 24 * time.Hour}[random.IntN(7)])
						synctest.Wait()
						if random.IntN(2) == 0 {
							w.doc.Fail(nil)
							w.doc.FailParts(nil)
						}
						if n := w.doc.Gets(); n > 0 {
							w.say("    parts asked for: %d\n", n)
						}
						w.shows()
						w.doc.Gets()
					}
					w.doc.Fail(nil)
					w.doc.FailParts(nil)
					for i, p := range w.ps {
						w.say("at the end process %d\n", i)
						p.Close()
						w.shows()
						for _, server := range []string{"a", "b"} {
							found, err := begin(w.store).Read()
							require.NoError(t, err)
							w.say("    a new process finds of %s ", server)
							w.tell(found.Server(server))
						}
					}
					all.WriteString(w.b.String())
				})
			}
			golden.Compare(t, name+".golden", all.String())
		})
	}
}
