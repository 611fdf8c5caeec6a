package document

import (
	"context"
	"fmt"
	"time"
)

// Lock waits until nobody else has the lock that is a file, in any process. It creates
// the file if need be. The lock ends with the process at the latest.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, busy, err := tryLock(path)
		switch {
		case err != nil:
			return nil, err
		case !busy:
			return func() { f.Close() }, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("somebody else has the lock: %w", ctx.Err())
		}
	}
}
