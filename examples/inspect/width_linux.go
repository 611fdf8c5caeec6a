package main

import (
	"os"
	"syscall"
	"unsafe"
)

// width returns how many columns f has if it is a terminal, and otherwise 80.
func width(f *os.File) int {
	var size struct{ rows, columns, x, y uint16 }
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if err != 0 || size.columns == 0 {
		return plainWidth
	}
	return int(size.columns)
}
