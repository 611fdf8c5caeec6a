package mcphybrid

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A noticeboard is a server with the resources mem://a and mem://b, and templates below them.
type noticeboard struct {
	*mcpserver.MCPServer
	mu         sync.Mutex
	subscribed map[string]int
	changed    chan struct{}
	sessions   map[string]bool
}

func newNoticeboard() *noticeboard {
	b := &noticeboard{subscribed: make(map[string]int), sessions: make(map[string]bool), changed: make(chan struct{}, 1)}
	hooks := &mcpserver.Hooks{}
	add := func(ctx context.Context, uri string, n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.subscribed[uri] += n
		b.sessions[mcpserver.ClientSessionFromContext(ctx).SessionID()] = true
		select {
		case b.changed <- struct{}{}:
		default:
		}
	}
	hooks.AddBeforeSubscribe(func(ctx context.Context, _ any, r *mcp.SubscribeRequest) { add(ctx, r.Params.URI, 1) })
	hooks.AddBeforeUnsubscribe(func(ctx context.Context, _ any, r *mcp.UnsubscribeRequest) { add(ctx, r.Params.URI, -1) })
	b.MCPServer = mcpserver.NewMCPServer("board", "1", mcpserver.WithResourceCapabilities(true, true), mcpserver.WithHooks(hooks))
	for _, uri := range []string{"mem://a", "mem://b"} {
		b.AddResources(textResource(uri, uri, "text"))
		b.AddResourceTemplates(mcpserver.ServerResourceTemplate{Template: mcp.NewResourceTemplate(uri+"/{part}", "part of "+uri)})
	}
	return b
}

func (b *noticeboard) count(uri string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.subscribed[uri]
}

func (b *noticeboard) update(uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.sessions {
		_ = b.SendNotificationToSpecificClient(id, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
	}
}

func (b *noticeboard) config(name string) ServerConfig {
	return ServerConfig{Name: name, InProcess: b.MCPServer, Protocol: mcp.LATEST_LEGACY_PROTOCOL_VERSION}
}

// Sessions that may read a resource share one subscription to it, and each is told what it may
// read, until it stops, is closed, or the Manager is.
func TestSubscribeResource(t *testing.T) {
	t.Parallel()
	b := newNoticeboard()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{b.config("board")}})
	told, narrow := make(chan string, 9), make(chan string, 9)
	all := m.NewSession(nil)
	few := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"board/mem://b*", "board/mem://a/secret"}}})
	_, err := all.SubscribeResource(t.Context(), "", "mem://a", func(uri string) { told <- uri })
	require.NoError(t, err)
	stop, err := few.SubscribeResource(t.Context(), "board", "mem://a", func(uri string) { narrow <- uri })
	require.NoError(t, err)
	assert.Equal(t, 1, b.count("mem://a"))
	_, err = few.SubscribeResource(t.Context(), "board", "mem://b", nil)
	assert.ErrorIs(t, err, ErrNotPermitted)
	_, err = all.SubscribeResource(t.Context(), "board", "mem://c", nil)
	assert.ErrorIs(t, err, ErrUnknownResource)
	assert.Zero(t, b.count("mem://b"))

	for _, uri := range []string{"mem://b", "mem://a/secret", "mem://a/page", "mem://a"} {
		b.update(uri)
	}
	assert.Equal(t, []string{"mem://a/secret", "mem://a/page", "mem://a"}, []string{<-told, <-told, <-told})
	assert.Equal(t, "mem://a", <-narrow, "it may not read that part")
	assert.Equal(t, "mem://a/page", <-narrow)
	stop()
	stop()
	assert.Equal(t, 1, b.count("mem://a"))
	b.update("mem://a")
	assert.Equal(t, "mem://a", <-told)
	all.Close()
	soon(t, func() bool { return b.count("mem://a") == 0 })
	_, err = all.SubscribeResource(t.Context(), "board", "mem://a", nil)
	assert.ErrorIs(t, err, errSessionClosed)

	left, err := few.SubscribeResource(t.Context(), "board", "mem://a", func(string) {
		assert.NoError(t, m.Close())
		close(told)
	})
	require.NoError(t, err)
	b.update("mem://a")
	for range told {
	}
	left()
	_, err = few.SubscribeResource(t.Context(), "board", "mem://a", nil)
	assert.Error(t, err)
}

// What a session may not read any more it is not told of: here its definition has changed.
func TestSubscriptionEndsWithTheRight(t *testing.T) {
	t.Parallel()
	b := newNoticeboard()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{b.config("board")}, Trust: TrustQuarantine})
	told := make(chan string, 9)
	s := m.NewSession(nil)
	for _, uri := range []string{"mem://a", "mem://b"} {
		_, err := s.SubscribeResource(t.Context(), "", uri, func(uri string) { told <- uri })
		require.NoError(t, err)
	}
	b.AddResources(textResource("mem://a", "another text", "and another description"))
	soon(t, func() bool { _, err := s.ReadResource(t.Context(), "", "mem://a"); return err != nil })
	b.update("mem://a")
	b.update("mem://b")
	assert.Equal(t, "mem://b", <-told)
	assert.Empty(t, told)
}

// A part that is the file of a skill is told of by its URI to sessions that may have the skill.
func TestUpdatesOfSkills(t *testing.T) {
	t.Parallel()
	docs := mcptest.NewSkilled("docs")
	docs.MCPServer = mcpserver.NewMCPServer("docs", "1", mcpserver.WithResourceCapabilities(true, true),
		mcpserver.WithExtensions(map[string]any{"io.modelcontextprotocol/skills": map[string]any{}}))
	docs.AddResources(textResource("skill://merge", "merge", "text"))
	docs.Has("merge", "Merge with care.", "", "a.md", "Alpha")
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{skilledConfig("docs", docs)}})
	told := make(map[bool]chan string)
	for _, may := range []bool{true, false} {
		opts := &SessionOptions{}
		if !may {
			opts.Skills.Deny = []string{"docs/*"}
		}
		s := m.NewSession(opts)
		_, err := s.ReadResource(t.Context(), "docs", "skill://merge/a.md")
		assert.Equal(t, may, err == nil, "%v", err)
		told[may] = make(chan string, 9)
		_, err = s.SubscribeResource(t.Context(), "docs", "skill://merge", func(uri string) { told[may] <- uri })
		require.NoError(t, err)
	}
	docs.SendNotificationToAllClients(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": "skill://merge/a.md"})
	assert.Equal(t, "skill://merge/a.md", <-told[true])
	assert.Equal(t, "skill://merge", <-told[false])
}

// A session has so many subscriptions at most, and a user's session has those of its own
// server: the same URI of the system's is another resource.
func TestSubscriptionsOfASession(t *testing.T) {
	t.Parallel()
	system, own := newNoticeboard(), newNoticeboard()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{system.config("board")}})
	u, err := m.NewUser("ada", &UserOptions{Servers: []ServerConfig{own.config("board")}})
	require.NoError(t, err)
	require.NoError(t, u.Start(t.Context()))
	s := u.NewSession(nil)
	told := make(chan string, 9)
	_, err = s.SubscribeResource(t.Context(), "board", "mem://a", func(uri string) { told <- "own " + uri })
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1}, []int{system.count("mem://a"), own.count("mem://a")})
	system.update("mem://a")
	own.update("mem://a")
	assert.Equal(t, "own mem://a", <-told)
	for i := 1; i < maxSubscribed; i++ {
		_, err = s.SubscribeResource(t.Context(), "board", fmt.Sprint("mem://a/", i), func(string) {})
		require.NoError(t, err)
	}
	_, err = s.SubscribeResource(t.Context(), "board", "mem://b", func(string) {})
	assert.ErrorContains(t, err, "limit of 100")
	s.Close()
	soon(t, func() bool { return own.count("mem://a") == 0 && own.count("mem://a/99") == 0 })
}

// Sessions that subscribe, stop and close at once leave nothing behind.
func TestSubscribeWhileClosing(t *testing.T) {
	t.Parallel()
	b := newNoticeboard()
	m, _ := newTestManager(t, &Options{Servers: []ServerConfig{b.config("board")}})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 5 {
				s := m.NewSession(nil)
				var inner sync.WaitGroup
				inner.Go(func() {
					stop, err := s.SubscribeResource(t.Context(), "", "mem://a", func(string) {})
					if err == nil && i%2 == 0 {
						stop()
					}
				})
				inner.Go(s.Close)
				inner.Wait()
			}
		})
	}
	wg.Wait()
	soon(t, func() bool { return b.count("mem://a") == 0 })
}
