package upstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hasCome reports whether a turn has come.
func hasCome(t *turn) bool {
	select {
	case <-t.hasCome():
		return true
	default:
		return false
	}
}

// That a server waits for its turn is known of its error.
func TestIsQueued(t *testing.T) {
	t.Parallel()
	assert.True(t, IsQueued(fmt.Errorf("not ready: %w", errQueued)))
	assert.False(t, IsQueued(errAtWork))
	assert.False(t, IsQueued(nil))
}

// Children start a few at a time, in the order in which they asked; of one package one.
func TestTurns(t *testing.T) {
	t.Parallel()
	turns := NewTurns()
	turns.free = 2
	var all []*turn
	for _, pack := range []string{"npx a", "npx a", "", "", "npx b"} {
		all = append(all, turns.ask(pack))
	}
	come := func() (is []int) {
		for i, turn := range all {
			if hasCome(turn) {
				is = append(is, i)
			}
		}
		return is
	}
	assert.Equal(t, []int{0, 2}, come(), "the second of a package waits, and others go before it")
	all[0].makeRoom()
	all[0].makeRoom() // once more has no effect
	assert.Equal(t, []int{0, 2, 3}, come())
	all[0].end()
	assert.Equal(t, []int{0, 2, 3}, come(), "it had made its room already")
	all[2].end()
	assert.Equal(t, []int{0, 1, 2, 3}, come())
	all[4].hurry()
	assert.Equal(t, []int{0, 1, 2, 3, 4}, come(), "a turn in a hurry is beside the others")
	for _, turn := range all {
		turn.end()
		turn.end()
	}
	assert.Equal(t, 2, turns.free)
	assert.Empty(t, turns.packages)
	assert.Empty(t, turns.waiting)

	first, second := turns.ask("npx a"), turns.ask("npx a")
	second.end() // it gives up
	first.end()
	assert.False(t, hasCome(second))
	assert.Equal(t, 2, turns.free)

	none := (*Turns)(nil).ask("npx a")
	require.NoError(t, none.wait(t.Context(), func() { t.Error("it waits") }))
	assert.True(t, hasCome(none))
	none.hurry()
	none.makeRoom()
	none.end()
}

// A child that takes long to start keeps others waiting for ten seconds, and its own package
// until it ends.
func TestTurnsOfSlowChildren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		turns.free = 1
		slow := turns.ask("npx a")
		same, other := turns.ask("npx a"), turns.ask("npx b")
		begun, waited := time.Now(), false
		require.NoError(t, other.wait(t.Context(), func() { waited = true }))
		assert.True(t, waited)
		assert.Equal(t, maxTurn, time.Since(begun))
		other.end()

		over := errors.New("over")
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { end(over) })
		assert.Equal(t, over, same.wait(ctx, func() {}))
		slow.end()
		require.NoError(t, same.wait(t.Context(), func() { t.Error("it has come") }))
		same.end()
	})
}

// What a launcher launches is its first argument that is no option.
func TestLaunched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command string
		args    []string
		want    string
	}{
		{"npx", []string{"-y", "@x/server", "."}, "npx @x/server"},
		{"/usr/bin/npx", []string{"@x/server", "-v"}, "npx @x/server"},
		{"npx.cmd", []string{"x"}, "npx x"},
		{"uvx", []string{"mcp-server-time"}, "uvx mcp-server-time"},
		{"npx", []string{"-y"}, ""},
		{"npx", nil, ""},
		{"node", []string{"server.js"}, ""},
	} {
		assert.Equal(t, test.want, launched(&config.Server{Command: test.command, Args: test.args}), test.command)
	}
}

// A server whose turn has not come says so, and starts when it comes. A call does not wait for
// it. One that is closed takes no turn.
func TestServersThatWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	turns := NewTurns()
	turns.free = 1
	other := turns.ask("")
	slow := newTestOf(t, Config{Server: child(t, "slow", "plain"), Turns: turns}, config.Limits{})
	start := slow.Begin()
	mcptest.Soon(t, func() bool { return slow.Status().Err == errQueued })
	assert.Equal(t, Connecting, slow.Status().State)

	called := newTestOf(t, Config{Server: child(t, "called", "plain"), Turns: turns}, config.Limits{})
	called.Begin()
	_, err := called.call(t.Context(), "echo")
	assert.NotErrorIs(t, err, ErrDown)
	assert.Equal(t, Ready, called.Status().State)
	assert.NoError(t, called.Status().Err)

	other.end()
	begun := time.Now()
	require.NoError(t, start(t.Context()))
	assert.NoError(t, slow.Status().Err)
	assert.LessOrEqual(t, slow.Status().Took, time.Since(begun), "waiting is no part of the start")
	other = turns.ask("")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := newTestOf(t, Config{Server: child(t, "gone", "plain"), Turns: turns}, config.Limits{Reconnect: -1})
	err = gone.Start(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, errQueued, "it says why it takes long")
	gone.Close()
	other.end()
	slow.Close()
	called.Close()
	assert.Equal(t, 1, turns.free)
}

// Who waits for a call is in a hurry, and who only wants the connection is not.
func TestCallsHurryTheTurn(t *testing.T) {
	t.Parallel()
	turns := NewTurns()
	turns.free = 0
	srv := newTestOf(t, Config{Server: config.Server{Name: "s", Command: "no-such-program"}, Turns: turns}, config.Limits{Reconnect: time.Hour})
	require.True(t, srv.SetCached())
	connected := make(chan error)
	go func() { connected <- srv.Connect(t.Context()) }()
	require.Eventually(t, func() bool { return errors.Is(srv.Status().Err, errQueued) }, 20*time.Second, time.Millisecond)
	srv.Server.mu.Lock()
	turn := srv.turn
	srv.Server.mu.Unlock()
	assert.False(t, hasCome(turn))
	_, err := srv.call(t.Context(), "a")
	assert.ErrorIs(t, err, ErrDown)
	assert.True(t, hasCome(turn))
	assert.ErrorIs(t, <-connected, ErrDown)
}

// A child that only waits makes room for others before its time is over.
func TestChildThatWaitsMakesRoom(t *testing.T) {
	t.Parallel()
	turns := NewTurns()
	turns.free = 1
	srv := newTest(t, config.Server{Name: "s"}, config.Limits{})
	srv.turn = turns.ask("")
	defer srv.turn.end()
	srv.works(srv.turn, true)
	assert.Zero(t, turns.free)
	srv.works(srv.turn, false)
	assert.Equal(t, 1, turns.free)
	assert.False(t, srv.atWork)
	earlier := turns.ask("")
	defer earlier.end()
	srv.works(earlier, true)
	assert.False(t, srv.atWork, "that is another attempt's")
}
