//go:build amd64 || arm64

package upstream

import (
	"os/exec"
	"syscall"
	"unsafe"
)

var (
	kernel32                 = syscall.NewLazyDLL("kernel32.dll")
	createJobObject          = kernel32.NewProc("CreateJobObjectW")
	setInformationJobObject  = kernel32.NewProc("SetInformationJobObject")
	assignProcessToJobObject = kernel32.NewProc("AssignProcessToJobObject")
)

const (
	jobObjectExtendedLimitInformation = 9
	jobObjectLimitKillOnJobClose      = 0x2000
	processTerminate                  = 0x0001
	processSetQuota                   = 0x0100
)

// extendedLimits is JOBOBJECT_EXTENDED_LIMIT_INFORMATION on systems of 64 bits.
type extendedLimits struct {
	processTime, jobTime   int64
	flags                  uint32
	minWorking, maxWorking uintptr
	activeProcesses        uint32
	affinity               uintptr
	priority, scheduling   uint32
	io                     [6]uint64
	memory                 [4]uintptr
}

// dieWithParent does nothing here: see untilReaped.
func dieWithParent(*exec.Cmd) {}

// untilReaped puts a child that has just started into a job of its own. The job ends with all in
// it when its last handle closes: by release, or when this process ends, however it does.
// What the child has started before is not in the job.
func untilReaped(cmd *exec.Cmd) (release func()) {
	none := func() {}
	job, _, _ := createJobObject.Call(0, 0)
	if job == 0 {
		return none
	}
	release = func() { _ = syscall.CloseHandle(syscall.Handle(job)) }
	limits := extendedLimits{flags: jobObjectLimitKillOnJobClose}
	done, _, _ := setInformationJobObject.Call(job, jobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), unsafe.Sizeof(limits))
	if done == 0 {
		release()
		return none
	}
	child, err := syscall.OpenProcess(processTerminate|processSetQuota, false, uint32(cmd.Process.Pid))
	if err != nil {
		release()
		return none
	}
	defer func() { _ = syscall.CloseHandle(child) }()
	if done, _, _ = assignProcessToJobObject.Call(job, uintptr(child)); done == 0 {
		release()
		return none
	}
	return release
}
