package upstream

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcphybrid/mcphybrid/config"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	// exitGrace is how long a child that was ready may take to end after its
	// standard input closes. Then it gets SIGTERM.
	exitGrace = 2 * time.Second

	// termGrace is how long any child may take to end after SIGTERM. Then it is
	// killed.
	termGrace = time.Second

	// writeTimeout is how long a child may leave its standard input full. Then
	// the connection counts as broken.
	writeTimeout = 10 * time.Second

	// stderrTail is how many bytes of a child's standard error are kept to
	// explain its death.
	stderrTail = 2 << 10

	// maxStderr is how many bytes of a child's standard error are read within a
	// second. A child that writes more has to wait.
	maxStderr = 16 << 20
)

// inherited lists the environment variables that every child gets from this
// process. Ordinary programs don't run without them.
var inherited = []string{
	"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	// On Windows.
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// lastWords stands before what a child wrote to standard error at its end.
const lastWords = "; its last words: "

// childMark is an environment variable that identifies a child. Its descendants
// inherit it, so on Linux strays can find them after the child has ended. A
// child that itself uses this package appends "/" and its own mark.
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
	words  *firstWords // reads out
	stderr *tail
	strays strays
	reaped atomic.Bool // and its group is dead: their number may be another's now

	exited chan struct{}         // closed when the child and its group are dead
	err    error                 // how it ended; valid after exited is closed
	killed atomic.Pointer[error] // why kill killed it, or nil

	stopOnce sync.Once
	patience time.Duration // writeTimeout; shorter in tests
}

// startProcess runs the command of cfg until stop. It hides secrets in the
// child's last words: the end of its standard error.
func startProcess(cfg *config.Server, hide *secrets) (*process, error) {
	var files []*os.File
	var failed error
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			failed = err
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
	if failed != nil {
		closeAll(files...)
		return nil, fmt.Errorf("no pipe for the process: %w", failed)
	}
	p := &process{
		cmd:    exec.Command(findProgram(cfg.Command, cfg.Env["PATH"]), cfg.Args...),
		in:     in,
		out:    out,
		stderr: &tail{},
		words:  &firstWords{Reader: out, spoke: make(chan struct{})},
		exited: make(chan struct{}), patience: writeTimeout,
	}
	p.cmd.Dir = cfg.Dir
	mark := newMark(os.LookupEnv)
	p.cmd.Env = append([]string{childMark + "=" + mark}, childEnv(cfg.Env, os.LookupEnv)...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, childErr
	ownGroup(p.cmd)
	started, waited := make(chan error, 1), make(chan error, 1)
	go func() { waited <- p.run(mark, started) }()
	if err := <-started; err != nil {
		closeAll(files...)
		if info, notThere := os.Stat(cfg.Dir); cfg.Dir != "" && (notThere != nil || !info.IsDir()) {
			err = fmt.Errorf("its folder %q is not there", cfg.Dir) // the system's error names the program
		}
		return nil, err
	}
	closeAll(childIn, childOut, childErr)

	ended, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		p.stderr.readAll(errs, ended)
	}()
	go func() {
		err := <-waited
		close(ended)
		p.killGroup() // processes that the child left behind
		p.reaped.Store(true)
		p.strays.kill()
		// A process that escaped may hold the pipes open.
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
			err = fmt.Errorf("%w%s%q", err, lastWords, text)
		}
		p.err = err
		close(p.exited)
	}()
	return p, nil
}

// run starts a child, says whether that worked and returns when the child has ended. It
// stays on one thread: see dieWithParent.
func (p *process) run(mark string, started chan<- error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent(p.cmd)
	err := p.cmd.Start()
	if err == nil {
		p.strays.follow(p.cmd.Process.Pid, mark)
	}
	started <- err
	if err != nil {
		return err
	}
	defer untilReaped(p.cmd)()
	return p.cmd.Wait()
}

// killGroup kills the child and its group. What has left the group is killed when the child
// has ended.
func (p *process) killGroup() {
	p.strays.look()
	p.signalGroup(killGroup)
}

// signalGroup sends a signal to the group of the child while that is its own: looking for
// strays can take seconds, in which others may get the number.
func (p *process) signalGroup(send func(*exec.Cmd)) {
	if !p.reaped.Load() {
		send(p.cmd)
	}
}

// stop ends the child and its descendants and returns when the child is gone. It
// closes standard input, waits for grace, sends SIGTERM, waits for termGrace and
// kills.
func (p *process) stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		p.Close()
		if !p.waitExit(grace) {
			p.strays.look()
			p.signalGroup(terminateGroup)
			if !p.waitExit(termGrace) {
				p.killGroup()
			}
		}
	})
	<-p.exited
	p.out.Close()
}

// kill kills a child that misbehaves. err says what it did.
func (p *process) kill(err error) {
	p.killed.CompareAndSwap(nil, &err)
	p.killGroup()
}

// expectExit handles the end of the child's standard output. If err is not nil,
// it kills the child at once. Otherwise the child closed its output and has
// termGrace to end by itself.
func (p *process) expectExit(err error) {
	if err != nil {
		p.kill(err)
		return
	}
	go func() {
		if !p.waitExit(termGrace) {
			p.killGroup()
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

// Write writes to the child's standard input. If the child does not read it
// within writeTimeout, Write kills the child.
func (p *process) Write(b []byte) (int, error) {
	_ = p.in.SetWriteDeadline(time.Now().Add(p.patience))
	n, err := p.in.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.kill(errUnread)
		err = errUnread
	}
	return n, err
}

// Close closes the child's standard input, which asks it to end.
func (p *process) Close() error {
	p.strays.look() // before those between the child and them may end
	return p.in.Close()
}

// findProgram returns the path of command in a child's own PATH, or command if it has a
// path or is not there: then our PATH counts.
func findProgram(command, path string) string {
	if filepath.Base(command) == command {
		for _, dir := range filepath.SplitList(path) {
			if found, err := exec.LookPath(filepath.Join(dir, command)); err == nil && filepath.IsAbs(dir) {
				return found
			}
		}
	}
	return command
}

// childEnv returns the environment of a child: the inherited variables and set,
// sorted by name.
func childEnv(set map[string]string, lookup func(string) (string, bool)) []string {
	env := make(map[string]string)
	for _, key := range inherited {
		if value, ok := lookup(key); ok {
			env[key] = value
		}
	}
	maps.Copy(env, set)
	delete(env, childMark) // it is ours
	list := []string{}     // not nil: that would mean the whole environment
	for _, key := range slices.Sorted(maps.Keys(env)) {
		list = append(list, key+"="+env[key])
	}
	return list
}

// A tail keeps the last stderrTail bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	all int // bytes that were written
}

// total returns how many bytes the child has written.
func (t *tail) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all += len(b)
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - stderrTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// readAll reads r to its end: at most maxStderr bytes within a second, until the child
// has ended. Its last words need no pause.
func (t *tail) readAll(r io.Reader, ended <-chan struct{}) {
	buf := make([]byte, 32<<10)
	begun, read := time.Now(), 0
	for {
		n, err := r.Read(buf)
		_, _ = t.Write(buf[:n])
		if err != nil {
			return
		}
		if read += n; read >= maxStderr {
			select {
			case <-time.After(time.Second - time.Since(begun)):
			case <-ended:
			}
		}
		if time.Since(begun) >= time.Second {
			begun, read = time.Now(), 0
		}
	}
}

// String returns the bytes kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
