package mcptest

import "os"

// Long returns long where tests are to repeat what they do until it tells
// nothing new, which .ci/full asks for by MCPHYBRID_LONG, and otherwise short.
func Long[T any](long, short T) T {
	if os.Getenv("MCPHYBRID_LONG") != "" {
		return long
	}
	return short
}
