package hostcode

import (
	"log/slog"
	"sync"
)

// A Counter counts something in texts by a host's function. If that panics, the
// Counter takes an estimate instead and logs the first panic: there may be one for
// each text.
type Counter struct {
	What     string
	Of       func(text string) int
	Estimate func(text string) int
	Log      *slog.Logger

	told sync.Once
}

// MaxCount is the largest number for one text: sums of counts don't overflow.
const MaxCount = 1 << 30

// WithinCount returns the number from 0 to [MaxCount] that is nearest to n.
func WithinCount(n int) int { return min(max(n, 0), MaxCount) }

// Count returns the number for text, from 0 to [MaxCount].
func (c *Counter) Count(text string) int {
	n, err := Call(c.What, func() (int, error) { return c.Of(text), nil })
	if err != nil {
		c.told.Do(func() { c.Log.Error("mcphybrid: the host's code panicked, an estimate is used", "error", err) })
		return c.Estimate(text)
	}
	return WithinCount(n)
}
