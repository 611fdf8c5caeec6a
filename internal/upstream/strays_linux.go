package upstream

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// killStrays kills the processes whose environment has the mark: descendants of
// a child that left its process group.
func killStrays(mark string) {
	// A process may start another before it dies, so look again until none is
	// left. Give up on processes that the kernel can't end in time.
	deadline := time.Now().Add(termGrace)
	for found := true; found && time.Now().Before(deadline); {
		found = false
		entries, _ := os.ReadDir("/proc")
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err != nil || pid == os.Getpid() {
				continue
			}
			env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
			if err == nil && hasMark(env, mark) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}
		if found {
			time.Sleep(time.Millisecond)
		}
	}
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
