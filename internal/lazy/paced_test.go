package lazy

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// The first work is done at once, all that is asked for within the interval is done once,
// and nothing that was asked for is forgotten.
func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, idle := 0, false
		var done []int // asked, when work was done
		p := Paced{Every: time.Second, Work: func() bool { done = append(done, asked); return !idle }}
		ask := func() {
			synctest.Wait()
			asked++
			p.Ask()
			synctest.Wait()
		}
		ask()
		assert.Equal(t, []int{1}, done, "at once")
		time.Sleep(time.Millisecond / 2)
		for range 3000 {
			ask()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []int{1, 1001, 2001, 3001}, done[:4], "%v", done)
		assert.Len(t, done, 4, "and none in the minute after")
		idle, done = true, nil
		ask()
		ask()
		assert.Len(t, done, 2, "nothing was to be done, so nobody waits")
		idle = false
		ask()
		assert.Len(t, done, 3, "at once again")

		ask()
		before := time.Now()
		p.Close()
		assert.Equal(t, []int{3002, 3003, 3004, 3005}, done, "Close does not wait for the second")
		assert.Zero(t, time.Since(before))
		ask()
		p.Close()
		assert.Len(t, done, 4, "nothing after Close")
		new(Paced).Close()
	})
}

// Close waits for work that has begun, and who asks meanwhile gets it done.
func TestPacedCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, done atomic.Int32
		p := Paced{Every: time.Second}
		p.Work = func() bool {
			n := asked.Load()
			time.Sleep(time.Minute)
			done.Store(n)
			return true
		}
		asked.Add(1)
		p.Ask()
		time.Sleep(time.Second)
		asked.Add(1)
		p.Ask()
		p.Close()
		assert.EqualValues(t, 2, done.Load())
	})
}
