package upstream

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// strays are the descendants of a child as they were seen while their parents lived: a
// process whose parent has ended does not tell whose it was.
type strays struct {
	mu   sync.Mutex
	seen map[int]string // when each began, by its number, which another process may get later
}

// follow notes a child, which has not been waited for yet.
func (s *strays) follow(pid int) {
	if stat := readStat(strconv.Itoa(pid)); stat.began != "" {
		s.seen = map[int]string{pid: stat.began}
	}
}

// look notes the descendants that there are now, also if they have left the environment and
// the session of the child. It returns those that it had not seen before.
func (s *strays) look() (found []int) {
	now := make(map[int]stat)
	children := make(map[int][]int)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if stat := readStat(entry.Name()); stat.began != "" {
			now[pid] = stat
			children[stat.parent] = append(children[stat.parent], pid)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []int
	for pid, began := range s.seen {
		if now[pid].began == began {
			open = append(open, pid)
		}
	}
	for len(open) > 0 {
		pid := open[0]
		open = open[1:]
		for _, child := range children[pid] {
			if began := now[child].began; s.seen[child] != began {
				s.seen[child] = began
				found, open = append(found, child), append(open, child)
			}
		}
	}
	return found
}

// signal sends sig to a process, if it is the one that was seen.
func (s *strays) signal(pid int, sig syscall.Signal) (sent bool) {
	p, err := os.FindProcess(pid) // holds on to the process, where the kernel can do so
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	s.mu.Lock()
	began := s.seen[pid]
	s.mu.Unlock()
	now := readStat(strconv.Itoa(pid))
	return now.began == began && now.state != "Z" && p.Signal(sig) == nil
}

// kill kills those that were seen and what they have started since. mark is in the
// environment of those that kept it, whether or not they were seen.
func (s *strays) kill(mark string) {
	// A process may start another before it dies, so look again until none is
	// left. Give up on processes that the kernel can't end in time.
	deadline := time.Now().Add(termGrace)
	for found := true; found && time.Now().Before(deadline); {
		found = killMarked(mark)
		for stopped := s.look(); len(stopped) > 0 && time.Now().Before(deadline); stopped = s.look() {
			for _, pid := range stopped { // and start no more, whose parents would be dead
				s.signal(pid, syscall.SIGSTOP)
			}
		}
		s.mu.Lock()
		pids := make([]int, 0, len(s.seen))
		for pid := range s.seen {
			pids = append(pids, pid)
		}
		s.mu.Unlock()
		for _, pid := range pids {
			found = s.signal(pid, syscall.SIGKILL) || found
		}
		if found {
			time.Sleep(time.Millisecond)
		}
	}
}

// killMarked kills the processes whose environment has the mark, and reports whether there
// were any.
func killMarked(mark string) (found bool) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid) // before its environment is read, which is then that of this process
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && hasMark(env, mark) && p.Signal(syscall.SIGKILL) == nil {
			found = true
		}
		_ = p.Release()
	}
	return found
}

// A stat is what the kernel says of a process.
type stat struct {
	state  string
	parent int
	began  string // since the machine did; "" if there is no such process
}

func readStat(pid string) (s stat) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return s
	}
	_, rest, _ := bytes.Cut(data[max(0, bytes.LastIndexByte(data, ')')):], []byte(" ")) // behind the name, which may have any bytes
	fields := bytes.Fields(rest)
	const began = 22 - 3 // the name is the second of them
	if len(fields) <= began {
		return s
	}
	s.state, s.began = string(fields[0]), string(fields[began])
	s.parent, _ = strconv.Atoi(string(fields[1]))
	return s
}

// hasMark reports whether a process is the child with the mark or a descendant.
// env is its environment as in /proc.
func hasMark(env []byte, mark string) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if rest, ok := bytes.CutPrefix(v, []byte(childMark+"="+mark)); ok {
			return len(rest) == 0 || rest[0] == '/'
		}
	}
	return false
}
