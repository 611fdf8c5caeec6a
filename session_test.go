package mcphybrid

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// thousandTools returns 20 servers in this process with 1,000 tools together.
func thousandTools() []ServerConfig {
	var servers []ServerConfig
	for i := range 20 {
		servers = append(servers, inProcess(fmt.Sprintf("s%d", i), 50))
	}
	return servers
}

// heapInUse returns the bytes in use on the heap.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the first only ages the pools
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return st.HeapAlloc
}

// SPEC F3: an idle session takes less than 2 KiB. A session with its own access
// lists has its own list of what it was shown.
func TestSpecF3IdleSessionsAreSmall(t *testing.T) {
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	for _, c := range []struct {
		name string
		opts *SessionOptions
		most uint64
	}{{"plain", nil, 512}, {"restricted", &SessionOptions{Access: Access{Deny: []string{"mcp_s3__*"}}}, 2 << 10}} {
		sessions := make([]*Session, 10_000)
		before := heapInUse()
		for i := range sessions {
			sessions[i] = m.NewSession(c.opts)
			sessions[i].show()
		}
		each := (heapInUse() - before) / uint64(len(sessions))
		t.Logf("%s: %d bytes each", c.name, each)
		assert.Less(t, each, c.most, c.name)
		runtime.KeepAlive(sessions)
	}
}

func TestSessionTakesNoLargerAllocation(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Session{}), uintptr(448), "the allocator's next size is 480: a field that few sessions use belongs to what is made for them, as wishes are")
}

var calls = flag.Int("calls", 3_000, "how many calls TestSpecF3SessionsSeeOnlyTheirOwn makes")

// SPEC F3: 10,000 sessions search and call. Each has the active tools that it
// found and called itself.
func TestSpecF3SessionsSeeOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Servers: thousandTools()})
	type conversation struct {
		*Session
		mu   sync.Mutex
		want []string
	}
	conversations := make([]*conversation, 10_000)
	for i := range conversations {
		conversations[i] = &conversation{Session: m.NewSession(nil)}
	}
	var done, called atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(g)))
			for done.Add(1) <= int64(*calls) {
				c := conversations[random.IntN(len(conversations))]
				c.mu.Lock()
				var names []string
				if random.IntN(2) == 0 {
					name := fmt.Sprintf("mcp_s%d__tool_%03d", 1+random.IntN(19), random.IntN(50))
					r, err := c.Call(context.Background(), name, `{"text":"x"}`)
					assert.NoError(t, err)
					assert.Equal(t, name[len(name)-8:]+` {"text":"x"}`, mcp.GetTextFromContent(r.Content[0]))
					names = []string{name}
					called.Add(1)
				} else {
					query := fmt.Sprintf("select:mcp_s%d__tool_%03d", 1+random.IntN(19), random.IntN(50))
					_, err := c.Call(context.Background(), SearchToolName, map[string]any{"query": query})
					assert.NoError(t, err)
					names = []string{query[len("select:"):]}
				}
				for _, name := range names {
					if !slices.Contains(c.want, name) {
						c.want = append(c.want, name)
					}
				}
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, c := range conversations {
		require.Equal(t, append([]string{}, c.want...), namesOf(c.ActiveTools()))
	}
	assert.NoError(t, check(m))
	counted := 0
	for _, s := range m.Servers() {
		counted += s.Usage.Calls
	}
	assert.EqualValues(t, called.Load(), counted)
	assert.Equal(t, 0, m.Stats().Usage.Calls, "the Manager's own session called nothing")
}

func BenchmarkNewSession(b *testing.B) {
	m := NewManager(&Options{Servers: thousandTools()})
	defer m.Close()
	require.NoError(b, m.Start(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		m.NewSession(nil).show()
	}
}

// BenchmarkCall compares a call through a session with the same call made by
// mcp-go's client. It alternates them and reports the medians and their
// difference.
func BenchmarkCall(b *testing.B) {
	cfg := thousandTools()
	m := NewManager(&Options{Servers: cfg})
	defer m.Close()
	require.NoError(b, m.Start(b.Context()))
	direct, err := client.NewInProcessClient(mcpServer(cfg[1]))
	require.NoError(b, err)
	require.NoError(b, direct.Start(b.Context()))
	defer direct.Close()
	var init mcp.InitializeRequest
	init.Params.ClientInfo = mcp.Implementation{Name: "direct", Version: "1"}
	_, err = direct.Initialize(b.Context(), init)
	require.NoError(b, err)
	_, err = direct.ListTools(b.Context(), mcp.ListToolsRequest{})
	require.NoError(b, err)
	var r mcp.CallToolRequest
	r.Params.Name = "tool_007"
	r.Params.Arguments = map[string]any{"text": "hello"}
	s := m.NewSession(nil)

	ways := []func() error{
		func() error { _, err := direct.CallTool(b.Context(), r); return err },
		func() error { _, err := s.Call(b.Context(), "mcp_s1__tool_007", r.Params.Arguments); return err },
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, call := range ways {
			start := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2]) / 1e3
	}
	b.ReportMetric(median(took[0]), "direct-µs")
	b.ReportMetric(median(took[1]), "session-µs")
	b.ReportMetric(median(took[1])-median(took[0]), "added-µs")
}

// A session sees the current catalog and only its own activations.
func TestSessionsAreIndependent(t *testing.T) {
	t.Parallel()
	m, r := newTestManager(t, &Options{Inline: InlineOptions{Max: 5}, Servers: []ServerConfig{inProcess("a", 100)}})
	var wg sync.WaitGroup
	sessions := make([]*Session, 50)
	for i := range sessions {
		wg.Go(func() {
			s := m.NewSession(nil)
			sessions[i] = s
			for j := range 10 {
				_, err := s.Call(t.Context(), fmt.Sprintf("mcp_a__tool_%03d", 5+(i+j)%95), nil)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	for i, s := range sessions {
		var want []string
		for j := range 10 {
			want = append(want, fmt.Sprintf("mcp_a__tool_%03d", 5+(i+j)%95))
		}
		assert.Equal(t, want, toolNames(s.ActiveTools()))
	}
	assert.Empty(t, m.ActiveTools())
	assert.Len(t, r.List(), 6)
	assert.NoError(t, check(m, sessions...))
}
