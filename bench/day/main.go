//go:build unix

// Day plays what a host with a million conversations has to do, on one machine: sessions that wait in memory,
// states in a store, and turns that each get, restore, work, save and put one.
//
//	go -C bench run ./day [-stored 1000000] [-live 200000] [-turns 200000] [-tools 4000] [-workers 8] [-fill 1h] [-postgres URL] [-embed]
//
// The store is a NATS server in this process, with its files in a temporary folder, or PostgreSQL. The
// model is a script: in each turn it looks, searches, calls a tool, and looks again. Tools answer at once. The states
// are those of 1,000 conversations, each under many ids. CPU
// time is that of the process, that of a NATS server and of the garbage collector included, and that of
// PostgreSQL not.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/provider"
	"github.com/mcphybrid/mcphybrid/store"
)

func main() {
	p := play{}
	flag.IntVar(&p.stored, "stored", 1_000_000, "how many conversations have a `state` in the store")
	flag.IntVar(&p.live, "live", 200_000, "how many `sessions` wait in memory")
	flag.IntVar(&p.turns, "turns", 200_000, "how many `turns` of stored conversations are timed")
	flag.IntVar(&p.tools, "tools", 4000, "how many `tools` there are, 20 of each server")
	flag.IntVar(&p.workers, "workers", 8, "how many turns run at once")
	flag.StringVar(&p.postgres, "postgres", "", "`URL` of a PostgreSQL server to use in place of NATS; its schema \"day\" is made anew and dropped")
	flag.DurationVar(&p.fill, "fill", time.Hour, "after this `time`, no more states are put first")
	embed := flag.Bool("embed", false, "count the calls of an embedding model, and do nothing else")
	flag.Parse()
	run := p.run
	if *embed {
		run = p.countEmbedding
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "day:", err)
		os.Exit(1)
	}
}

// A play is one run.
type play struct {
	stored, live, turns, tools, workers int
	postgres                            string
	fill                                time.Duration

	mgr      *mcphybrid.Manager
	sessions store.Sessions
	gets     timing
	puts     timing
	bytes    atomic.Int64                 // of states that were put
	size     func(context.Context) string // of the store
}

func (p *play) run(ctx context.Context) error {
	p.mgr = mcphybrid.NewManager(nil)
	defer p.mgr.Close()
	for i := 0; i < p.tools; i += perServer {
		if err := p.mgr.AddTools(fmt.Sprintf("srv%04d", i/perServer), serverTools(i, min(perServer, p.tools-i))...); err != nil {
			return err
		}
	}
	if err := p.turn(ctx, p.mgr.NewSession(nil), 0); err != nil { // makes what all share
		return err
	}

	before := heap()
	waiting := make([]*mcphybrid.Session, p.live)
	_, err := p.measured("sessions begin, have a turn and wait after Compact", p.live, p.fill, func(i int) error {
		waiting[i] = p.mgr.NewSession(nil)
		if err := p.turn(ctx, waiting[i], i); err != nil {
			return err
		}
		waiting[i].Compact()
		return nil
	})
	if err != nil {
		return err
	}
	if p.live > 0 {
		fmt.Printf("    %.0f MB of heap, %.0f bytes each\n", (heap()-before)/1e6, (heap()-before)/float64(p.live))
	}

	close, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer close()
	states := make([][]byte, min(1000, p.stored))
	for i := range states {
		s := p.mgr.NewSession(nil)
		if err := p.turn(ctx, s, i); err != nil {
			return err
		}
		states[i] = s.Save()
		s.Close()
	}
	p.stored, err = p.measured("states of conversations that had a turn are put", p.stored, p.fill, func(i int) error {
		return p.put(ctx, i, states[i%len(states)], 0)
	})
	if err != nil || p.stored == 0 {
		return err
	}
	p.tell(ctx)

	p.gets, p.puts = timing{}, timing{}
	p.bytes.Store(0)
	_, err = p.measured("turns: get, restore, work, save, put", p.turns, p.fill, func(k int) error {
		i := k * 7919 % p.stored // 7919 is a prime: no two of the turns at once are of one conversation
		var state []byte
		var revision uint64
		err := p.gets.of(func() (err error) {
			state, revision, err = p.sessions.Get(ctx, id(i))
			return err
		})
		if err != nil {
			return err
		}
		s, changed, err := p.mgr.RestoreSession(state, nil)
		if err != nil || len(changed) > 0 {
			return fmt.Errorf("%v changed, %w", changed, err)
		}
		defer s.Close()
		if err := p.turn(ctx, s, i+k); err != nil {
			return err
		}
		return p.put(ctx, i, s.Save(), revision)
	})
	if err != nil {
		return err
	}
	p.tell(ctx)
	fmt.Printf("%.0f MB of heap in the end, NATS's included\n", heap()/1e6)
	runtime.KeepAlive(waiting)
	return nil
}

// tell prints what the store took.
func (p *play) tell(ctx context.Context) {
	if p.gets.n() > 0 {
		fmt.Printf("    Get: %v\n", &p.gets)
	}
	fmt.Printf("    Put: %v; a state has %d bytes as Save returns it\n    the store: %s\n", &p.puts, p.bytes.Load()/int64(max(p.puts.n(), 1)), p.size(ctx))
}

func id(i int) string { return fmt.Sprintf("user/%d", i) }

// turn has a model answer a message: it looks, searches, calls a tool and looks again.
func (p *play) turn(ctx context.Context, s *mcphybrid.Session, i int) error {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	s.NextTurn()
	if _, err := s.Turn(provider.Anthropic, ""); err != nil {
		return err
	}
	query := actions[r.IntN(len(actions))] + " a " + things[r.IntN(len(things))]
	if _, err := s.Call(ctx, mcphybrid.SearchToolName, map[string]any{"query": query}); err != nil {
		return err
	}
	for _, h := range s.Search(query, 1) {
		if _, err := s.Call(ctx, h.Tool.Name(), map[string]any{"id": "x"}); err != nil {
			return err
		}
	}
	_, err := s.Turn(provider.Anthropic, "")
	return err
}

func (p *play) put(ctx context.Context, i int, state []byte, revision uint64) error {
	p.bytes.Add(int64(len(state)))
	return p.puts.of(func() error {
		_, err := p.sessions.Put(ctx, id(i), state, revision)
		return err
	})
}

// measured does n things, several at once, and prints what one takes. It begins none after limit, and returns
// how many were done.
func (p *play) measured(what string, n int, limit time.Duration, do func(i int) error) (done int, err error) {
	if n == 0 {
		return 0, nil
	}
	begun, cpuBefore := time.Now(), cpu()
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, p.workers)
	for w := range p.workers {
		wg.Go(func() {
			for errs[w] == nil && time.Since(begun) < limit {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				errs[w] = do(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("%s: %w", what, err)
		}
	}
	took, done := time.Since(begun), min(int(next.Load()), n)
	fmt.Printf("%d %s: %v, %.0f a second, %.2f ms of CPU each\n", done, what, took.Round(time.Second), float64(done)/took.Seconds(), (cpu()-cpuBefore).Seconds()*1e3/float64(done))
	return done, nil
}

// A timing has how long calls took.
type timing struct {
	mu   sync.Mutex
	took []time.Duration
}

func (t *timing) of(do func() error) error {
	begun := time.Now()
	err := do()
	took := time.Since(begun)
	t.mu.Lock()
	t.took = append(t.took, took)
	t.mu.Unlock()
	return err
}

func (t *timing) n() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.took)
}

func (t *timing) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.took)
	at := func(share int) time.Duration { return t.took[(len(t.took)-1)*share/100].Round(10 * time.Microsecond) }
	return fmt.Sprintf("median %v, one in a hundred more than %v", at(50), at(99))
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap returns the bytes in use.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

const perServer = 20

var (
	actions = strings.Fields("create list update delete search export import merge archive share rename assign approve reject schedule cancel send fetch watch tag")
	things  = strings.Fields("issue invoice contract photo ticket meeting customer order parcel recipe backup domain certificate playlist route budget shift patient lesson article")
)

// serverTools returns n tools of one server, from number first on.
func serverTools(first, n int) (tools []mcpserver.ServerTool) {
	for i := range n {
		action, thing := actions[i%len(actions)], things[first/perServer%len(things)]
		tools = append(tools, mcpserver.ServerTool{
			Tool: mcp.NewTool(action+"_"+thing, mcp.WithDescription(fmt.Sprintf("%s one %s of workspace %d, and tells what has become of it.", action, thing, first/perServer)),
				mcp.WithString("id", mcp.Required(), mcp.Description("of the "+thing)), mcp.WithString("note", mcp.Description("for who looks at it later"))),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("It is done as asked."), nil
			},
		})
	}
	return tools
}
