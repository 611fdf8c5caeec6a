package mcphybrid

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Code reads whole results, activates nothing, and is refused as the model is.
func TestCallFromCode(t *testing.T) {
	t.Parallel()
	var seen []bool
	var told []Event
	m, _ := newTestManager(t, &Options{
		Inline: InlineOptions{Max: -1}, MaxResult: 100,
		Middleware: []Middleware{func(next Handler) Handler {
			return func(ctx context.Context, c ToolCall) (*mcp.CallToolResult, error) {
				seen = append(seen, c.FromCode)
				return next(ctx, c)
			}
		}},
		OnEvent: func(e Event) { told = append(told, e) },
	})
	calls := 0
	long := mcpserver.ServerTool{Tool: mcp.NewTool("long"), Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strings.Repeat("x", 1000)), nil
	}}
	require.NoError(t, m.AddTools("github", trackerTool(&calls), echoTool("delete_issue", "Deletes an issue"), long))
	s := m.NewSession(&SessionOptions{Access: Access{Deny: []string{"*__delete_*"}}})

	res, err := s.CallFromCode(t.Context(), "mcp_github__long", nil)
	require.NoError(t, err)
	assert.Len(t, mcp.GetTextFromContent(res.Content[0]), 1000)
	assert.Empty(t, s.ActiveTools())
	assert.Equal(t, []bool{true}, seen)
	assert.Nil(t, s.metaNamed(s.view(), PageToolName), "there is nothing to read on")

	for name, want := range map[string]error{
		"mcp_github__create_issue": ErrBadArguments, "mcp_github__delete_issue": ErrNotPermitted, "mcp_github__none": ErrUnknownTool, SearchToolName: ErrUnknownTool,
	} {
		told = nil
		res, err := s.CallFromCode(t.Context(), name, `{"labels": 1}`)
		require.ErrorIs(t, err, want, name)
		assert.True(t, res.IsError)
		require.Len(t, told, 1)
		assert.True(t, told[0].FromCode && errors.Is(told[0].Err, want))
	}
	assert.Zero(t, calls)
	assert.Equal(t, 5, s.Stats().Usage.Calls)

	_, err = s.Call(t.Context(), "mcp_github__long", nil)
	require.NoError(t, err)
	assert.Equal(t, []bool{true, false}, seen)
	assert.Len(t, s.ActiveTools(), 1)
}

// A Go tool finds the session whose call it answers, and calls for its code do not count
// towards its own time.
func TestSessionFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := newTestManager(t, &Options{Limits: config.Limits{CallTimeout: time.Minute}})
		sleep := mcpserver.ServerTool{Tool: mcp.NewTool("sleep"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case <-time.After(50 * time.Second):
				return mcp.NewToolResultText("slept"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		var of *Session
		twice := mcpserver.ServerTool{Tool: mcp.NewTool("twice"), Handler: func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			of = SessionFrom(ctx)
			for range 2 {
				if res, err := of.CallFromCode(ctx, "mcp_clock__sleep", nil); err != nil {
					return res, err
				}
			}
			return mcp.NewToolResultText("slept twice"), ctx.Err()
		}}
		require.NoError(t, m.AddTools("clock", sleep, twice))
		s := m.NewSession(nil)
		res, err := s.Call(t.Context(), "mcp_clock__twice", nil)
		require.NoError(t, err)
		assert.Equal(t, "slept twice", mcp.GetTextFromContent(res.Content[0]))
		assert.Same(t, s, of)
		assert.Nil(t, SessionFrom(t.Context()))
	})
}
