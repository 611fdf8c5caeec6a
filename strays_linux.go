package mcphybrid

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killStrays kills the processes whose environment has the mark: those that a
// child has started and that have left its process group.
func killStrays(mark string) {
	// One that is killed may just have started another.
	for found := true; found; {
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
