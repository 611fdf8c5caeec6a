package lazy

import (
	"sync"
	"sync/atomic"
	"testing"

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
