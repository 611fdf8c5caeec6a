package gosdk

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcphybrid/mcphybrid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client that is connected again and again keeps one middleware, and nothing of the
// sessions that a Manager no longer has.
func TestOneFollower(t *testing.T) {
	t.Parallel()
	impl := &sdk.Implementation{Name: "test", Version: "1"}
	client := sdk.NewClient(impl, nil)
	m := mcphybrid.NewManager(nil)
	defer m.Close()
	listening := func() int {
		f := follow(client)
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.sources)
	}
	for i := range 5 {
		here, there := sdk.NewInMemoryTransports()
		server := sdk.NewServer(impl, nil)
		_, err := server.Connect(t.Context(), there, nil)
		require.NoError(t, err)
		session, err := client.Connect(t.Context(), here, nil)
		require.NoError(t, err)
		name := fmt.Sprintf("s%d", i)
		require.NoError(t, AddSession(t.Context(), m, mcphybrid.ServerConfig{Name: name}, client, session))
		assert.Equal(t, 1, listening())
		require.True(t, m.RemoveServer(name))
		assert.Eventually(t, func() bool { return listening() == 0 }, 10*time.Second, time.Millisecond)
		require.NoError(t, session.Close())
	}
	f, _ := followers.Load(weak.Make(client))
	assert.Same(t, follow(client), f)
}

// Progress leaves room for a change of a list, and no listener holds up a client.
func TestProgressLeavesRoom(t *testing.T) {
	t.Parallel()
	l := &full{notifications: make(chan mcp.JSONRPCNotification, 10)}
	s := &source{follower: &follower{sources: make(map[*source]bool)}, listeners: map[string]listener{"l": l}, reported: map[string]reported{"own": {l, "1"}}}
	for range 100 {
		assert.True(t, s.progress(&sdk.ProgressNotificationParams{ProgressToken: "own"}))
	}
	assert.Len(t, l.notifications, 5)
	for range 100 {
		s.changed(mcp.MethodNotificationToolsListChanged)
	}
	assert.Len(t, l.notifications, 10)
	assert.False(t, s.progress(&sdk.ProgressNotificationParams{ProgressToken: "other"}))
	assert.False(t, s.progress(&sdk.ProgressNotificationParams{ProgressToken: 1.0}))
}

// full is a listener that reads nothing.
type full struct {
	listener
	notifications chan mcp.JSONRPCNotification
}

func (f *full) NotificationChannel() chan<- mcp.JSONRPCNotification { return f.notifications }

func TestObjectSchema(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`null`: `null`, `true`: `true`, `{}`: `{"type":"object"}`, `{"type":"object","b":1,"a":1}`: `{"type":"object","b":1,"a":1}`,
	} {
		assert.Equal(t, want, string(objectSchema(json.RawMessage(in))), in)
	}
}

func TestMessagesOfNoUse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"x","method":"none"}`: `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"gosdk: there is no method \"none\""}}`,
		`{"jsonrpc":"2.0","method":"none"}`:          `null`,
	} {
		out, err := json.Marshal(new(source).HandleMessage(t.Context(), json.RawMessage(in)))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(out))
	}
}
