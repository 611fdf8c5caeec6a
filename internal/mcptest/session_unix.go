//go:build unix

package mcptest

import (
	"os/exec"
	"syscall"
)

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
