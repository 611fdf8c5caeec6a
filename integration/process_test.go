package integration

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A process is a process in /proc.
type process struct {
	pid     int
	command string // the command line; "" for a zombie
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.command) }

// processes returns the processes of this run, except this one: all its
// descendants, and those with a path in runDir in their command line or
// environment.
func processes() []process {
	parents := make(map[int]int)
	for _, path := range glob("/proc/[0-9]*/stat") {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		// pid (name) state parent …; the name may hold anything.
		stat := read(path)
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	descends := func(pid int) bool {
		for pid > 1 && pid != os.Getpid() {
			pid = parents[pid]
		}
		return pid == os.Getpid()
	}
	var list []process
	for pid := range parents {
		if pid == os.Getpid() {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/", pid)
		line := strings.TrimSuffix(strings.ReplaceAll(read(dir+"cmdline"), "\x00", " "), " ")
		if descends(pid) || strings.Contains(line, runDir) || strings.Contains(read(dir+"environ"), runDir) {
			list = append(list, process{pid, line})
		}
	}
	slices.SortFunc(list, func(a, b process) int { return a.pid - b.pid })
	return list
}

// children returns the processes of this run that a Manager has started: all
// except the HTTP servers.
func children() []process {
	return slices.DeleteFunc(processes(), func(p process) bool {
		_, printing := printing.Load(p.pid)
		return printing || strings.Contains(p.command, loopbackScript)
	})
}

// printing has the ids of the processes of startPrinting.
var printing sync.Map

// child returns the only process of children whose command line has text.
func child(t *testing.T, text string) process {
	t.Helper()
	list := slices.DeleteFunc(children(), func(p process) bool { return !strings.Contains(p.command, text) })
	require.Len(t, list, 1, "processes with %q", text)
	return list[0]
}

// unread returns how many bytes are in p's standard input, a pipe.
func unread(p process) int {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", p.pid), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	var n int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return 0
	}
	return int(n)
}

// listeners returns the TCP addresses on which the processes of this run
// listen.
func listeners() []string {
	sockets := make(map[string]bool) // by inode
	for _, p := range processes() {
		for _, fd := range glob(fmt.Sprintf("/proc/%d/fd/*", p.pid)) {
			target, _ := os.Readlink(fd)
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	var list []string
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for line := range strings.Lines(read(file)) {
			// number, local address, remote address, state, …; the tenth is the inode.
			fields := strings.Fields(line)
			const listen = "0A"
			if len(fields) > 9 && fields[3] == listen && sockets[fields[9]] {
				list = append(list, decodeAddress(fields[1]))
			}
		}
	}
	return list
}

// decodeAddress returns an IPv4 address of /proc/net/tcp in the usual form:
// "0100007F:1F90" is 127.0.0.1:8080.
func decodeAddress(text string) string {
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(ip) != 4 {
		return text
	}
	return fmt.Sprintf("%d.%d.%d.%d:%d", ip[3], ip[2], ip[1], ip[0], n)
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // the patterns are well formed
	return paths
}

// read returns the content of a file in /proc, or "" if it is gone.
func read(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}
