// Package replicas has the tests of replicas of a host that share a store: each is a Manager, with
// connections of its own.
package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Store is what replicas share.
type Store interface {
	Sessions() store.Sessions
	Document(name string) store.Watched
	Parts() store.Parts
}

// Run runs all tests. open opens an empty store, or opens that of the same test again, as another
// process does.
func Run(t *testing.T, open func(t *testing.T, test string) Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T) Store)
	}{{"Changes", changes}, {"AtOnce", atOnce}, {"LongResults", longResults}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, func(t *testing.T) Store { return open(t, test.name) })
		})
	}
}

// A replica is one process of a host: a Manager over a connection of its own.
type replica struct {
	*mcphybrid.Manager
	user     *mcphybrid.User // that has a server, or nil
	sessions store.Sessions
}

// begin begins a replica with a server, and perhaps one of a user.
func begin(t *testing.T, s Store, cfg mcphybrid.ServerConfig, own ...mcphybrid.ServerConfig) *replica {
	cache, trust := s.Document("cache"), s.Document("trust")
	m := mcphybrid.NewManager(&mcphybrid.Options{
		Cache: cache, TrustStore: trust, Trust: mcphybrid.TrustApprove, StateParts: s.Parts(), Usage: &mcphybrid.UsageOptions{Store: s.Document("usage")},
		Inline: mcphybrid.InlineOptions{Max: 3}, Servers: []mcphybrid.ServerConfig{cfg},
	})
	require.NoError(t, m.Start(t.Context()))
	refresh := map[store.Watched]func() error{cache: m.Refresh, trust: m.Refresh}
	r := &replica{Manager: m, sessions: s.Sessions()}
	if own != nil {
		cache, trust := s.Document("cache of ann"), s.Document("trust of ann")
		var err error
		r.user, err = m.NewUser("ann", &mcphybrid.UserOptions{Servers: own, Cache: cache, TrustStore: trust})
		require.NoError(t, err)
		require.NoError(t, r.user.Start(t.Context()))
		refresh[cache], refresh[trust] = r.user.Refresh, r.user.Refresh
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for d, refresh := range refresh {
		watching.Go(func() { _ = d.Watch(ctx, func() { assert.NoError(t, refresh()) }) })
	}
	t.Cleanup(func() {
		cancel()
		watching.Wait()
		require.NoError(t, m.Close())
	})
	return r
}

func (r *replica) names() (names []string) {
	for _, t := range r.InlineTools() {
		names = append(names, t.Name())
	}
	for _, t := range r.DeferredTools() {
		names = append(names, t.Name())
	}
	return names
}

func held(problems []error) (held []*mcphybrid.ChangedError) {
	for _, err := range problems {
		if c := new(mcphybrid.ChangedError); errors.As(err, &c) && c.Quarantined {
			held = append(held, c)
		}
	}
	return held
}

// web serves the tools of srv over HTTP.
func web(t *testing.T, srv *mcpserver.MCPServer) mcphybrid.ServerConfig {
	h := mcpserver.NewStreamableHTTPServer(srv, mcpserver.WithStateful(true))
	return mcphybrid.ServerConfig{Name: "web", URL: mcptest.ServeHTTP(t, http.Handler(h), "127.0.0.1:0")}
}

// everywhere asserts that a condition holds for all replicas within a second, and returns
// after how long.
func everywhere(t *testing.T, replicas []*replica, condition func(r *replica) bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for _, r := range replicas {
		require.Eventually(t, func() bool { return condition(r) }, time.Second-time.Since(begun), time.Millisecond)
	}
	return time.Since(begun)
}

// changes asserts that what a server announces to one replica, and what a person accepts on
// one, reaches all within a second, whether they are connected to the server or not, and that
// of a user's server too.
func changes(t *testing.T, open func(t *testing.T) Store) {
	srv, private := mcptest.Server("web", mcptest.Chores("web", 5)...), mcptest.Server("own", mcptest.Chores("own", 3)...)
	cfg, own := web(t, srv), web(t, private)
	replicas := []*replica{begin(t, open(t), cfg, own)}
	require.Equal(t, mcphybrid.StateReady, replicas[0].Servers()[0].State)
	stored := func(name string) bool { data, err := open(t).Document(name).Load(); return err == nil && data != nil }
	mcptest.Soon(t, func() bool { return stored("cache") && stored("cache of ann") })
	for range 3 {
		replicas = append(replicas, begin(t, open(t), cfg, own))
	}
	_, err := replicas[1].Call(t.Context(), "mcp_web__tool_001", nil)
	require.NoError(t, err)
	require.Equal(t, mcphybrid.StateCached, replicas[2].Servers()[0].State)
	require.Equal(t, mcphybrid.StateCached, replicas[2].user.Servers()[0].State)

	for round := range 3 {
		<-time.After(1100 * time.Millisecond) // a replica saves at once, but once a second
		name := fmt.Sprintf("new_%d", round)
		srv.AddTools(mcptest.Echo(name, "Does something new"))
		private.AddTools(mcptest.Echo(name, "Does something new for ann"))
		mcptest.Soon(t, func() bool { // which is for the servers and mcp-go
			return len(held(replicas[0].Problems())) == 1 && len(held(replicas[0].user.Problems())) == 1
		})
		listed := everywhere(t, replicas, func(r *replica) bool { return len(held(r.Problems())) == 1 && len(held(r.user.Problems())) == 1 })
		by := replicas[round%len(replicas)]
		change, theirs := held(by.Problems())[0], held(by.user.Problems())[0]
		require.Equal(t, []string{name, name}, []string{change.Tool, theirs.Tool})
		require.NoError(t, by.Accept("web", name, change.Is))
		require.NoError(t, by.user.Accept("web", name, theirs.Is))
		accepted := everywhere(t, replicas, func(r *replica) bool {
			return len(held(r.Problems())) == 0 && len(r.names()) == 6+round && len(held(r.user.Problems())) == 0
		})
		t.Logf("listed everywhere after %v, accepted after %v", listed, accepted)
	}
	assert.Equal(t, mcphybrid.StateCached, replicas[2].Servers()[0].State, "it need not be connected for that")
}

// longResults asserts that a replica reads on in a result that another one got.
func longResults(t *testing.T, open func(t *testing.T) Store) {
	srv := mcptest.Server("web", mcpserver.ServerTool{
		Tool: mcp.NewTool("write"),
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(strings.Repeat("a line of a long text\n", 100_000)), nil
		},
	})
	cfg := web(t, srv)
	first, other := begin(t, open(t), cfg), begin(t, open(t), cfg)
	sess := first.NewSession(nil)
	_, err := sess.Call(t.Context(), "mcp_web__write", nil)
	require.NoError(t, err)
	_, err = first.sessions.Put(t.Context(), "x", sess.Save(), 0)
	require.NoError(t, err)
	state, _, err := other.sessions.Get(t.Context(), "x")
	require.NoError(t, err)
	assert.Less(t, len(state), 5000)
	sess, _, err = other.RestoreSession(state, nil)
	require.NoError(t, err)
	result, err := sess.Call(t.Context(), mcphybrid.PageToolName, `{"id":"r1","offset":1100000}`)
	require.NoError(t, err)
	require.False(t, result.IsError)
	assert.Contains(t, mcp.GetTextFromContent(result.Content[0]), "a line of a long text")
}

// talk is what a host keeps of a conversation.
type talk struct {
	Messages []string        `json:"messages"`
	Session  json.RawMessage `json:"session,omitempty"`
	Sections string          `json:"sections"`
	Tools    string          `json:"tools"`
}

// turn has one replica answer one message of a conversation.
func (r *replica) turn(ctx context.Context, id, message string) error {
	state, revision, err := r.sessions.Get(ctx, id)
	var now talk
	var sess *mcphybrid.Session
	if errors.Is(err, store.ErrNotFound) {
		sess, err = r.NewSession(nil), nil
	} else if err == nil {
		if err = json.Unmarshal(state, &now); err == nil {
			sess, _, err = r.RestoreSession(now.Session, nil)
		}
	}
	if err != nil {
		return err
	}
	defer sess.Close()
	tool := fmt.Sprintf("mcp_web__tool_%03d", len(now.Messages)%20)
	result, err := sess.Call(ctx, tool, map[string]any{"text": message})
	if err != nil {
		return err
	}
	now.Messages = append(now.Messages, message+" "+mcp.GetTextFromContent(result.Content[0]))
	var sent strings.Builder
	for _, tool := range sess.Tools() {
		fmt.Fprintf(&sent, "%s %s\n", tool.Name(), tool.Description())
	}
	sections := sess.PromptSections(mcphybrid.PromptFull)
	if !strings.HasPrefix(sections, now.Sections) || !strings.HasPrefix(sent.String(), now.Tools) {
		return errors.New("what was sent has changed")
	}
	now.Sections, now.Tools, now.Session = sections, sent.String(), sess.Save()
	if state, err = json.Marshal(now); err != nil {
		return err
	}
	_, err = r.sessions.Put(ctx, id, state, revision)
	return err
}

// atOnce has several replicas answer the same conversations at once. Of two, one is told, and
// answers again: each message is answered once, in the conversation that it is of.
func atOnce(t *testing.T, open func(t *testing.T) Store) {
	cfg := web(t, mcptest.Server("web", mcptest.Chores("web", 20)...))
	var replicas []*replica
	for range 3 {
		replicas = append(replicas, begin(t, open(t), cfg))
	}
	const conversations, messages = 5, 12
	var told atomic.Int64
	var wg sync.WaitGroup
	for i, r := range replicas {
		for c := range conversations {
			wg.Go(func() {
				for n := range messages {
					for {
						err := r.turn(t.Context(), fmt.Sprint("conversation ", c), fmt.Sprintf("%d.%d.%d;", c, i, n))
						if err == nil {
							break
						}
						if !assert.ErrorIs(t, err, store.ErrConflict) {
							return
						}
						told.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	for c := range conversations {
		state, _, err := replicas[0].sessions.Get(t.Context(), fmt.Sprint("conversation ", c))
		require.NoError(t, err)
		var now talk
		require.NoError(t, json.Unmarshal(state, &now))
		require.Len(t, now.Messages, len(replicas)*messages)
		next := make([]int, len(replicas))
		for _, m := range now.Messages {
			var of, i, n int
			_, err := fmt.Sscanf(m, "%d.%d.%d;", &of, &i, &n)
			require.NoError(t, err)
			require.Equal(t, []int{c, next[i]}, []int{of, n}, "%s", m)
			require.Contains(t, m, fmt.Sprintf(`{"text":"%d.%d.%d;"}`, of, i, n), "the answer to this message")
			next[i]++
		}
	}
	t.Logf("%d turns, of which %d were done again", conversations*messages*len(replicas), told.Load())
}
