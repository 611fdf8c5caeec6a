package upstream

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The version is that of this module, whether it is the program's own or a dependency.
func TestVersion(t *testing.T) {
	t.Parallel()
	const path = "github.com/mcphybrid/mcphybrid"
	other := &debug.Module{Path: path + "/codemode", Version: "v9.9.9"}
	assert.Equal(t, "unknown", versionIn(nil))
	assert.Equal(t, "v1.2.3", versionIn(&debug.BuildInfo{Main: debug.Module{Path: path, Version: "v1.2.3"}}))
	assert.Equal(t, "v1.2.3", versionIn(&debug.BuildInfo{Main: *other, Deps: []*debug.Module{other, {Path: path, Version: "v1.2.3"}}}))
	assert.Equal(t, "unknown", versionIn(&debug.BuildInfo{Main: *other, Deps: []*debug.Module{other}}))
	assert.NotEmpty(t, version())
}
