package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// ErrUnavailable says that the engine can't be reached, or doesn't answer. What was asked may
// have been done all the same. [Retry] asks again.
var ErrUnavailable = errors.New("the store can't be reached")

// The waits of [Retry]: the first is half of the least to all of it, and each has twice the
// length of the one before, up to the most.
const (
	leastRetry = 50 * time.Millisecond
	mostRetry  = 500 * time.Millisecond
)

// Retry calls do until it returns nil or an error that is no [ErrUnavailable], and returns that.
// Between calls it waits, first 25 to 50 ms, then twice as long each time, up to a quarter to half
// of a second, so that many replicas don't ask at once when the engine is back. It returns the
// last error when ctx ends.
//
// What do does must be safe to repeat, as Get and Put of [Sessions] are.
func Retry(ctx context.Context, do func() error) error {
	for wait := leastRetry; ; wait = min(2*wait, mostRetry) {
		err := do()
		if !errors.Is(err, ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return err
		}
	}
}
