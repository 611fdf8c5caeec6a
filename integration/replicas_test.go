package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A replica is one of several processes of a host that serve the same
// conversations. They share only a bucket with the sessions' states.
type replica struct {
	mgr  *mcphybrid.Manager
	conn *nats.Conn
	kv   jetstream.KeyValue
}

// turn runs one turn of a conversation: it restores the session, works and
// saves it. If another replica has saved in the meantime, it activates its
// active tools in that state too.
func (r *replica) turn(ctx context.Context, conversation string, do func(*mcphybrid.Session)) error {
	s, revision, err := r.load(ctx, conversation)
	if err != nil {
		return err
	}
	s.NextTurn()
	do(s)
	for {
		if revision == 0 {
			_, err = r.kv.Create(ctx, conversation, s.Save())
		} else {
			_, err = r.kv.Update(ctx, conversation, s.Save(), revision)
		}
		if err == nil || !isStale(err) {
			return err
		}
		theirs, newer, err := r.load(ctx, conversation)
		if err != nil {
			return err
		}
		var active []string
		for _, t := range s.ActiveTools() {
			active = append(active, t.Name())
		}
		theirs.ActivateTools(active)
		s, revision = theirs, newer
	}
}

// isStale reports whether a write was refused because the state is newer.
func isStale(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

func (r *replica) load(ctx context.Context, conversation string) (*mcphybrid.Session, uint64, error) {
	entry, err := r.kv.Get(ctx, conversation)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return r.mgr.NewSession(nil), 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	s, gone, err := r.mgr.RestoreSession(entry.Value(), nil)
	if len(gone) > 0 {
		err = fmt.Errorf("gone: %v", gone)
	}
	return s, entry.Revision(), err
}

// newReplicas returns n replicas with equal servers and a real NATS server
// between them, on a free port of the loopback.
func newReplicas(t *testing.T, n int) []*replica {
	t.Helper()
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(10*time.Second))
	var replicas []*replica
	for range n {
		conn, err := nats.Connect(srv.ClientURL())
		require.NoError(t, err)
		js, err := jetstream.New(conn)
		require.NoError(t, err)
		kv, err := js.CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "sessions"})
		require.NoError(t, err)
		mgr := mcphybrid.NewManager(nil)
		for i := range 5 {
			require.NoError(t, mgr.AddTools(fmt.Sprintf("s%d", i), echoes(20)...))
		}
		t.Cleanup(func() { assert.NoError(t, mgr.Close()); closeConn(t, conn) })
		replicas = append(replicas, &replica{mgr, conn, kv})
	}
	return replicas
}

func closeConn(t *testing.T, conn *nats.Conn) {
	closed := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	conn.Close()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection does not close")
	}
}

func echoes(n int) []mcpserver.ServerTool {
	var tools []mcpserver.ServerTool
	for i := range n {
		tools = append(tools, mcpserver.ServerTool{
			Tool: mcp.NewTool(fmt.Sprintf("chore_%02d", i), mcp.WithDescription(fmt.Sprintf("Does chore %d", i)), mcp.WithString("text")),
			Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(r.GetString("text", "")), nil
			},
		})
	}
	return tools
}

// If two replicas serve a conversation in turn, it is sent the bytes that one
// process would send, and no byte ever changes.
func TestReplicasServeOneConversation(t *testing.T) {
	replicas := newReplicas(t, 2)
	random := rand.New(rand.NewPCG(1, 1))
	alone := replicas[0].mgr.NewSession(nil)
	var sections, tools string
	for i := range 60 {
		name := fmt.Sprintf("mcp_s%d__chore_%02d", random.IntN(5), random.IntN(20))
		query := fmt.Sprintf(`{"query":"chore %d","max_results":2}`, random.IntN(20))
		do := func(s *mcphybrid.Session) {
			_, err := s.Call(t.Context(), name, `{"text":"x"}`)
			assert.NoError(t, err)
			_, err = s.Call(t.Context(), mcphybrid.SearchToolName, query)
			assert.NoError(t, err)
		}
		alone.NextTurn()
		do(alone)
		require.NoError(t, replicas[i%2].turn(t.Context(), "one", func(s *mcphybrid.Session) {
			do(s)
			nowSections, nowTools := sent(s)
			assert.True(t, strings.HasPrefix(nowSections, sections))
			assert.True(t, strings.HasPrefix(nowTools, tools))
			sections, tools = nowSections, nowTools
			wantSections, wantTools := sent(alone)
			assert.Equal(t, wantSections, nowSections)
			assert.Equal(t, wantTools, nowTools)
		}))
	}
	assert.Greater(t, len(alone.ActiveTools()), 20)
}

func sent(s *mcphybrid.Session) (sections, tools string) {
	var b strings.Builder
	for _, t := range s.Tools() {
		fmt.Fprintf(&b, "%s %s %s\n", t.Name(), t.Description(), t.InputSchema())
	}
	return s.PromptSections(mcphybrid.PromptFull), b.String()
}

// When several replicas write at once, no activation is lost.
func TestReplicasWriteAtOnce(t *testing.T) {
	replicas := newReplicas(t, 4)
	var want []string
	for round := range 15 {
		var wg sync.WaitGroup
		for i, r := range replicas {
			name := fmt.Sprintf("mcp_s%d__chore_%02d", 2+i%3, round+i/3)
			if !slices.Contains(want, name) {
				want = append(want, name)
			}
			wg.Go(func() {
				assert.NoError(t, r.turn(t.Context(), "shared", func(s *mcphybrid.Session) {
					_, err := s.Call(t.Context(), name, nil)
					assert.NoError(t, err)
				}))
			})
		}
		wg.Wait()
	}
	for _, r := range replicas {
		s, _, err := r.load(t.Context(), "shared")
		require.NoError(t, err)
		var active []string
		for _, t := range s.ActiveTools() {
			active = append(active, t.Name())
		}
		assert.ElementsMatch(t, want, active)
	}
}
