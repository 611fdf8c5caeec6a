// Package locks has locks for which a caller waits no longer than its context lasts: files, which
// keep out other processes, and keys, which keep out other goroutines.
package locks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// File waits until nobody else has the lock that is a file, in any process. It creates
// the file if need be. The lock ends with the process at the latest.
func File(ctx context.Context, path string) (unlock func(), err error) {
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

// IsUnwritable reports whether a lock can't be had because no file may be written where it would
// be, or none has room there.
func IsUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// InFolder waits until nobody else has the lock of key, in any process. It is a file of
// folder, whose path has another ending. The folder is created if need be. If the folder is there,
// the path is returned with an error, too.
func InFolder(ctx context.Context, folder, key string) (path string, unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(key))
	path = filepath.Join(folder, hex.EncodeToString(sum[:16]))
	if unlock, err = File(ctx, path+".lock"); err != nil {
		err = fmt.Errorf("locking %s: %w", path, err)
	}
	return path, unlock, err
}
