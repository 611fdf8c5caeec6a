package history

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
)

type thing struct{ name string }

func TestLiving(t *testing.T) {
	t.Parallel()
	var l Living[*thing]
	assert.Nil(t, l.Newest())
	begun := time.Now()
	first, second := &thing{"first"}, &thing{"second"}
	l.Add(weak.Make(first).Value)
	for range 10 * 64 {
		l.Add(weak.Make(&thing{"gone"}).Value)
	}
	l.Add(weak.Make(second).Value)
	for range 3 {
		runtime.GC()
	}
	left := l.Newest()
	if assert.Len(t, left, 2) {
		assert.Same(t, second, left[0].Value)
		assert.Equal(t, 10*64+2, left[0].Number)
		assert.Same(t, first, left[1].Value)
		assert.Equal(t, 1, left[1].Number)
		assert.False(t, left[1].Began.Before(begun))
		assert.False(t, left[0].Began.Before(left[1].Began))
	}
	for len(l.list) < max(l.prune, 64) {
		l.Add(weak.Make(&thing{"fills it"}).Value)
	}
	for range 3 {
		runtime.GC()
	}
	l.Add(weak.Make(&thing{"makes room"}).Value)
	assert.Len(t, l.list, 3, "what is gone has left, and numbers go on")
	assert.Equal(t, l.last, l.list[2].number)
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
}

func TestLivingByMany(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 200
	var l Living[*thing]
	var adding sync.WaitGroup
	kept := make([][]*thing, goroutines)
	for g := range goroutines {
		adding.Go(func() {
			for range each {
				v := new(thing)
				kept[g] = append(kept[g], v)
				l.Add(weak.Make(v).Value)
				l.Newest()
			}
		})
	}
	adding.Wait()
	values := l.Newest()
	assert.Len(t, values, goroutines*each)
	for i, v := range values {
		assert.Equal(t, goroutines*each-i, v.Number)
	}
	runtime.KeepAlive(kept)
}

func TestSeries(t *testing.T) {
	t.Parallel()
	s := NewSeries[int](8, time.Second)
	assert.Empty(t, s.All())
	now, next := 0, time.Duration(0)
	for range 8 {
		next = s.Add(now)
		now += int(next / time.Second)
	}
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, s.All())
	assert.Equal(t, time.Second, next)
	next = s.Add(now)
	assert.Equal(t, []int{0, 2, 4, 6, 8}, s.All())
	assert.Equal(t, 2*time.Second, next)
	for range 100 { // the time doubles with every fourth
		now += int(next / time.Second)
		next = s.Add(now)
		assert.LessOrEqual(t, len(s.All()), 8)
	}
	all := s.All()
	assert.Zero(t, all[0], "it reaches back to the first")
	assert.IsIncreasing(t, all)
	all[0] = 7
	assert.Zero(t, s.All()[0], "the caller's own")
}

// A series runs until it is done: a sample at once, and then whenever one is due.
func TestSeriesRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, done, ended := NewSeries[int](4, time.Second), make(chan struct{}), make(chan struct{})
		n := 0
		go func() {
			s.Run(done, func() int { n++; return n })
			close(ended)
		}()
		synctest.Wait()
		assert.Equal(t, []int{1}, s.All())
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []int{1, 2, 3, 4}, s.All())
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Equal(t, []int{1, 3, 5, 6}, s.All(), "half as often, since there were four")
		close(done)
		<-ended
		assert.Len(t, s.All(), 4, "none after the end")
	})
}
