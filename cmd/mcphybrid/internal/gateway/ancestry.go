package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid"
)

// ancestryVariable has the sums of the files of a gateway and of those that started it, through
// whatever programs. A file that has its own gateway among its servers would start it without end.
const ancestryVariable = "MCPHYBRID_ANCESTRY"

// ancestry returns what servers of a file get in ancestryVariable, or an error if the gateway was
// started by one with that file.
func ancestry(file string) (string, error) {
	path := absolute(file)
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	sum := sha256.Sum256([]byte(path))
	own, above := hex.EncodeToString(sum[:8]), os.Getenv(ancestryVariable)
	if slices.Contains(strings.Split(above, ","), own) {
		return "", fmt.Errorf("%s has a server that starts a gateway with the same file, and so on without end: remove that server, or give the gateway a file of its own", file)
	}
	return strings.TrimPrefix(above+","+own, ","), nil
}

// asChild returns a server whose process and what that starts know the gateway's file.
func (g *gateway) asChild(s mcphybrid.ServerConfig) mcphybrid.ServerConfig {
	if s.Command == "" || g.opts.ancestry == "" {
		return s
	}
	if s.Env = maps.Clone(s.Env); s.Env == nil {
		s.Env = make(map[string]string)
	}
	s.Env[ancestryVariable] = g.opts.ancestry
	return s
}
