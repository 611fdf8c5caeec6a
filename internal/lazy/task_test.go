package lazy

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Work is never done twice at once, and always once more after the last call.
func TestTask(t *testing.T) {
	var task Task
	var inside, most, asked, seen atomic.Int64
	work := func() {
		most.Store(max(most.Load(), inside.Add(1)))
		seen.Store(asked.Load())
		inside.Add(-1)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 1000 {
				asked.Add(1)
				task.Do(work)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, most.Load())
	assert.EqualValues(t, 16_000, seen.Load())
}

// Who waits does so for all work that was asked for before, and no longer than it says.
func TestTaskWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var task Task
		assert.True(t, task.Wait(time.Second), "nothing is done")
		begun, release := make(chan struct{}), make(chan struct{})
		n := 0
		work := func() { n++; begun <- struct{}{}; <-release }
		go task.Do(work)
		<-begun
		task.Do(work)
		start := time.Now()
		assert.False(t, task.Wait(time.Second))
		assert.Equal(t, time.Second, time.Since(start))
		var waited atomic.Int32
		for range 3 {
			go func() {
				assert.True(t, task.Wait(time.Hour))
				waited.Add(1)
			}()
		}
		release <- struct{}{}
		<-begun
		synctest.Wait()
		assert.Zero(t, waited.Load(), "it is done once more")
		release <- struct{}{}
		synctest.Wait()
		assert.EqualValues(t, 3, waited.Load())
		assert.Equal(t, 2, n)
		assert.True(t, task.Wait(time.Second))
	})
}

func TestTaskFromWithin(t *testing.T) {
	var task Task
	n := 0
	var work func()
	work = func() {
		if n++; n < 5 {
			task.Do(work)
		}
	}
	task.Do(work)
	assert.Equal(t, 5, n)
	assert.Panics(t, func() { task.Do(func() { panic("oops") }) })
	task.Do(work)
	assert.Equal(t, 6, n, "a panic ends nothing but its own call")
}

// Each time that somebody waits, it is for the work that is under way then.
func TestTaskIsWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var task Task
		for range 3 {
			go task.Do(func() { time.Sleep(time.Second) })
			synctest.Wait()
			begun := time.Now()
			assert.False(t, task.Wait(time.Second/2))
			assert.True(t, task.Wait(time.Minute))
			assert.Equal(t, time.Second, time.Since(begun))
			assert.True(t, task.Wait(0))
			synctest.Wait()
		}
	})
}
