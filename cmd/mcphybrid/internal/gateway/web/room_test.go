package web

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/gateway/tokens"
	"github.com/stretchr/testify/assert"
)

// One client has at most half of a room, or one message that takes more.
func TestClientHasHalfOfTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		a, b := new(tokens.Holder), new(tokens.Holder)
		takes := func(client *tokens.Holder, n int) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return r.take(ctx, client, n) == nil
		}
		assert.True(t, takes(a, 50))
		assert.False(t, takes(a, 1), "more than half")
		assert.True(t, takes(b, 20))
		assert.True(t, takes(b, 30))
		assert.False(t, takes(nil, 1), "the room is full")
		r.give(a, 50)
		assert.True(t, takes(nil, 50))
		r.give(b, 20)
		r.give(b, 30)
		assert.True(t, takes(nil, 0))
		r.give(nil, 50)
		assert.True(t, takes(a, 100), "one message may take all")
		assert.False(t, takes(b, 1))
		r.give(a, 100)
		assert.Equal(t, 100, r.free)
		assert.Empty(t, r.has)
		assert.Empty(t, r.lines)
	})
}

// However many messages of a client wait, the next room is another client's.
func TestRoomGoesInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		a, b, c := new(tokens.Holder), new(tokens.Holder), new(tokens.Holder)
		assert.NoError(t, r.take(t.Context(), nil, 100))
		var all sync.WaitGroup
		defer all.Wait()
		order := make(chan string, 6)
		for _, m := range []struct {
			client *tokens.Holder
			name   string
		}{{a, "a1"}, {a, "a2"}, {a, "a3"}, {b, "b1"}, {b, "b2"}, {c, "c1"}} {
			all.Go(func() {
				assert.NoError(t, r.take(t.Context(), m.client, 60)) // one at a time
				order <- m.name
				time.Sleep(time.Second)
				r.give(m.client, 60)
			})
			synctest.Wait()
		}
		r.give(nil, 100)
		for _, next := range []string{"a1", "b1", "c1", "a2", "b2", "a3"} {
			assert.Equal(t, next, <-order)
		}
	})
}

// A message that leaves the line keeps nobody from passing.
func TestRoomOfOneThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		assert.NoError(t, r.take(t.Context(), new(tokens.Holder), 50))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { assert.Error(t, r.take(ctx, new(tokens.Holder), 60)) }()
		synctest.Wait()
		passed := false
		go func() {
			assert.NoError(t, r.take(t.Context(), nil, 10))
			passed = true
		}()
		synctest.Wait()
		assert.False(t, passed)
		cancel()
		synctest.Wait()
		assert.True(t, passed)
	})
}

// A client whose claims can't be met keeps others waiting for one of them at a time.
func TestRoomBehindClaimsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		assert.NoError(t, r.take(t.Context(), new(tokens.Holder), 1)) // for ever
		large := new(tokens.Holder)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Second)
				for range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					assert.Error(t, r.take(ctx, large, 100))
					cancel()
				}
			})
		}
		for range 9 {
			begun := time.Now()
			assert.NoError(t, r.take(t.Context(), nil, 10))
			assert.LessOrEqual(t, time.Since(begun), 30*time.Second)
			r.give(nil, 10)
			time.Sleep(time.Second)
		}
		all.Wait()
	})
}

// Of many clients that take, give and leave, nothing stays.
func TestRoomRace(t *testing.T) {
	r := newRoom(1000)
	var all sync.WaitGroup
	for i := range 50 {
		client := new(tokens.Holder)
		dice := rand.New(rand.NewPCG(1, uint64(i)))
		for range 4 {
			sizes := []int{dice.IntN(10), dice.IntN(600), dice.IntN(1001)}
			within := time.Duration(dice.IntN(3)) * time.Millisecond
			all.Go(func() {
				for range 50 {
					for _, n := range sizes {
						ctx, cancel := context.WithTimeout(t.Context(), within)
						if r.take(ctx, client, n) == nil {
							r.mu.Lock()
							assert.GreaterOrEqual(t, r.free, 0)
							r.mu.Unlock()
							r.give(client, n)
						}
						cancel()
					}
				}
			})
		}
	}
	all.Wait()
	assert.Equal(t, 1000, r.free)
	assert.Empty(t, r.has)
	assert.Empty(t, r.lines)
}
