package mcptest

import (
	"runtime/debug"
	"slices"
)

// Race reports whether the race detector is on. It allocates memory and makes pools
// drop items at random.
func Race() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
