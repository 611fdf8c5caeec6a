package mcptest

import (
	"runtime/debug"
	"slices"
)

// Race reports whether the race detector is on. It allocates, and makes pools
// forget at random.
func Race() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
