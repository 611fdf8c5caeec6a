//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/debug"
)

// perWideServer is how many tools a server has where sessions are measured.
const perWideServer = 20

// measureSessions measures what sessions cost that others could share: their turns, their
// looks after a change, and what they keep.
func measureSessions(n int, row func(string, func() float64)) {
	of := func(store parts) func() *mcphybrid.Manager {
		return sync.OnceValue(func() *mcphybrid.Manager {
			m := newManager(store)
			for server, tools := range grouped(n, perWideServer) {
				for i := range tools {
					tools[i].Handler = answer
				}
				must(m.AddTools(server, tools...))
			}
			m.Search("create an issue", 5)
			return m
		})
	}
	m, shared := of(nil), of(make(parts))
	for how, made := range map[string]func() *mcphybrid.Manager{"": m, " in parts": shared} {
		turns := sync.OnceValue(func() turnCost { return turnsOf(made(), how != "") })
		row("turn"+how+", µs", func() float64 { return turns().micros })
		row("turn"+how+", mallocs", func() float64 { return turns().mallocs })
		measureStates(made, 3, how+", 20 tools a server", row)
	}
	const sessions = 100
	row("next look after a change, alike, µs", func() float64 {
		return nextLook(m(), sessions, func(int) *mcphybrid.Session { return m().NewSession(nil) })
	})
	row("next look after a change, own rights, µs", func() float64 {
		return nextLook(m(), sessions, func(i int) *mcphybrid.Session {
			return m().NewSession(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{fmt.Sprintf("srv%05d/*", i)}}})
		})
	})
	row("next look after a change, users, µs", func() float64 {
		return nextLook(m(), sessions, func(i int) *mcphybrid.Session {
			u, err := m().NewUser(fmt.Sprint("user", i), nil)
			must(err)
			must(u.AddTools("own", tool("mine", "Does what only this user does")))
			return u.NewSession(nil)
		})
	})
	kept := func(of func(*mcphybrid.Session)) float64 {
		opened := func() *mcphybrid.Session {
			s := m().NewSession(nil)
			look(s)
			of(s)
			return s
		}
		opened() // makes what all sessions share
		list := make([]*mcphybrid.Session, sessions)
		before := heap()
		for i := range list {
			list[i] = opened()
		}
		took := (heap() - before) / sessions
		runtime.KeepAlive(list)
		return took
	}
	row("idle session, bytes", func() float64 { return kept(func(*mcphybrid.Session) {}) })
	row("session after Compact, bytes", func() float64 {
		return kept(func(s *mcphybrid.Session) {
			activate(s, "create an invoice")
			s.Compact()
			look(s)
		})
	})
	row("marks of all, µs", func() float64 { return each(func(int) { m().Marks() }) })
	row("page with 10,000 sessions, µs", func() float64 { return page(m()) })
	row("placements, µs", func() float64 {
		s := m().NewSession(nil)
		return each(func(int) { s.Placements() })
	})
	row("500 rules with a glob each, µs", func() float64 {
		var rules []mcphybrid.Rule
		for i := range 500 {
			rules = append(rules, mcphybrid.Rule{
				Name: fmt.Sprint("rule", i), Intent: fmt.Sprint("intent", i), Action: mcphybrid.RuleExclude,
				Patterns: []string{fmt.Sprintf("srv%05d/*", i), "*_" + things[i%len(things)] + "_*"},
			})
		}
		took := each(func(int) { must(m().SetRules(rules)) })
		must(m().SetRules([]mcphybrid.Rule{}))
		return took
	})
}

func answer(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("It is done as asked."), nil
}

// look does what a host does before each request.
func look(s *mcphybrid.Session) {
	s.PromptSections(mcphybrid.PromptFull)
	s.Tools()
	_, err := s.Export("anthropic")
	must(err)
}

// activeSessions returns sessions with three active tools each, which they were shown.
func activeSessions(n int, made func(i int) *mcphybrid.Session) (list []*mcphybrid.Session) {
	queries := queries()
	for i := range n {
		s := made(i)
		look(s)
		activate(s, queries[i%len(queries)])
		list = append(list, s)
	}
	return list
}

// activate activates the three best tools for a query, and looks.
func activate(s *mcphybrid.Session, query string) {
	for _, h := range s.Search(query, 3) {
		s.ActivateToolIfDeferred(h.Tool.Name())
	}
	look(s)
}

// nextLook returns what the sections of each of n active sessions take when a tool has come.
func nextLook(m *mcphybrid.Manager, n int, made func(i int) *mcphybrid.Session) float64 {
	list := activeSessions(n, made)
	least := time.Duration(1 << 62)
	for i := range 8 {
		must(m.AddTools("extra", tool("chore", fmt.Sprint("Does special chore number ", i))))
		begin := cpu()
		for _, s := range list {
			s.PromptSections(mcphybrid.PromptFull)
		}
		least = min(least, cpu()-begin)
		m.RemoveServer("extra")
	}
	return micros(least) / float64(n)
}

// page returns what a person's page takes while there are 10,000 sessions, of which 200 have
// rights of their own or are of users.
func page(m *mcphybrid.Manager) float64 {
	var list []*mcphybrid.Session
	for i := range 10_000 {
		switch {
		case i < 100:
			list = append(list, m.NewSession(&mcphybrid.SessionOptions{Access: mcphybrid.Access{Deny: []string{fmt.Sprintf("srv%05d/*", i)}}}))
		case i < 200:
			u, err := m.NewUser(fmt.Sprint("reader", i), nil)
			must(err)
			must(u.AddTools("own", tool("mine", "Does what only this user does")))
			list = append(list, u.NewSession(nil))
		default:
			list = append(list, m.NewSession(nil))
		}
		list[i].PromptSections(mcphybrid.PromptFull)
	}
	pages := debug.Handler(m)
	took := each(func(int) {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
		if w.Code != http.StatusOK {
			panic(w.Body.String())
		}
	})
	for _, s := range list {
		s.Close()
	}
	return took
}

// A turnCost is what one turn of a conversation takes.
type turnCost struct{ micros, mallocs float64 }

// turnsOf has 1,000 conversations take 20 turns each: a look before each request, a search in
// one of two turns, one or two calls, and Compact after ten. Some words are searched more than others. If
// stores is set, each turn begins by RestoreSession and ends by Save.
func turnsOf(m *mcphybrid.Manager, stores bool) turnCost {
	const conversations, turns = 1000, 20
	r, ctx := rand.New(rand.NewPCG(5, 6)), context.Background()
	word := func(words []string) func() string {
		z := rand.NewZipf(r, 1.1, 10, uint64(len(words)-1))
		return func() string { return words[z.Uint64()] }
	}
	verb, thing := word(verbs), word(things)
	sessions, states := make([]*mcphybrid.Session, conversations), make([]json.RawMessage, conversations)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := cpu()
	for turn := range turns {
		for i, s := range sessions {
			switch {
			case turn == 0:
				s = m.NewSession(nil)
			case stores:
				var err error
				s, _, err = m.RestoreSession(states[i], nil)
				must(err)
			}
			s.NextTurn()
			look(s)
			if r.IntN(2) == 0 {
				_, err := s.Call(ctx, mcphybrid.SearchToolName, map[string]any{"query": verb() + " a " + thing()})
				must(err)
				look(s)
			}
			tools := s.Tools()
			for range 1 + r.IntN(2) {
				t := tools[r.IntN(len(tools))]
				if strings.HasPrefix(t.Name(), "mcp_tool_") { // one of ours
					continue
				}
				_, err := s.Call(ctx, t.Name(), json.RawMessage(`{}`))
				must(err)
				look(s)
			}
			if turn == 10 {
				s.Compact()
			}
			if stores {
				states[i] = s.Save()
				s.Close()
			} else {
				sessions[i] = s
			}
		}
	}
	took := micros(cpu() - begin)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(sessions)
	const all = conversations * turns
	return turnCost{took / all, float64(after.Mallocs-before.Mallocs) / all}
}
