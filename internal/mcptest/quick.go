package mcptest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Quick runs f, which must take less than limit on a machine of usual speed that does
// nothing else. If it takes longer, it is run again: the least of three times counts,
// and a slow machine gets as many times more as it is slow.
func Quick(t testing.TB, limit time.Duration, f func(), what ...any) {
	t.Helper()
	least, slowness := time.Duration(-1), 1.0
	for range 3 {
		begun := time.Now()
		f()
		if took := time.Since(begun); least < 0 || took < least {
			least = took
		}
		if least < limit {
			return
		}
		slowness = max(slowness, pace())
	}
	assert.Less(t, least, time.Duration(slowness*float64(limit)), what...)
}

// pace returns how many times as long as usual this machine takes for a little work.
func pace() float64 {
	const usual = 20 * time.Millisecond
	begun := time.Now()
	m := make(map[int]int)
	for i := range 200_000 {
		m[i*7919] = i
	}
	return float64(time.Since(begun)) / float64(usual)
}
