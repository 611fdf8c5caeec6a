package gosdk_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/adapters/gosdk"
	"github.com/mcphybrid/mcphybrid/adapters/internal/adaptertest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client goes through the conversation with a list of tools that never changes, and is
// not told that it did.
func TestByBridge(t *testing.T) {
	t.Parallel()
	var told atomic.Int32
	adaptertest.Run(t, adaptertest.Runtime{Disclosure: mcphybrid.ByBridge, Begin: func(t *testing.T, url string, s *mcphybrid.Session, before adaptertest.Host) adaptertest.Host {
		server, err := gosdk.NewServer(s, impl, nil)
		require.NoError(t, err)
		_, session := join(t, server, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told.Add(1) }})
		c := &client{url: url, session: session, system: adaptertest.System + session.InitializeResult().Instructions}
		if before != nil {
			c.messages = before.(*client).messages
		}
		return c
	}})
	assert.Zero(t, told.Load())
}
