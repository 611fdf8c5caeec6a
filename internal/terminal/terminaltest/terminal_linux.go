// Package terminaltest is for tests only: it has terminals.
package terminaltest

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// end follows all that was written: Linux may drop what nobody has read yet when a
// terminal is closed.
const end byte = 0

// Open returns a terminal of that size, and a function that closes it and returns what
// was written to it, with "\n" at the end of lines.
func Open(t testing.TB, columns, rows int) (f *os.File, written func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	control := func(request uintptr, of unsafe.Pointer) {
		_, _, err := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(of))
		require.Zero(t, err)
	}
	var number, locked int32
	size := struct{ rows, columns, x, y uint16 }{uint16(rows), uint16(columns), 0, 0}
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	f, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	read := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(master).ReadString(end)
		read <- strings.ReplaceAll(strings.TrimSuffix(text, string(end)), "\r\n", "\n")
	}()
	return f, func() string {
		_, err := f.Write([]byte{end})
		require.NoError(t, err)
		text := <-read
		require.NoError(t, f.Close())
		return text
	}
}
