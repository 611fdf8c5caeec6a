package integration

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The official conformance suite tests the library as a client, through the host in
// conformance/main.go. What fails is in conformance/expected.txt, each with its reason; a
// check that fails no more must leave it.
func TestSpecH4ConformanceOfClient(t *testing.T) {
	suite, err := installMore("conformance")
	require.NoError(t, err)
	nodes, err := filepath.Glob(filepath.Join(suite, "node_modules/node-linux-*/bin/node"))
	require.NoError(t, err)
	require.Len(t, nodes, 1, "the suite needs Node.js 22, which npm installs")
	program := filepath.Join(t.TempDir(), "host")
	require.NoError(t, command(".", nil, "go", "build", "-o", program, "./conformance"))
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			found := t.TempDir()
			cmd := exec.CommandContext(t.Context(), nodes[0], filepath.Join(suite, "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
				"client", "--suite", "all", "--spec-version", version, "--command", program, "--timeout", "60000", "-o", found)
			said, err := cmd.CombinedOutput() // it fails if a check does
			scenarios, failed := conformance(t, found)
			if !assert.Equal(t, expected(t, version), failed) {
				t.Logf("%s\n%v", said, err)
			}
			t.Logf("%s: %d scenarios, %d checks failed or warned", version, scenarios, len(failed))
		})
	}
}

// conformance returns how many scenarios have results in a folder, and the checks that
// failed, as "scenario check", in order.
func conformance(t *testing.T, folder string) (scenarios int, failed []string) {
	failed = []string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var checks []struct{ ID, Status string }
		require.NoError(t, json.Unmarshal(raw, &checks), path)
		require.NotEmpty(t, checks, path)
		scenarios++
		name, err := filepath.Rel(folder, filepath.Dir(path))
		require.NoError(t, err)
		name = whenItRan.ReplaceAllString(name, "")
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				failed = append(failed, name+" "+c.ID)
			}
		}
		return nil
	}))
	require.Greater(t, scenarios, 15)
	slices.Sort(failed)
	return scenarios, slices.Compact(failed)
}

// whenItRan is the end of a folder's name.
var whenItRan = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-\d]+Z$`)

// expected returns the checks that may fail with a version of the protocol, in order.
func expected(t *testing.T, version string) []string {
	raw, err := os.ReadFile("conformance/expected.txt")
	require.NoError(t, err)
	list := []string{}
	for line := range strings.Lines(string(raw)) {
		if check, reason, ok := strings.Cut(strings.TrimPrefix(line, version+" "), ": "); ok && strings.HasPrefix(line, version) {
			require.NotEmpty(t, strings.TrimSpace(reason))
			list = append(list, check)
		}
	}
	return list
}
