package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A SessionsSubject describes the sessions to test. The tests own them: nothing else may
// use them at the same time.
type SessionsSubject struct {
	// Open opens the engine with its current content, as another process does.
	// RunSessions calls it several times.
	Open func(t *testing.T) store.Sessions

	// Expiring opens other sessions, without any at first, which expire after some time
	// of at least a second.
	Expiring func(t *testing.T, after time.Duration) store.Sessions

	// Broken opens sessions whose engine can't be reached.
	Broken func(t *testing.T) store.Sessions

	// Stored returns how many bytes the engine has of one session, without what it has once for
	// several. If nil, it may keep states whole.
	Stored func(t *testing.T, id string) int
}

// RunSessions runs all tests, each with ids of its own.
func RunSessions(t *testing.T, s SessionsSubject) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, r *conversation)
	}{
		{"Put", putSession}, {"Conflict", conflict}, {"Again", again}, {"Delete", deleteSession}, {"States", states}, {"IDs", sessionIDs},
		{"List", list}, {"OneWins", oneWins}, {"NothingLost", nothingLost}, {"Context", sessionContexts}, {"Openings", openings},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, &conversation{s, s.Open(t), fmt.Sprintf("%s %d", test.name, rand.Uint64())})
		})
	}
	t.Run("Expiry", func(t *testing.T) { expiry(t, s.Expiring(t, 2*time.Second)) })
	t.Run("Broken", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		eachFails(t, ctx, s.Broken(t), "x")
	})
}

// A conversation is one running test and its id.
type conversation struct {
	SessionsSubject
	sessions store.Sessions
	id       string
}

// put stores a state, which must work.
func (c *conversation) put(t *testing.T, state string, revision uint64) uint64 {
	t.Helper()
	next, err := c.sessions.Put(t.Context(), c.id, []byte(state), revision)
	require.NoError(t, err)
	require.Positive(t, next)
	return next
}

// has asserts what another process gets.
func (c *conversation) has(t *testing.T, state string, revision uint64) {
	t.Helper()
	got, now, err := c.Open(t).Get(t.Context(), c.id)
	require.NoError(t, err)
	require.Equal(t, state, string(got))
	require.Equal(t, revision, now)
}

func (c *conversation) hasNone(t *testing.T) {
	t.Helper()
	got, revision, err := c.Open(t).Get(t.Context(), c.id)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, got)
	require.Zero(t, revision)
}

// conflicts asserts that a Put is refused.
func (c *conversation) conflicts(t *testing.T, state string, revision uint64) {
	t.Helper()
	next, err := c.sessions.Put(t.Context(), c.id, []byte(state), revision)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, strconv.Quote(c.id))
	require.Zero(t, next)
}

func putSession(t *testing.T, c *conversation) {
	c.hasNone(t)
	first := c.put(t, "one", 0)
	c.has(t, "one", first)
	second := c.put(t, "two", first)
	assert.NotEqual(t, first, second)
	c.has(t, "two", second)
	c.has(t, "two", second)
}

func conflict(t *testing.T, c *conversation) {
	c.conflicts(t, "none is there", 17)
	first := c.put(t, "one", 0)
	c.conflicts(t, "other", 0)
	c.conflicts(t, "other", first+1000)
	second := c.put(t, "two", first)
	c.conflicts(t, "other", first)
	c.conflicts(t, "one", first)
	c.has(t, "two", second)
}

// Who does not know whether a Put has worked may repeat it.
func again(t *testing.T, c *conversation) {
	first := c.put(t, "one", 0)
	assert.Equal(t, first, c.put(t, "one", 0))
	second := c.put(t, "two", first)
	assert.Equal(t, second, c.put(t, "two", first))
	c.has(t, "two", second)
	third := c.put(t, "two", second) // nothing has changed, or it is put once more
	c.has(t, "two", third)
	c.conflicts(t, "three", first)
}

func deleteSession(t *testing.T, c *conversation) {
	del := func(revision uint64) error { return c.sessions.Delete(t.Context(), c.id, revision) }
	require.NoError(t, del(0))
	require.NoError(t, del(17))
	first := c.put(t, "one", 0)
	second := c.put(t, "two", first)
	require.ErrorIs(t, del(first), store.ErrConflict)
	c.has(t, "two", second)
	require.NoError(t, del(second))
	c.hasNone(t)
	require.NoError(t, del(second))
	c.conflicts(t, "three", second)
	third := c.put(t, "two", 0)
	assert.NotContains(t, []uint64{first, second}, third, "a revision names one state")
	require.ErrorIs(t, del(second), store.ErrConflict)
	require.NoError(t, del(0))
	c.hasNone(t)
}

// A state is any bytes.
func states(t *testing.T, c *conversation) {
	random := make([]byte, 300<<10)
	chacha := rand.NewChaCha8([32]byte{1})
	_, _ = chacha.Read(random)
	revision := uint64(0)
	for _, state := range []string{
		"", "\x00", "\xff\xfe", "\x1f\x8b", "\x1f\x8b" + strings.Repeat("x", 5000), `{"v":"ü \u0000"}`, string(random),
		strings.Repeat(`{"name":"tool","description":"does it"},`, 100_000),
	} {
		revision = c.put(t, state, revision)
		c.has(t, state, revision)
	}
	_, err := c.sessions.Put(t.Context(), c.id, make([]byte, store.MaxState+1), revision)
	require.ErrorIs(t, err, store.ErrTooLarge)
	_, now, err := c.sessions.Get(t.Context(), c.id)
	require.NoError(t, err)
	assert.Equal(t, revision, now)
}

func sessionIDs(t *testing.T, c *conversation) {
	for _, id := range []string{"", "\x00", "a\x00b", "\xff", strings.Repeat("x", store.MaxID+1)} {
		eachFails(t, t.Context(), c.sessions, id)
	}
	valid := []string{" ", ".", "..", "*", ">", "a.b", "a/b", "A.B", "a.>", "%", "'; drop table", "日本語", strings.Repeat("ü", store.MaxID/2)}
	for i, id := range valid {
		c.id = id
		require.NoError(t, c.sessions.Delete(t.Context(), id, 0))
		c.put(t, strconv.Itoa(i), 0)
	}
	listed := c.list(t)
	for i, id := range valid {
		state, _, err := c.sessions.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(i), string(state))
		assert.Equal(t, 1, listed[id])
		require.NoError(t, c.sessions.Delete(t.Context(), id, 0))
	}
	listed = c.list(t)
	for _, id := range valid {
		assert.Zero(t, listed[id])
	}
}

// list returns how often each id is listed.
func (c *conversation) list(t *testing.T) map[string]int {
	times := make(map[string]int)
	for id, err := range c.Open(t).List(t.Context()) {
		require.NoError(t, err)
		times[id]++
	}
	return times
}

func list(t *testing.T, c *conversation) {
	id := c.id
	for i := range 300 {
		c.id = fmt.Sprint(id, i)
		c.put(t, "x", c.put(t, "y", 0))
	}
	listed := c.list(t)
	for i := range 300 {
		assert.Equal(t, 1, listed[fmt.Sprint(id, i)])
	}
	n := 0
	for _, err := range c.sessions.List(t.Context()) {
		require.NoError(t, err)
		if n++; n == 10 {
			break
		}
	}
	assert.Equal(t, 10, n)
	for i := range 300 {
		require.NoError(t, c.sessions.Delete(t.Context(), fmt.Sprint(id, i), 0))
	}
}

// Of several that answer one conversation at once, one puts its state, and all others
// are told.
func oneWins(t *testing.T, c *conversation) {
	const n = 8
	var opened []store.Sessions
	for range n {
		opened = append(opened, c.Open(t))
	}
	revision := uint64(0)
	for round := range 20 {
		var won, told atomic.Int64
		var wg sync.WaitGroup
		var next atomic.Uint64
		for i, sessions := range opened {
			wg.Go(func() {
				switch now, err := sessions.Put(t.Context(), c.id, fmt.Appendf(nil, "round %d of %d", round, i), revision); {
				case err == nil:
					won.Add(1)
					next.Store(now)
				case assert.ErrorIs(t, err, store.ErrConflict):
					told.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, []int64{1, n - 1}, []int64{won.Load(), told.Load()})
		revision = next.Load()
	}
}

// Who is told does its turn again on what the other one left: no turn is lost.
func nothingLost(t *testing.T, c *conversation) {
	const n, turns = 4, 25
	var conflicts atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		sessions := c.Open(t)
		wg.Go(func() {
			for turn := range turns {
				for {
					state, revision, err := sessions.Get(t.Context(), c.id)
					if err != nil && !assert.ErrorIs(t, err, store.ErrNotFound) {
						return
					}
					_, err = sessions.Put(t.Context(), c.id, fmt.Appendf(state, "%d.%d,", i, turn), revision)
					if err == nil {
						break
					}
					if !assert.ErrorIs(t, err, store.ErrConflict) {
						return
					}
					conflicts.Add(1)
				}
			}
		})
	}
	wg.Wait()
	state, _, err := c.sessions.Get(t.Context(), c.id)
	require.NoError(t, err)
	next := make([]int, n)
	for _, turn := range strings.Split(strings.TrimSuffix(string(state), ","), ",") {
		var i, of int
		_, err := fmt.Sscanf(turn, "%d.%d", &i, &of)
		require.NoError(t, err)
		require.Equal(t, next[i], of, "of %d in %s", i, state)
		next[i]++
	}
	for i := range n {
		assert.Equal(t, turns, next[i])
	}
	t.Logf("%d conflicts in %d turns", conflicts.Load(), n*turns)
}

// Conversations that began alike have most of their states in common. Several processes put them at once, others read
// each byte, and what is in common an engine may keep once.
func openings(t *testing.T, c *conversation) {
	began := fmt.Sprintf(`{"tools":[{"name":%q,"definition":%q}],"shown":[{"kind":"inline","tool":1}]}`, c.id, strings.Repeat(`{"x":"\"}]`, 6_000))
	state := func(id string, turn int) string {
		return fmt.Sprintf(`{"version":5,"catalog":%q,"turn":%d,"opening":%q,"first":1,"began":%s}`, id, turn, store.KeyOf([]byte(began)), began)
	}
	document := func(id string, turn int) string { // as a host may have it beside messages
		return fmt.Sprintf(`{"messages":[{"role":"user","content":"of \"began\":{"}],"state":%s,"title":"x"}`, state(id, turn))
	}
	const replicas, turns = 4, 3
	var wg sync.WaitGroup
	for i := range replicas {
		sessions := c.Open(t)
		wg.Go(func() {
			for _, form := range []func(string, int) string{state, document} {
				id := fmt.Sprintf("%s %d %d", c.id, i, len(form("", 0)))
				revision := uint64(0)
				for turn := range turns {
					next, err := sessions.Put(t.Context(), id, []byte(form(id, turn)), revision)
					if !assert.NoError(t, err) {
						return
					}
					again, err := sessions.Put(t.Context(), id, []byte(form(id, turn)), revision)
					assert.NoError(t, err)
					assert.Equal(t, next, again)
					revision = next
				}
			}
		})
	}
	wg.Wait()
	for i := range replicas {
		for _, form := range []func(string, int) string{state, document} {
			id := fmt.Sprintf("%s %d %d", c.id, i, len(form("", 0)))
			got, revision, err := c.Open(t).Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, form(id, turns-1), string(got))
			if c.Stored != nil {
				assert.Less(t, c.Stored(t, id), 1<<10, "of %d bytes", len(got))
			}
			require.NoError(t, c.sessions.Delete(t.Context(), id, revision))
		}
	}
}

// eachFails asserts that each method fails soon, and nothing is put.
func eachFails(t *testing.T, ctx context.Context, sessions store.Sessions, id string) {
	begun := time.Now()
	_, _, err := sessions.Get(ctx, id)
	assert.Error(t, err)
	assert.NotErrorIs(t, err, store.ErrNotFound)
	_, err = sessions.Put(ctx, id, []byte("x"), 0)
	assert.Error(t, err)
	assert.NotErrorIs(t, err, store.ErrConflict)
	assert.Error(t, sessions.Delete(ctx, id, 0))
	assert.Less(t, time.Since(begun), 30*time.Second)
}

func sessionContexts(t *testing.T, c *conversation) {
	first := c.put(t, "one", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := c.sessions.Get(ctx, c.id)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = c.sessions.Put(ctx, c.id, []byte("two"), first)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, c.sessions.Delete(ctx, c.id, first), context.Canceled)
	n := 0
	for _, err := range c.sessions.List(ctx) {
		assert.ErrorIs(t, err, context.Canceled)
		n++
	}
	assert.Equal(t, 1, n)
	c.has(t, "one", first)
}

// What is not put for a while expires.
func expiry(t *testing.T, sessions store.Sessions) {
	put := func(id, state string, revision uint64) uint64 {
		next, err := sessions.Put(t.Context(), id, []byte(state), revision)
		assert.NoError(t, err) // not in the test's goroutine
		return next
	}
	const idle, busy = "idle", "busy"
	left, used := put(idle, "one", 0), put(busy, "0", 0)
	n := 0
	require.Eventually(t, func() bool {
		n++
		used = put(busy, strconv.Itoa(n), used) // which keeps it
		_, revision, err := sessions.Get(t.Context(), idle)
		return err == nil && !assert.Equal(t, left, revision) || errors.Is(err, store.ErrNotFound)
	}, 20*time.Second, 50*time.Millisecond)
	for id, err := range sessions.List(t.Context()) {
		require.NoError(t, err)
		assert.Equal(t, busy, id)
	}
	_, err := sessions.Put(t.Context(), idle, []byte("two"), left)
	assert.ErrorIs(t, err, store.ErrConflict)
	assert.NotEqual(t, left, put(idle, "two", 0))
	_, _, err = sessions.Get(t.Context(), busy)
	assert.NoError(t, err)
}
