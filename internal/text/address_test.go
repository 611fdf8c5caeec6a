package text

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithoutAddresses(t *testing.T) {
	p := new(struct{ next *int })
	p.next = new(int)
	assert.Equal(t, "at 0x… and {0x…}", WithoutAddresses(fmt.Sprintf("at %p and %v", p, *p)))

	// Where memory begins in most processes, and about the lowest and the highest it can.
	for _, start := range []uint64{0xc000000000, 1 << 33, 1<<47 - 1<<22} {
		for _, same := range []string{
			"", "0x", "0xc0", "0x1f4", "color 0xff8800", "0xdeadbeef", "status 0x80070005", "0x52908400098527886e0f7030069857d2e4169ee7",
			"commit 3c000123456789", "0xffffffffffffffff", "0xffffffffffffffffff",
			fmt.Sprintf("%#x", start-heapBefore-1), fmt.Sprintf("%#x", start+heapAfter+1),
		} {
			assert.Equal(t, same, withoutAddresses(same, start), "memory from %#x", start)
		}
		for _, n := range []uint64{start - heapBefore, start, start + heapAfter} {
			assert.Equal(t, "at 0x….", withoutAddresses(fmt.Sprintf("at %#x.", n), start), "memory from %#x", start)
		}
	}
}
