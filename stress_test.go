package mcphybrid

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var stress = flag.Duration("stress", 500*time.Millisecond, "how long TestStress goes on")

// 64 goroutines use a Manager and its sessions in every way while servers come
// and go and the registry locks and calls back. No invariant breaks at any
// time, and no call reports a tool active that the registry lacks.
func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("not a quick test: goroutines for seconds")
	}
	t.Parallel()
	m, r := newLockingManager(t, Options{Inline: InlineOptions{Max: 20}, Servers: []ServerConfig{inProcess("s0", 15), inProcess("s1", 15), inProcess("s2", 15)},
		Needs: map[string][]string{
			"mcp_s0__tool_003": {"mcp_s1__tool_014", "mcp_s2__tool_003"},
			"mcp_s1__tool_014": {"mcp_s0__tool_003"},
			"mcp_s2__tool_003": {"mcp_s3__tool_001", "mcp_s1__tool_014", "mcp_s2__tool_012"},
		}})
	ctx, cancel := context.WithTimeout(context.Background(), *stress)
	defer cancel()
	own := NewRegistry()
	sessions := []*Session{m.def, m.NewSession(nil), m.NewSession(&SessionOptions{Registry: own}),
		m.NewSession(&SessionOptions{Access: Access{Deny: []string{"mcp_s1__*"}}})}

	var wg sync.WaitGroup
	var told, calls, changes atomic.Int64
	late := time.Now().Add(*stress + time.Minute)
	goes := func() bool { // longer on a slow machine, until each has happened
		return ctx.Err() == nil || told.Load()*calls.Load()*changes.Load() == 0 && time.Now().Before(late)
	}
	for g := range 64 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for goes() {
				s := sessions[random.IntN(len(sessions))]
				name := fmt.Sprintf("mcp_s%d__tool_%03d", random.IntN(4), random.IntN(15))
				switch random.IntN(7) {
				case 0:
					for _, h := range s.Search("chore tool "+name, 5) {
						assert.True(t, s.rights.Permit(h.Tool.def.subject()))
					}
				case 1:
					_, err := s.Call(context.Background(), SearchToolName, `{"query":"chore 7"}`)
					if err != nil {
						assert.ErrorIs(t, err, ErrUnknownTool)
					}
				case 2, 3:
					result, err := s.Call(context.Background(), name, `{"text":"x"}`)
					if err == nil {
						calls.Add(1)
						assert.False(t, result.IsError)
					}
				case 4:
					s.PromptSections(PromptFull)
					s.Tools()
					s.Stats()
				case 5:
					if g < 2 { // it takes long
						assert.NoError(t, check(m, sessions[random.IntN(len(sessions))]))
					}
				default:
					before := m.cur.Load()
					active := m.ActivateTools([]string{name, "mcp_s2__tool_003"})
					var missing []string
					for _, name := range active {
						if _, ok := r.Get(name); !ok {
							missing = append(missing, name)
						}
					}
					if m.cur.Load() == before { // else they may have left
						told.Add(int64(len(active)))
						assert.Empty(t, missing, "told to be active, and not registered")
					}
				}
			}
		})
	}
	wg.Go(func() {
		random := rand.New(rand.NewPCG(2, 0))
		for goes() {
			name := fmt.Sprintf("s%d", random.IntN(4))
			switch random.IntN(3) {
			case 0:
				m.RemoveServer(name)
			case 1:
				_ = m.AddServer(context.Background(), inProcess(name, 15)) // may be there
			default:
				_ = m.AddTools(name, echoTool(fmt.Sprintf("tool_%03d", random.IntN(15)), "Does a thing"))
			}
			changes.Add(1)
		}
	})
	wg.Wait()

	t.Logf("%d activations checked, %d calls, %d changes", told.Load(), calls.Load(), changes.Load())
	assert.Positive(t, told.Load())
	assert.Positive(t, calls.Load())
	assert.Positive(t, changes.Load())
	require.NoError(t, check(m, sessions...))
	assert.NoError(t, checkRegistry(m.def, r.tools))
	assert.NoError(t, checkRegistry(sessions[2], own))
	sessions[2].Close()
	assert.Empty(t, own.List())
}
