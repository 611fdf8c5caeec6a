//go:build unix && !aix && !solaris

package locks

import (
	"errors"
	"os"
	"syscall"
)

func tryLock(path string) (f *os.File, busy bool, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil && IsUnwritable(err) {
		if there, failed := os.Open(path); failed == nil { // others may write there
			f, err = there, nil
		}
	}
	if err != nil {
		return nil, false, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, true, nil
	}
	return f, false, err
}
