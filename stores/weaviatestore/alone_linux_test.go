package weaviatestore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// startAlone starts a command in its own network and process namespace, as the
// first process there. When it ends, however it does, the kernel ends all
// others. It also ends with the thread that calls startAlone.
func startAlone(command func() *exec.Cmd) (*exec.Cmd, error) {
	const namespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
	var errs []error
	for _, attr := range []*syscall.SysProcAttr{
		{ // as an ordinary user, who is root there
			Cloneflags:  namespaces | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			Pdeathsig:   syscall.SIGKILL,
		},
		{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}, // as root
	} {
		cmd := command()
		cmd.SysProcAttr = attr
		err := cmd.Start()
		if err == nil {
			return cmd, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no network namespace can be had: %w", errors.Join(errs...))
}

// loopbackUp sets up 127.0.0.1 in a new network.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("the loopback interface: %w", err)
	}
	return nil
}
