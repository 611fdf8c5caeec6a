package upstream

import (
	"bytes"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// strays are the descendants of a child as they were seen while their parents lived: a
// process whose parent has ended does not tell whose it was, unless it kept the mark in its
// environment.
type strays struct {
	mark string

	mu   sync.Mutex
	seen map[int]string // when each began, by its number, which another process may get later
}

// follow notes a child, which has not been waited for yet, and its mark.
func (s *strays) follow(pid int, mark string) {
	s.mark, s.seen = mark, make(map[int]string)
	if p := readStat(strconv.Itoa(pid)); p.began != "" {
		s.seen[pid] = p.began
	}
}

// look notes the descendants that there are now, also if they have left the environment and
// the session of the child. It returns those that it had not seen before.
func (s *strays) look() (found []int) { return s.lookAt(processes.read()) }

// worked returns how long the child and the descendants that live have used a processor,
// with those that they have waited for, and whether one of them could go on now: it runs,
// waits for a processor, or waits for the disk.
func (s *strays) worked() (total time.Duration, runnable bool) { return s.workedAt(processes.read()) }

func (s *strays) workedAt(now map[int]processInfo) (total time.Duration, runnable bool) {
	s.lookAt(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, began := range s.seen {
		if p := now[pid]; p.began == began {
			total += p.worked
			runnable = runnable || p.state == "R" || p.state == "D"
		}
	}
	return total, runnable
}

func (s *strays) lookAt(now map[int]processInfo) (found []int) {
	children := make(map[int][]int)
	for pid, p := range now {
		children[p.parent] = append(children[p.parent], pid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []int
	note := func(pid int) {
		if began := now[pid].began; s.seen[pid] != began {
			s.seen[pid] = began
			found, open = append(found, pid), append(open, pid)
		}
	}
	for pid, began := range s.seen {
		if now[pid].began == began {
			open = append(open, pid)
		}
	}
	for pid, p := range now {
		if isOf(p.mark, s.mark) {
			note(pid)
		}
	}
	for len(open) > 0 {
		pid := open[0]
		open = open[1:]
		for _, child := range children[pid] {
			note(child)
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

// kill kills those that were seen and what they have started since.
func (s *strays) kill() {
	// A process may start another before it dies, so look again until there is no
	// other than before. Give up on processes that the kernel can't end in time.
	deadline := time.Now().Add(termGrace)
	for found := true; found && time.Now().Before(deadline); {
		found = false
		for stopped := s.look(); len(stopped) > 0 && time.Now().Before(deadline); stopped = s.look() {
			found = true
			for _, pid := range stopped { // and start no more, whose parents would be dead
				s.signal(pid, syscall.SIGSTOP)
			}
		}
		s.mu.Lock()
		pids := slices.Collect(maps.Keys(s.seen))
		s.mu.Unlock()
		for _, pid := range pids {
			found = s.signal(pid, syscall.SIGKILL) || found
		}
		if found {
			time.Sleep(time.Millisecond)
		}
	}
}

// processes is the kernel's table of processes. A reading takes 100 ms with 3,000
// of them, so all servers that end at once share it.
var processes = processTable{all: readProcesses}

type processTable struct {
	all func() map[int]processInfo

	mu   sync.Mutex
	next *reading      // that has not begun, or nil
	last chan struct{} // closed when the last reading has ended; nil before the first
}

// A reading is the table of one moment.
type reading struct {
	done chan struct{}
	all  map[int]processInfo // by number
}

// read returns a reading that begins after the call, for any number of callers.
func (t *processTable) read() map[int]processInfo {
	t.mu.Lock()
	r := t.next
	if r != nil {
		t.mu.Unlock()
		<-r.done
		return r.all
	}
	r = &reading{done: make(chan struct{})}
	before := t.last
	t.next, t.last = r, r.done
	t.mu.Unlock()
	if before != nil {
		<-before
	}
	t.mu.Lock()
	t.next = nil
	t.mu.Unlock()
	defer close(r.done)
	r.all = t.all()
	return r.all
}

func readProcesses() map[int]processInfo {
	all := make(map[int]processInfo)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p := readStat(entry.Name()); p.began != "" {
			p.mark = readMark(entry.Name())
			all[pid] = p
		}
	}
	return all
}

// A processInfo is what the kernel says of a process.
type processInfo struct {
	state  string
	parent int
	began  string        // since the machine did; "" if there is no such process
	worked time.Duration // on a processor, with the children that it has waited for
	mark   string        // see childMark; "" if it has none, or is another user's
}

// readStat returns all but the mark.
func readStat(pid string) (p processInfo) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return p
	}
	return statOf(data)
}

// statOf returns what a line of the kernel says of a process.
func statOf(data []byte) (p processInfo) {
	_, rest, _ := bytes.Cut(data[max(0, bytes.LastIndexByte(data, ')')):], []byte(" ")) // behind the name, which may have any bytes
	fields := bytes.Fields(rest)
	const began = 22 - 3 // the name is the second of them
	if len(fields) <= began {
		return p
	}
	p.state, p.began = string(fields[0]), string(fields[began])
	p.parent, _ = strconv.Atoi(string(fields[1]))
	const user, perSecond = 14 - 3, 100 // USER_HZ of all architectures that Go knows
	for _, field := range fields[user : user+4] {
		ticks, _ := strconv.ParseInt(string(field), 10, 64)
		p.worked += time.Duration(ticks) * time.Second / perSecond
	}
	return p
}

// maxEnviron is how many bytes of an environment are searched for the mark, which stands first
// in that of a child. Processes that share a large one could make a reading take minutes.
const maxEnviron = 64 << 10

func readMark(pid string) string {
	f, err := os.Open("/proc/" + pid + "/environ")
	if err != nil {
		return ""
	}
	defer f.Close()
	env, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if mark, ok := bytes.CutPrefix(v, []byte(childMark+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

// isOf reports whether a process with one mark is the child with the other, or its
// descendant.
func isOf(mark, child string) bool {
	rest, ok := strings.CutPrefix(mark, child)
	return ok && child != "" && (rest == "" || rest[0] == '/')
}
