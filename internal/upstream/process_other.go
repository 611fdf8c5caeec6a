//go:build !unix

package upstream

import "os/exec"

// ownGroup does nothing: there are no process groups. Only the child itself is
// killed. What it started ends on Windows with its job, see untilReaped, and elsewhere by itself.
func ownGroup(*exec.Cmd) {}

func terminateGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
