package upstream

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/golden"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Which processes are a child's, by what the kernel says of all at one moment after another.
func TestGoldenStrays(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("Which processes are found to be descendants of the child 10, whose mark is m. Each is a number, with its parent and when it began, and its mark.\n\n")
	p := func(parent int, began, mark string) processInfo {
		return processInfo{parent: parent, began: began, mark: mark, state: "S"}
	}
	for _, moments := range [][]map[int]processInfo{
		{{10: p(1, "a", "m")}, {10: p(1, "a", "m"), 11: p(10, "b", "m"), 12: p(11, "c", ""), 13: p(1, "d", "")}, {12: p(1, "c", ""), 14: p(12, "e", "")}, {}},
		{{10: p(1, "a", "m"), 20: p(1, "b", "m/1"), 21: p(1, "c", "mm"), 22: p(1, "d", ""), 23: p(1, "e", "n/m"), 24: p(20, "f", "")}},
		{{10: p(1, "a", "m"), 11: p(10, "b", "")}, {11: p(1, "other", ""), 15: p(11, "c", "")}, {11: p(10, "other", ""), 10: p(1, "other", "")}},
		{{10: p(10, "a", "m"), 11: p(12, "b", ""), 12: p(11, "c", "")}},
	} {
		s := &strays{mark: "m", seen: map[int]string{10: "a"}}
		for _, now := range moments {
			found := s.lookAt(now)
			slices.Sort(found)
			for _, pid := range slices.Sorted(maps.Keys(now)) {
				fmt.Fprintf(&b, "%d of %d began %s %q; ", pid, now[pid].parent, now[pid].began, now[pid].mark)
			}
			fmt.Fprintf(&b, "found %v\n", found)
		}
		fmt.Fprintf(&b, "  seen %v\n", s.seen)
	}
	b.WriteString("\nWhose mark it is.\n")
	for _, marks := range [][2]string{{"", ""}, {"m", ""}, {"", "m"}, {"m", "m"}, {"m/1", "m"}, {"m/", "m"}, {"m1", "m"}, {"x/m", "m"}} {
		fmt.Fprintf(&b, "%q is of %q: %v\n", marks[0], marks[1], isOf(marks[0], marks[1]))
	}
	b.WriteString("\nWhat lines of the kernel say.\n")
	numbers := func(n int) string {
		var all []string
		for i := 4; i <= n; i++ {
			all = append(all, fmt.Sprint(i*100))
		}
		return strings.Join(all, " ")
	}
	for _, line := range []string{"", "1", "1 (a) S", "1 (a) S " + numbers(21), "1 (a) S " + numbers(22), "1 (a) R " + numbers(52) + "\n", "1 (a b) c) (d) D " + numbers(30), "1 (a) S x " + strings.Repeat("y ", 18)} {
		p := statOf([]byte(line))
		fmt.Fprintf(&b, "%.60q: %q, parent %d, began %q, worked %v\n", line, p.state, p.parent, p.began, p.worked)
	}
	b.WriteString("\nHow long they have worked, and whether one could go on now, by their states. Each has worked for as many seconds as its number.\n")
	for _, states := range []string{"S S", "R S", "S R", "D S", "S D", "Z T", "S S R", "S"} {
		now := make(map[int]processInfo)
		for i, state := range strings.Fields(states) { // the first is the child, the third a stranger
			now[10+i] = processInfo{parent: [...]int{1, 10, 1}[i], began: "a", state: state, worked: time.Duration(10+i) * time.Second}
		}
		s := &strays{mark: "m", seen: map[int]string{10: "a"}}
		total, runnable := s.workedAt(now)
		fmt.Fprintf(&b, "%s: %v, could go on %v\n", states, total, runnable)
		now[10] = processInfo{parent: 1, began: "b", state: "R", worked: time.Hour} // another process has its number
		total, runnable = s.workedAt(now)
		fmt.Fprintf(&b, "  once the child is gone: %v, could go on %v\n", total, runnable)
	}
	golden.Compare(t, "strays.golden", b.String())
}

// The table of processes has others and not this one. A process that has ended and was not waited for gets
// no signal, and is none that lives.
func TestProcessesThatHaveEnded(t *testing.T) {
	t.Parallel()
	all := readProcesses()
	assert.Contains(t, all, os.Getppid())
	assert.NotContains(t, all, os.Getpid())
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	var s strays
	s.follow(pid, "mark")
	assert.True(t, s.signal(pid, syscall.SIGKILL))
	mcptest.Soon(t, func() bool { return readStat(strconv.Itoa(pid)).state == "Z" })
	assert.False(t, s.signal(pid, syscall.SIGKILL))
	begun := time.Now()
	s.kill()
	assert.Less(t, time.Since(begun), termGrace, "there is nobody to wait for")
	assert.False(t, s.signal(os.Getppid(), 0), "it is none of them")
}
