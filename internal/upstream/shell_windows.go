package upstream

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a command line for cmd.exe, which takes it as it is.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /d /s /c "` + line + `"`}
	return cmd
}
