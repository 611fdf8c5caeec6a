package mcptest

import "os"

// Long returns long if the environment variable MCPHYBRID_LONG is set, which asks
// tests to repeat longer, and short otherwise.
func Long[T any](long, short T) T {
	if os.Getenv("MCPHYBRID_LONG") != "" {
		return long
	}
	return short
}
