// Package files reads files with secrets, and files that say what to trust, and reads them
// again when they have changed. It refuses those that others could read or write.
package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// followEvery is how often followed files are looked at.
const followEvery = time.Second

// A Followed is one that is read again when it, or one of several, has changed, until
// that succeeds.
type Followed struct {
	paths []string
	Quiet bool         // not worth a line in the log when it changes, unless it was wrong before
	Slow  bool         // people write it: a change counts when the next look sees no other
	Read  func() error // if it fails, what was read before stays in use
	Then  func()       // if not nil, called after it
	seen  []fs.FileInfo
	moved bool // it has changed, and is looked at once more

	mu    sync.Mutex
	wrong string // why it could not be read, or ""
}

// Follow notes how the files are now. Then they should be read.
func Follow(read func() error, paths ...string) *Followed {
	f := &Followed{paths: paths, Read: read}
	f.hasChanged()
	return f
}

// hasChanged reports whether a file is another one than at the last call.
func (f *Followed) hasChanged() (changed bool) {
	seen := make([]fs.FileInfo, len(f.paths))
	for i, path := range f.paths {
		seen[i], _ = os.Stat(path) // nil if it is not there, as between a removal and its replacement
		changed = changed || f.seen == nil || !sameFile(seen[i], f.seen[i])
	}
	f.seen = seen
	return changed
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// Unread returns why what the files have now is not in use, or "". Several goroutines may call it.
func (f *Followed) Unread() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrong
}

// setUnread notes why the files could not be read, or "", and reports whether that is new.
func (f *Followed) setUnread(wrong string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	isNew := f.wrong != wrong
	f.wrong = wrong
	return isNew
}

// Check reads the files again if they have changed, or could not be read: what was wrong may
// be over without a change, and until then who had lost a token would keep it.
func (f *Followed) Check(log *slog.Logger) {
	changed := f.hasChanged()
	if changed && f.Slow {
		f.moved = true
		return
	}
	if !changed && !f.moved && f.Unread() == "" {
		return
	}
	f.moved = false
	if err := f.Read(); err != nil {
		if text := err.Error(); f.setUnread(text) {
			log.Warn("a changed file is not used: " + text)
		}
		return
	}
	mended := f.setUnread("")
	if f.Then != nil {
		f.Then()
	}
	switch {
	case !f.Quiet:
		log.Info("a changed file is used", "file", f.paths[0])
	case mended:
		log.Info("what was wrong with the file is mended", "file", f.paths[0])
	}
}

// FollowAll checks files, one after the other, until the returned function is called.
func FollowAll(files []*Followed, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if len(files) > 0 {
		running.Go(func() {
			tick := time.NewTicker(followEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				for _, f := range files {
					f.Check(log)
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// maxFile is how many bytes a file with tokens, a key or a certificate may have.
const maxFile = 1 << 20

// ReadSecret reads a file that only we may read.
func ReadSecret(path string) ([]byte, error) { return readChecked(path, checkSecret) }

// Read reads a file that anybody may read.
func Read(path string) ([]byte, error) {
	return readChecked(path, func(string, fs.FileInfo) error { return nil })
}

func readChecked(path string, check func(string, fs.FileInfo) error) ([]byte, error) {
	info, err := os.Stat(path) // to open a pipe would wait for who writes to it
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // another file may be there by now
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return data, err
}
