//go:build !linux

package upstream

// killStrays does nothing: other systems don't show the environment of a process.
// A process that left the process group must end by itself.
func killStrays(string) {}
