//go:build !unix

package upstream

import "os/exec"

// ownGroup does nothing: there are no process groups. Only the child itself is
// killed; processes that it started must end by themselves.
func ownGroup(*exec.Cmd) {}

func terminateGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
