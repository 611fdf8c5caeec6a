package upstream

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill a child with the thread that starts it, and so with this
// process, however that ends. Call it after ownGroup. Who starts the child must stay on
// its thread until the child ends.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// untilReaped does nothing here: dieWithParent has done it.
func untilReaped(*exec.Cmd) (release func()) { return func() {} }
