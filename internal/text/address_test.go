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
	for _, same := range []string{
		"", "0x", "0xc0", "0x1f4", "color 0xff8800", "0xdeadbeef", "status 0x80070005", "0x52908400098527886e0f7030069857d2e4169ee7",
		"commit 3c000123456789", "0xffffffffffffffff", "0xffffffffffffffffff",
	} {
		assert.Equal(t, same, WithoutAddresses(same))
	}
}
