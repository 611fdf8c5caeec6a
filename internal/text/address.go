package text

import (
	"fmt"
	"regexp"
	"strconv"
)

// number matches what may be an address that fmt has printed.
var number = regexp.MustCompile(`\b0x[0-9a-f]{6,16}\b`)

// heapStart is about where the memory of this process begins. Go chooses it anew
// for each process, and it can be low.
var heapStart = func() uint64 {
	n, _ := strconv.ParseUint(fmt.Sprintf("%p", new([64]byte))[2:], 16, 64)
	return n
}()

// A number from heapStart-heapBefore to heapStart+heapAfter is taken for an
// address. Memory is taken in pieces of 64 MB, upwards.
const (
	heapBefore = 1 << 26
	heapAfter  = 1 << 36
)

// WithoutAddresses replaces addresses of this process's memory, which fmt prints
// for pointers within a value, by "0x…". They tell a reader nothing and differ from
// run to run.
func WithoutAddresses(text string) string { return withoutAddresses(text, heapStart) }

func withoutAddresses(text string, start uint64) string {
	return number.ReplaceAllStringFunc(text, func(match string) string {
		n, err := strconv.ParseUint(match[2:], 16, 64)
		if err != nil || n < start && start-n > heapBefore || n > start && n-start > heapAfter {
			return match
		}
		return "0x…"
	})
}
