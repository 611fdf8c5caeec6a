package upstream

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	// How long a child that served may take to end by itself once its standard
	// input is closed, and any child after SIGTERM, before it is killed.
	exitGrace = 2 * time.Second
	termGrace = time.Second

	// writeTimeout is how long a child may leave its full standard input
	// unread before the connection counts as broken.
	writeTimeout = 10 * time.Second

	// stderrTail is how many bytes of a child's standard error are kept to
	// explain its death.
	stderrTail = 2 << 10
)

// inherited are the variables of this process's environment that a child gets
// without asking: those without which ordinary programs do not run.
var inherited = []string{
	"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	// On Windows.
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// childMark is an environment variable that names the child to whatever that
// starts: by it, on Linux, they are found again when the child has ended. A
// child that has children of this package itself extends the value with /.
const childMark = "MCPHYBRID_CHILD"

var childCount atomic.Int64

// newMark returns a value of childMark that no other process has.
func newMark(lookup func(string) (string, bool)) string {
	mark := fmt.Sprintf("%d-%d-%x", os.Getpid(), childCount.Add(1), time.Now().UnixNano())
	if outer, ok := lookup(childMark); ok {
		return outer + "/" + mark
	}
	return mark
}

// A process is a server that runs as a child, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // our ends of the pipes
	out    *os.File
	stderr *tail

	exited chan struct{}         // closed when the child has ended and its group is dead
	err    error                 // how it ended; valid once exited is closed
	killed atomic.Pointer[error] // why it was, if it was for what it did

	stopOnce sync.Once
}

// startProcess runs the command of cfg, whose secrets it hides in the child's
// last words. The child lives until stop.
func startProcess(cfg *Config, hide *secrets) (*process, error) {
	var files []*os.File
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil
		}
		files = append(files, r, w)
		return r, w
	}
	childIn, in := pipe()
	out, childOut := pipe()
	errs, childErr := pipe()
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	if len(files) != 6 {
		closeAll(files...)
		return nil, errors.New("no pipe to be had: too many open files")
	}
	p := &process{
		cmd:    exec.Command(cfg.Command, cfg.Args...),
		in:     in,
		out:    out,
		stderr: &tail{},
		exited: make(chan struct{}),
	}
	p.cmd.Dir = cfg.Dir
	mark := newMark(os.LookupEnv)
	p.cmd.Env = append(childEnv(cfg.Env, os.LookupEnv), childMark+"="+mark)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, childErr
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		closeAll(files...)
		return nil, err
	}
	closeAll(childIn, childOut, childErr)

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(p.stderr, errs)
	}()
	go func() {
		err := p.cmd.Wait()
		killGroup(p.cmd) // what the child leaves behind ends with it
		killStrays(mark)
		// Should anything have got away, it may hold the pipes open.
		soon := time.Now().Add(termGrace)
		_ = errs.SetReadDeadline(soon)
		_ = out.SetReadDeadline(soon)
		<-drained
		errs.Close()
		if reason := p.killed.Load(); reason != nil {
			err = *reason
		} else if err == nil {
			err = errors.New("the process ended")
		}
		line := p.stderr.String()
		if len(line) == stderrTail {
			line = hide.dropRest(line)
		}
		if text := text.Line(hide.text(line), stderrTail); text != "" {
			err = fmt.Errorf("%w; its last words: %q", err, text)
		}
		p.err = err
		close(p.exited)
	}()
	return p, nil
}

// stop ends the child and what it started. It first closes the child's
// standard input and leaves it grace to end by itself. It returns when the
// child is gone.
func (p *process) stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		p.in.Close()
		if !p.waitExit(grace) {
			terminateGroup(p.cmd)
			if !p.waitExit(termGrace) {
				killGroup(p.cmd)
			}
		}
	})
	<-p.exited
	p.out.Close()
}

// kill ends a child that misbehaves, which err says.
func (p *process) kill(err error) {
	p.killed.CompareAndSwap(nil, &err)
	killGroup(p.cmd)
}

// expectExit ends a child whose standard output is read no more: at once if err
// says why, else it has closed it and may still end by itself.
func (p *process) expectExit(err error) {
	if err != nil {
		p.kill(err)
		return
	}
	go func() {
		if !p.waitExit(termGrace) {
			killGroup(p.cmd)
		}
	}()
}

// waitExit waits for the child's end and reports whether it came within d.
func (p *process) waitExit(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

var errUnread = fmt.Errorf("it has not read its input for %v", writeTimeout)

// Write writes to the child's standard input. If the child leaves it unread
// for too long, the message is broken off and the child is of no more use.
func (p *process) Write(b []byte) (int, error) {
	_ = p.in.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := p.in.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.kill(errUnread)
		err = errUnread
	}
	return n, err
}

// Close closes the child's standard input, which asks it to end.
func (p *process) Close() error { return p.in.Close() }

// childEnv returns the environment of a child: what programs need, and set.
func childEnv(set map[string]string, lookup func(string) (string, bool)) []string {
	env := make(map[string]string)
	for _, key := range inherited {
		if value, ok := lookup(key); ok {
			env[key] = value
		}
	}
	maps.Copy(env, set)
	list := []string{} // not nil: that would mean the whole environment
	for _, key := range slices.Sorted(maps.Keys(env)) {
		list = append(list, key+"="+env[key])
	}
	return list
}

// A tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - stderrTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
