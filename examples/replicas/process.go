package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

var errNoRole = errors.New("no role")

// role runs this process as what its parent has started it as, if it has.
func role(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "as-replica":
		return runReplica(args[1], args[2])
	case len(args) == 3 && args[0] == "as-store":
		port, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return runStore(args[1], port)
	}
	return errNoRole
}

// A process is this program in another role. It ends when its parent does.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // kept open, since the process ends when it closes
	ended chan struct{}

	mu  sync.Mutex
	url string // that it prints when it is ready
}

// begin starts a process.
func begin(args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		p.mu.Lock()
		p.url = strings.TrimSpace(line)
		p.mu.Unlock()
		_, _ = io.Copy(io.Discard, lines)
		_ = p.cmd.Wait()
		p.mu.Lock()
		p.url = ""
		p.mu.Unlock()
	}()
	return p, nil
}

// at returns the URL of a process that is ready, or "".
func (p *process) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// kill ends the process as kill -9 does, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.ended
}
