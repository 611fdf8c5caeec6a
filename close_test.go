package mcphybrid

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
)

// What can't be read at the start, or stored at the end, is in the log, and what can is not.
func TestLogOfRecordsThatFail(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for _, of := range []struct {
		name       string
		start, end error
		told       []string
	}{
		{name: "nothing fails"},
		{"all the time", full, full, []string{
			`"mcphybrid: loading the record of use failed" error="the disk is full"`,
			`"mcphybrid: loading what was learned failed" error="the disk is full"`,
			`"mcphybrid: storing what was learned failed" error="what was learned: the disk is full"`,
		}},
		{"in the end", nil, full, []string{
			`"mcphybrid: storing the record of use failed" error="the disk is full"`,
			`"mcphybrid: storing what was learned failed" error="what was learned: the disk is full"`,
		}},
	} {
		var log mcptest.Log
		uses, learned := &mcptest.Store{Err: of.start}, &mcptest.Store{Err: of.start}
		m := NewManager(&Options{Usage: &UsageOptions{Store: uses}, Learn: &LearnOptions{Store: learned}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), Servers: []ServerConfig{inProcess("a", 1)}})
		require.NoError(t, m.Start(t.Context()))
		_, err := m.Call(t.Context(), "mcp_a__tool_000", nil)
		require.NoError(t, err)
		uses.Err, learned.Err = of.end, of.end
		require.NoError(t, m.Close())
		var told []string
		for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
			if _, message, ok := strings.Cut(line, " msg="); ok {
				told = append(told, message)
			}
		}
		assert.Equal(t, of.told, told, of.name)
	}
}

// A user who leaves takes nothing from the others: not the system's skills and tools, nor names.
func TestUserWhoLeaves(t *testing.T) {
	t.Parallel()
	m, _ := newTestManager(t, &Options{Skills: []Skill{{Name: "plan", Description: "How to plan.", Body: "Plan it."}}, Servers: []ServerConfig{inProcess("a", 1)}})
	ann, bob := newUser(t, m, "ann", nil, echoTool("run", "")), newUser(t, m, "bob", nil, echoTool("run", ""))
	of := map[string]*Session{"the system's": m.NewSession(nil), "bob's": bob.NewSession(nil)}
	before := make(map[string][]string)
	for whose, s := range of {
		before[whose] = toolNames(s.Tools())
	}
	require.NoError(t, ann.Close())
	assert.Empty(t, ann.NewSession(nil).Tools())
	for whose, s := range of {
		assert.Equal(t, before[whose], toolNames(s.Tools()), whose)
		r, err := s.Call(t.Context(), SkillLoadToolName, `{"name":"plan"}`)
		require.NoError(t, err)
		assert.Equal(t, "Skill plan.\n\nPlan it.", resultText(t, r), whose)
		_, err = s.Call(t.Context(), "mcp_a__tool_000", nil)
		require.NoError(t, err, whose)
	}
	_, err := of["bob's"].Call(t.Context(), "mcp_own__run", nil)
	assert.NoError(t, err)
}
