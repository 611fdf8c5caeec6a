//go:build unix && !before

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/openings"
)

// written has 20 servers of 50 tools change one tool of each, every second. It returns how
// many bytes the cache writes for each changed tool, as a multiple of its bytes.
func written() float64 {
	const servers, tools = 20, 50
	const rounds = 40 // a list is written anew after 32 changes
	change := func(s *mcpserver.MCPServer, i, round int) {
		description := fmt.Sprintf("Does chore %d of round %d. ", i, round) + strings.Repeat("Does a chore. ", 40)
		t := tool(fmt.Sprintf("chore_%02d", i), description, "issue", "invoice", "page")
		s.AddTools(t)
	}
	store := &counter{parts: make(map[string][]byte)}
	opts := &mcphybrid.Options{Cache: store}
	var all []*mcpserver.MCPServer
	for i := range servers {
		s := mcpserver.NewMCPServer("s", "1", mcpserver.WithToolCapabilities(true))
		for j := range tools {
			change(s, j, 0)
		}
		web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true)))
		defer web.Close()
		defer web.CloseClientConnections()
		opts.Servers = append(opts.Servers, mcphybrid.ServerConfig{Name: fmt.Sprint("s", i), URL: web.URL})
		all = append(all, s)
	}
	m := mcphybrid.NewManager(opts)
	defer m.Close()
	must(m.Start(context.Background()))
	time.Sleep(1200 * time.Millisecond)
	store.take()
	size := 0
	for round := 1; round <= rounds; round++ {
		for _, s := range all {
			change(s, round*7%tools, round)
		}
		begin := time.Now()
		size += servers * changed(m, fmt.Sprintf("of round %d. ", round), servers)
		time.Sleep(time.Until(begin.Add(1200 * time.Millisecond)))
	}
	return float64(store.take()) / float64(size)
}

// changed waits until so many tools have the words in their description. It returns the
// bytes of the last one.
func changed(m *mcphybrid.Manager, words string, want int) (size int) {
	for range 3000 {
		n := 0
		for _, t := range append(m.InlineTools(), m.DeferredTools()...) {
			if strings.Contains(t.Description(), words) {
				n++
				size = len(t.Raw())
			}
		}
		if n == want {
			return size
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("the tools have not changed within 30 seconds")
}

// A counter is a store, with parts, that counts the bytes that are written to it.
type counter struct {
	mu      sync.Mutex
	parts   map[string][]byte // "" is the store's own document
	written int
}

func (c *counter) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.written
	c.written = 0
	return n
}

func (c *counter) Load() ([]byte, error)  { return c.Get("") }
func (c *counter) Save(data []byte) error { return c.Put("", data) }

func (c *counter) Get(name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts[name], nil
}

func (c *counter) Put(name string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[name] = data
	c.written += len(data)
	return nil
}

// shortened returns what an engine has of a state beside its opening.
func shortened(state []byte) []byte {
	short, err := openings.New(make(keeper)).Shorten(context.Background(), state)
	must(err)
	return short
}

// A keeper has openings in memory.
type keeper map[string][]byte

func (k keeper) PutOpening(_ context.Context, key string, opening []byte) error {
	k[key] = opening
	return nil
}

func (k keeper) GetOpening(_ context.Context, key string) ([]byte, error) { return k[key], nil }
