package mcphybrid

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHammer calls every method of sessions at once, while servers come and go
// and the registry calls back. What was sent stays.
func TestHammer(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: goroutines for seconds")
	}
	t.Parallel()
	for _, d := range []Disclosure{ByActivation, ByBridge, ByProvider} {
		t.Run(fmt.Sprint(d), func(t *testing.T) { hammer(t, d) })
	}
}

func hammer(t *testing.T, d Disclosure) {
	var m *Manager
	var depth sync.Map
	m, _ = newTestManager(t, &Options{Inline: InlineOptions{Max: 6}, List: ListOptions{Max: 20}, MaxResult: 60, Active: ActiveOptions{Max: 3, Turns: 2},
		Servers: []ServerConfig{inProcess("s0", 8), inProcess("s1", 8)},
		Needs:   map[string][]string{"mcp_s0__tool_007": {"mcp_s1__tool_006", "mcp_s2__tool_001"}, "mcp_s1__tool_006": {"mcp_s0__tool_007"}},
		OnEvent: ofSessions(func(e Event) {
			if _, busy := depth.LoadOrStore(e.Session, true); busy {
				return
			}
			defer depth.Delete(e.Session)
			e.Session.Stats()
			e.Session.Tools()
			e.Session.Save()
			e.Session.ActivateToolIfDeferred("mcp_s1__tool_007")
			m.Servers()
			m.Problems()
		})})
	reg := NewRegistry()
	s := m.NewSession(&SessionOptions{Disclosure: d, Registry: reg})
	plain := m.NewSession(&SessionOptions{Disclosure: d}) // never compacted
	ctx, cancel := context.WithTimeout(context.Background(), mcptest.Long(time.Second, 300*time.Millisecond))
	defer cancel()
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(g)))
			var sections, in, se string
			var tools []string
			for ctx.Err() == nil {
				c := s
				if r.IntN(2) == 0 {
					c = plain
				}
				name := fmt.Sprintf("mcp_s%d__tool_%03d", r.IntN(4), r.IntN(9))
				switch r.IntN(16) {
				case 0:
					_, _ = c.Call(ctx, name, `{"text":"`+strings.Repeat("x", r.IntN(200))+`"}`)
				case 1:
					_, _ = c.Call(ctx, SearchToolName, `{"query":"chore 3"}`)
				case 2:
					_, _ = c.Call(ctx, PageToolName, `{"id":"r1"}`)
				case 3:
					_, _ = c.Call(ctx, CallToolName, fmt.Sprintf(`{"name":%q}`, name))
				case 4:
					_, _ = c.Call(ctx, DescribeToolName, fmt.Sprintf(`{"names":[%q]}`, name))
				case 5:
					s.Compact()
				case 6:
					c.NextTurn()
				case 7:
					restored, _, err := m.RestoreSession(c.Save(), &SessionOptions{Disclosure: d})
					assert.NoError(t, err)
					restored.Tools()
					restored.Compact()
					restored.Close()
				case 8:
					child := c.NewChild(&SessionOptions{Access: Access{Deny: []string{"*_003"}}, Registry: NewRegistry()})
					child.Search("chore", 3)
					child.ActivateTools([]string{name})
					child.Close()
				case 9:
					_, _ = c.Export(provider.Anthropic)
				case 10:
					_, _ = reg.Execute(ctx, name, []byte(`{"text":"y"}`))
				case 11:
					c.Stats()
					c.DeferredTools()
					c.InlineTools()
				case 12:
					c.Explain("chore", name)
					c.SearchTool()
					c.IsSearchMode()
				default:
					nowS, nowT := sentBytes(plain)
					nowIn, nowSe := plain.InlineSection(), plain.SearchSection()
					if !strings.HasPrefix(nowS, sections) || !strings.HasPrefix(nowIn, in) || !strings.HasPrefix(nowSe, se) || len(nowT) < len(tools) {
						t.Errorf("changed:\n%q\n%q", sections, nowS)
					}
					for i := range tools {
						if nowT[i] != tools[i] {
							t.Errorf("tool %d changed", i)
							break
						}
					}
					sections, tools, in, se = nowS, nowT, nowIn, nowSe
				}
			}
		})
	}
	wg.Go(func() {
		r := rand.New(rand.NewPCG(4, 4))
		for ctx.Err() == nil {
			name := fmt.Sprintf("s%d", r.IntN(4))
			if r.IntN(2) == 0 {
				m.RemoveServer(name)
			} else {
				_ = m.AddServer(ctx, inProcess(name, 1+r.IntN(9)))
			}
		}
	})
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		panic("deadlock")
	}
	require.NoError(t, check(m, s, plain))
	assert.NoError(t, checkRegistry(s, reg))
	// A kept result can be read.
	for _, c := range []*Session{s, plain} {
		ids := map[string]bool{}
		for _, p := range c.pages.kept {
			assert.False(t, ids[p.ID], "two results %s", p.ID)
			ids[p.ID] = true
			assert.True(t, c.pages.offered, "%s is kept and can't be read", p.ID)
		}
		names := map[string]int{}
		for _, tool := range allTools(c) {
			if names[tool.Name()]++; names[tool.Name()] == 2 {
				t.Errorf("%s twice in the list", tool.Name())
			}
		}
	}
	s.Close()
	assert.Empty(t, reg.List())
	assert.Len(t, m.attached, 1, "sessions leak")
}

// Compact runs between the two locks of fit. Then the result must not be kept
// under an id that is given out again, without a tool to read it.
func TestCompactWhileAResultIsCut(t *testing.T) {
	t.Parallel()
	many := mcpserver.ServerTool{Tool: mcp.NewTool("many"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := &mcp.CallToolResult{}
		for range 200_000 {
			r.Content = append(r.Content, mcp.NewTextContent("line"))
		}
		return r, nil
	}}
	m, _ := newTestManager(t, &Options{MaxResult: 100})
	require.NoError(t, m.AddTools("a", many))
	s := m.NewSession(nil)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = s.Call(t.Context(), "mcp_a__many", nil) })
	for s.view().paged == false {
	}
	s.Compact()
	wg.Wait()
	if len(s.pages.kept) > 0 {
		assert.Contains(t, namesOf(s.Tools()), PageToolName)
		_, _ = s.Call(t.Context(), "mcp_a__many", nil)
		assert.NotEqual(t, s.pages.kept[0].ID, s.pages.kept[1].ID)
	}
}
