//go:build !unix

package upstream

import "os/exec"

// Without process groups only the child itself is ended; what it started must
// end by itself.
func ownGroup(*exec.Cmd) {}

func terminateGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
