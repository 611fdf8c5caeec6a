//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
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
	row("session after Compact, bytes", func() float64 {
		list := activeSessions(sessions, func(int) *mcphybrid.Session { return m().NewSession(nil) })
		before := heap()
		for _, s := range list {
			s.Compact()
			look(s)
		}
		took := (heap() - before) / sessions
		runtime.KeepAlive(list)
		return took
	})
	row("marks of all, µs", func() float64 { return each(func(int) { m().Marks() }) })
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
		for _, h := range s.Search(queries[i%len(queries)], 3) {
			s.ActivateToolIfDeferred(h.Tool.Name())
		}
		look(s)
		list = append(list, s)
	}
	return list
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

// A turnCost is what one turn of a conversation takes.
type turnCost struct{ micros, mallocs float64 }

// turnsOf has 200 conversations take 20 turns each: a look before each request, a search in
// one of two turns, one or two calls, and Compact in one of ten. If stores is set, each turn
// begins by RestoreSession and ends by Save.
func turnsOf(m *mcphybrid.Manager, stores bool) turnCost {
	const conversations, turns = 200, 20
	r, ctx, queries := rand.New(rand.NewPCG(5, 6)), context.Background(), queries()
	sessions, states := make([]*mcphybrid.Session, conversations), make([]json.RawMessage, conversations)
	for i := range sessions {
		sessions[i] = m.NewSession(nil)
		states[i] = sessions[i].Save()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := cpu()
	for turn := range turns {
		for i, s := range sessions {
			if stores {
				var err error
				s, _, err = m.RestoreSession(states[i], nil)
				must(err)
			}
			s.NextTurn()
			look(s)
			if r.IntN(2) == 0 {
				_, err := s.Call(ctx, mcphybrid.SearchToolName, map[string]any{"query": queries[r.IntN(len(queries))]})
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
			if turn%10 == 9 {
				s.Compact()
			}
			if stores {
				states[i] = s.Save()
				s.Close()
			}
		}
	}
	took := micros(cpu() - begin)
	runtime.ReadMemStats(&after)
	const all = conversations * turns
	return turnCost{took / all, float64(after.Mallocs-before.Mallocs) / all}
}
