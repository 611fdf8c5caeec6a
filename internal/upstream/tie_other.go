//go:build !linux && !(windows && (amd64 || arm64))

package upstream

import "os/exec"

// tie does nothing: no such thing is known of this system. If this process is killed, its
// children must end by themselves when their standard input closes.
func tie(*exec.Cmd) {}

func tied(*exec.Cmd) (release func()) { return func() {} }
