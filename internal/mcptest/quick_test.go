package mcptest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A recorder is a test that notes whether it has failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where work takes no time
		for i, test := range []struct {
			took   []time.Duration
			failed bool
		}{
			{[]time.Duration{999}, false},
			{[]time.Duration{5000, 2000, 999}, false},
			{[]time.Duration{5000, 1000, 2000}, true},
		} {
			r, next := &recorder{TB: t}, test.took
			Quick(r, 1000, func() { time.Sleep(next[0]); next = next[1:] })
			assert.Equal(t, test.failed, r.failed, i)
			assert.Empty(t, next, i)
		}
	})
}
