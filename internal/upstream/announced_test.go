package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A call waits for the changes that were announced before its result, and no longer than it
// may.
func TestWaitForToolChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		during func(c *announcedChanges, cancel, over func()) // after a second
		want   time.Duration
	}{
		"nothing happens":            {func(*announcedChanges, func(), func()) {}, 2 * time.Second},
		"all is listed":              {func(c *announcedChanges, _, _ func()) { c.list(2) }, time.Second},
		"a part is listed":           {func(c *announcedChanges, _, _ func()) { c.list(1) }, 2 * time.Second},
		"one after the other":        {func(c *announcedChanges, _, _ func()) { c.list(1); c.list(2) }, time.Second},
		"an old listing comes later": {func(c *announcedChanges, _, _ func()) { c.list(2); c.list(1) }, time.Second},
		"the call ends":              {func(_ *announcedChanges, cancel, _ func()) { cancel() }, time.Second},
		"the connection ends":        {func(_ *announcedChanges, _, over func()) { over() }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := new(announcedChanges)
				c.announce()
				c.announce()
				announced := c.count()
				assert.Equal(t, 2, announced)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				over := make(chan struct{})
				begun := time.Now()
				time.AfterFunc(time.Second, func() { test.during(c, cancel, func() { close(over) }) })
				second := make(chan struct{})
				go func() {
					defer close(second)
					c.wait(ctx, announced, over)
				}()
				c.wait(ctx, announced, over)
				assert.Equal(t, test.want, time.Since(begun))
				<-second
				assert.Equal(t, test.want, time.Since(begun), "two calls wait")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		new(announcedChanges).wait(t.Context(), 0, nil)
		assert.Zero(t, time.Since(begun), "nothing was announced")
	})
}
