package change

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is what all functions return, each of the mutants 0 to 17 in its own.
func said() string {
	p := func(b bool) func() bool { return func() bool { return b } }
	return fmt.Sprintln(
		On(0), Not(1, true), Less(2, 1, 1), AtMost(3, "a", "a"), More(4, 1, 1), AtLeast(5, 1, 1), Sum(6, 3, 1), Difference(7, 3, 1),
		And(8, 9, 10, true, p(false)), And(8, 9, 10, false, p(true)), Or(11, 12, 13, true, p(false)), Or(11, 12, 13, false, p(true)),
		Fail(14, errors.New("e")), Pick(15, "was", "is"), Min(16, 1, 2), Max(17, 1, 2))
}

func TestSaid(t *testing.T) {
	if os.Getenv(Active) != "" {
		fmt.Print(said())
		return
	}
	plain := "false true false true false true 4 2 false false true true e was 1 2"
	for id, want := range map[int]string{
		-1: plain,
		0:  "true true false true false true 4 2 false false true true e was 1 2",
		1:  "false false false true false true 4 2 false false true true e was 1 2",
		2:  "false true true true false true 4 2 false false true true e was 1 2",
		3:  "false true false false false true 4 2 false false true true e was 1 2",
		4:  "false true false true true true 4 2 false false true true e was 1 2",
		5:  "false true false true false false 4 2 false false true true e was 1 2",
		6:  "false true false true false true 2 2 false false true true e was 1 2",
		7:  "false true false true false true 4 4 false false true true e was 1 2",
		8:  "false true false true false true 4 2 true true true true e was 1 2",
		9:  "false true false true false true 4 2 true false true true e was 1 2",
		10: "false true false true false true 4 2 false true true true e was 1 2",
		11: "false true false true false true 4 2 false false false false e was 1 2",
		12: "false true false true false true 4 2 false false true false e was 1 2",
		13: "false true false true false true 4 2 false false false true e was 1 2",
		14: "false true false true false true 4 2 false false true true <nil> was 1 2",
		15: "false true false true false true 4 2 false false true true e is 1 2",
		16: "false true false true false true 4 2 false false true true e was 2 2",
		17: "false true false true false true 4 2 false false true true e was 1 1",
	} {
		file := filepath(t)
		c := exec.Command(os.Args[0], "-test.run", "^TestSaid$")
		c.Env = append(os.Environ(), fmt.Sprint(Active, "=", id), Reached+"="+file)
		out, err := c.Output()
		require.NoError(t, err)
		assert.Contains(t, string(out), want+"\n", "%d", id)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if id == -1 {
			assert.Len(t, data, 4*18, "each once, although some are asked twice")
		}
	}
	assert.Equal(t, plain+"\n", said())
}

func filepath(t *testing.T) string {
	file, err := os.CreateTemp(t.TempDir(), "reached")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	return file.Name()
}
