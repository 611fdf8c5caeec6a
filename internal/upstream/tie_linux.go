package upstream

import (
	"os/exec"
	"syscall"
)

// tie has the kernel kill a child with the thread that starts it, and so with this
// process, however that ends. Call it after ownGroup. Who starts the child must stay on
// its thread until the child ends.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// tied does nothing here: tie has done it.
func tied(*exec.Cmd) (release func()) { return func() {} }
