//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid"
)

// A counter is an embedding model that counts what it is asked. Its vectors mean nothing.
type counter struct {
	mu                    sync.Mutex
	calls, texts, queries int
	bytes                 int // of the texts
}

func (c *counter) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.texts += len(texts)
	for _, text := range texts {
		c.bytes += len(text)
		vectors = append(vectors, []float32{1, float32(len(text))})
	}
	return vectors, nil
}

func (c *counter) EmbedQuery(_ context.Context, query string) ([]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries++
	return []float32{1, float32(len(query))}, nil
}

func (c *counter) Model() string   { return "counter" }
func (c *counter) Dimensions() int { return 2 }

func (c *counter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d calls for %d texts of tools, of %d bytes on average, and %d for queries", c.calls, c.texts, c.bytes/max(c.texts, 1), c.queries)
}

// countEmbedding prints how often an embedding model is asked: for all tools, once one has changed, and
// by a turn.
func (p *play) countEmbedding(ctx context.Context) error {
	c, last, more := new(counter), atomic.Int64{}, make(chan struct{}, 1)
	p.mgr = mcphybrid.NewManager(&mcphybrid.Options{Semantic: &mcphybrid.SemanticOptions{Embedder: c, Progress: func(done, _ int) {
		last.Store(int64(done))
		select {
		case more <- struct{}{}:
		default: // it will look
		}
	}}})
	defer p.mgr.Close()
	add := func(first, n int) error {
		return p.mgr.AddTools(fmt.Sprintf("srv%04d", first/perServer), serverTools(first, n)...)
	}
	for i := 0; i < p.tools; i += perServer {
		if err := add(i, min(perServer, p.tools-i)); err != nil {
			return err
		}
	}
	deferred := max(p.tools-mcphybrid.DefaultMaxInline, 0) // the others are not embedded
	for last.Load() < int64(deferred) {
		<-more
	}
	fmt.Printf("%d tools: %v\n", p.tools, c)
	if err := add(p.tools, 1); err != nil {
		return err
	}
	for last.Load() <= int64(deferred) {
		<-more
	}
	fmt.Printf("one more: %v\n", c)
	const turns = 100
	for i := range turns {
		if err := p.turn(ctx, p.mgr.NewSession(nil), i); err != nil {
			return err
		}
	}
	fmt.Printf("%d turns with a search of the model's and one of the host's each: %v\n", turns, c)
	return nil
}
