//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
)

// perServer is how many tools a server has.
const perServer = 5

// measure returns the value of each row: microseconds of CPU or, if the name says so,
// bytes.
func measure(sizes []string, dir string, wanted func(row string) bool) map[string]float64 {
	rows := make(map[string]float64)
	row := func(name string, value func() float64) {
		if wanted(name) {
			if v := value(); !math.IsNaN(v) { // of another commit, some are not measured
				rows[name] = v
			}
		}
	}
	for _, size := range sizes {
		n, err := strconv.Atoi(size)
		must(err)
		if n == 0 {
			row("build 2,000 servers one by one, µs", func() float64 { return build2000(perServer) })
			row("build the same at once, µs", func() float64 { return build2000(2000 * perServer) })
			row("load one tool, µs", loadOne)
			row("cache written for one changed tool, its size", written)
			continue
		}
		rowAt := func(what string, value func() float64) { row(size+" tools: "+what, value) }
		measureMemory(n, dir, rowAt)
		measureAt(n, rowAt)
		measureSessions(n, rowAt)
	}
	return rows
}

// measureAt measures what a Manager with n tools does.
func measureAt(n int, row func(string, func() float64)) {
	m := newManager(nil)
	defer m.Close()
	for server, tools := range grouped(n, perServer) {
		must(m.AddTools(server, tools...))
	}
	full := mcphybrid.PromptFull
	s := m.NewSession(nil)
	s.PromptSections(full)
	s.Tools()
	row("change of one, µs", func() float64 {
		// A tool comes, and goes.
		return each(func(i int) {
			must(m.AddTools("extra", tool("chore", fmt.Sprint("Does special chore number ", i))))
			m.RemoveServer("extra")
		}) / 2
	})
	row("change of one and a search, µs", func() float64 {
		return each(func(i int) {
			must(m.AddTools("extra", tool("chore", fmt.Sprint("Does special chore number ", i))))
			s.Search("create an issue", 5)
			m.RemoveServer("extra")
			s.Search("create an issue", 5)
		}) / 2
	})
	row("first look after a change, µs", func() float64 {
		var took time.Duration
		const times = 20
		for i := range times {
			must(m.AddTools("extra", tool("chore", fmt.Sprint("Does special chore number ", i))))
			begin := cpu()
			m.NewSession(nil).PromptSections(full)
			took += cpu() - begin
			m.RemoveServer("extra")
		}
		return micros(took) / times
	})
	row("sections of a new session, µs", func() float64 { return each(func(int) { m.NewSession(nil).PromptSections(full) }) })
	row("sections of an unchanged session, µs", func() float64 { return each(func(int) { s.PromptSections(full) }) })
	restricted := func(i int) *mcphybrid.Session {
		return m.NewSession(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{fmt.Sprintf("srv%05d/*", i)}}})
	}
	next := 0
	row("first look of new rights, µs", func() float64 {
		return each(func(int) {
			restricted(next).PromptSections(full)
			next++
		})
	})
	row("look of 400 rights in turn, µs", func() float64 {
		return each(func(int) {
			for i := range 400 {
				restricted(i).PromptSections(full)
			}
		}) / 400
	})
	queries := queries()
	row("search, µs", func() float64 { return each(func(i int) { s.Search(queries[i%len(queries)], 5) }) })
	last := fmt.Sprintf("srv%05d", n/perServer-1)
	row("search of the last server, µs", func() float64 {
		return each(func(i int) {
			s.Find(context.Background(), queries[i%len(queries)], mcphybrid.SearchOptions{Servers: []string{last}})
		})
	})
	row("search by a pattern of servers, µs", func() float64 {
		return each(func(i int) {
			s.Find(context.Background(), queries[i%len(queries)], mcphybrid.SearchOptions{Servers: []string{"srv*99"}})
		})
	})
	made := func(m *mcphybrid.Manager) func() *mcphybrid.Manager {
		return func() *mcphybrid.Manager { return m }
	}
	measureStates(made(m), 5, "", row)
	shared := newManager(make(parts))
	defer shared.Close()
	for server, tools := range grouped(n, perServer) {
		must(shared.AddTools(server, tools...))
	}
	measureStates(made(shared), 5, " in parts", row)
}

// measureStates measures what it takes to save and restore a session with some active tools.
func measureStates(m func() *mcphybrid.Manager, active int, how string, row func(string, func() float64)) {
	full := mcphybrid.PromptFull
	saved := sync.OnceValue(func() *mcphybrid.Session {
		s := m().NewSession(nil)
		s.PromptSections(full)
		s.Tools()
		var names []string
		for _, t := range s.DeferredTools()[:active] {
			names = append(names, t.Name())
		}
		s.ActivateTools(names)
		s.Tools()
		return s
	})
	state := sync.OnceValue(func() json.RawMessage { return saved().Save() })
	what := fmt.Sprintf("state with %d active%s", active, how)
	row(what+", bytes", func() float64 { return float64(len(state())) })
	row(what+", stored by an engine, bytes", func() float64 { return float64(len(shortened(state()))) })
	row(what+", stored by an engine, compressed", func() float64 { return compressed(shortened(state())) })
	row("save"+how+", µs", func() float64 {
		s := saved()
		return each(func(int) { s.Save() })
	})
	row("restore"+how+", µs", func() float64 {
		data := state()
		return each(func(int) {
			_, _, err := m().RestoreSession(data, nil)
			must(err)
		})
	})
	row("restore"+how+", and look, µs", func() float64 {
		data := state()
		return each(func(int) {
			s, _, err := m().RestoreSession(data, nil)
			must(err)
			s.PromptSections(full)
			s.Tools()
		})
	})
}

// compressed returns how many bytes data has once it is compressed.
func compressed(data []byte) float64 {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	must(err)
	must(w.Close())
	return float64(b.Len())
}

// build2000 makes a Manager with 2,000 times perServer tools, so many at a time.
func build2000(atOnce int) float64 {
	groups := grouped(2000*perServer, atOnce)
	begin := cpu()
	m := newManager(nil)
	defer m.Close()
	for server, tools := range groups {
		must(m.AddTools(server, tools...))
	}
	m.Search("create issue", 5)
	return micros(cpu() - begin)
}

// loadOne loads 2,000 tools of the usual size and returns the time for each.
func loadOne() float64 {
	const n = 2000
	var group []mcpserver.ServerTool
	for i := range n {
		group = append(group, tool(fmt.Sprintf("chore_%d", i), strings.Repeat("Does a \"chore\". ", 20), things[i%50:i%50+12]...))
	}
	return each(func(int) {
		m := newManager(nil)
		defer m.Close()
		must(m.AddTools("srv", group...))
	}) / n
}

// newManager returns a Manager whose states have their parts in store, unless that is
// nil or the library does not know of parts yet.
func newManager(store parts) *mcphybrid.Manager {
	o := &mcphybrid.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if f := reflect.ValueOf(o).Elem().FieldByName("StateParts"); store != nil && f.IsValid() {
		f.Set(reflect.ValueOf(store))
	}
	return mcphybrid.NewManager(o)
}

// parts are what states have in common, by key.
type parts map[string][]byte

func (p parts) Put(key string, part []byte) error {
	p[key] = part
	return nil
}

func (p parts) Get(key string) ([]byte, error) { return p[key], nil }

// each returns the microseconds that f takes: the least of some batches.
func each(f func(i int)) float64 {
	n, batch := 0, 1
	run := func() time.Duration {
		begin := cpu()
		for range batch {
			f(n)
			n++
		}
		return cpu() - begin
	}
	run() // what happens once
	for run() < 20*time.Millisecond {
		batch *= 2
	}
	least := run()
	for range 8 {
		least = min(least, run())
	}
	return micros(least) / float64(batch)
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The words of made-up tools. Each server has a topic of its own: three things.
var (
	verbs  = strings.Fields("create list get update delete search archive merge assign close export import rename move share lock watch label count sync")
	things = strings.Fields("issue invoice page table branch pipeline contact calendar event message channel folder file image payment order product ticket user team role key secret bucket queue metric alert dashboard report query index record zone domain certificate cluster pod node volume snapshot backup deployment release commit comment review milestone project board card note task reminder song playlist album video stream camera sensor device route ship parcel flight hotel booking seat menu recipe patient claim policy contract lead campaign survey quiz course lesson grade exam")
	fills  = strings.Fields("the given for all of a in your workspace by its identifier and returns matching entries with their details sorted newest first optionally filtered")
)

// grouped yields n tools in groups of k, named srv00000 and so on.
func grouped(n, k int) func(yield func(string, []mcpserver.ServerTool) bool) {
	names, groups := []string{}, [][]mcpserver.ServerTool{}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(words []string) string { return words[r.IntN(len(words))] }
	for i := 0; i < n; i += k {
		topic := []string{pick(things), pick(things), pick(things)}
		var group []mcpserver.ServerTool
		for j := i; j < min(i+k, n); j++ {
			verb, thing := pick(verbs), pick(topic)
			words := []string{verb, thing}
			for range 6 + r.IntN(18) {
				words = append(words, pick(slices.Concat(fills, topic)))
			}
			group = append(group, tool(fmt.Sprintf("%s_%s_%d", verb, thing, j), strings.Join(words, " "), pick(topic), pick(things), pick(things)))
		}
		names, groups = append(names, fmt.Sprintf("srv%05d", i/k)), append(groups, group)
	}
	return func(yield func(string, []mcpserver.ServerTool) bool) {
		for i, name := range names {
			if !yield(name, groups[i]) {
				return
			}
		}
	}
}

func tool(name, description string, parameters ...string) mcpserver.ServerTool {
	type property struct {
		Type        string `json:"type"`
		Description string `json:"description"`
	}
	properties := make(map[string]property)
	for _, p := range parameters {
		properties[p] = property{"string", "the " + p + " to use"}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	must(err)
	return mcpserver.ServerTool{Tool: mcp.NewToolWithRawSchema(name, description, schema)}
}

// queries are what a model might ask.
func queries() (list []string) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		list = append(list, fmt.Sprintf("%s a %s with %s", verbs[r.IntN(len(verbs))], things[r.IntN(len(things))], things[r.IntN(len(things))]))
	}
	return list
}
