package upstream

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// killStrays kills the processes whose environment has the mark: those that a
// child has started and that have left its process group.
func killStrays(mark string) {
	// One that is killed may just have started another, and takes a moment to
	// be gone; one that the kernel can't end is left.
	deadline := time.Now().Add(termGrace)
	for found := true; found && time.Now().Before(deadline); {
		found = false
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range environs {
			env, err := os.ReadFile(path)
			if err != nil || !hasMark(env, mark) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err == nil && pid != os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}
		if found {
			time.Sleep(time.Millisecond)
		}
	}
}

// hasMark reports whether a process of this environment, as in /proc, is the
// child with the mark or descends from it.
func hasMark(env []byte, mark string) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if rest, ok := bytes.CutPrefix(v, []byte(childMark+"="+mark)); ok {
			return len(rest) == 0 || rest[0] == '/'
		}
	}
	return false
}
