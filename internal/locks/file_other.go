//go:build !windows && (!unix || aix || solaris)

package locks

import (
	"errors"
	"fmt"
	"os"
)

// tryLock fails: there is no lock of files that ends with the process.
func tryLock(string) (f *os.File, busy bool, err error) {
	return nil, false, fmt.Errorf("files can't be locked on this system: %w", errors.ErrUnsupported)
}
