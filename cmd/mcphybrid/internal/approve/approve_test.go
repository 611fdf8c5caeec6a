package approve

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/exit"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/plain"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestApprovalsAreQuoted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show(&b, []*mcphybrid.ChangedError{{Server: "it's", Tool: "a; rm -rf ~", Kind: "tool", Is: strings.Repeat("ab", 32), Definition: json.RawMessage("{\"a\":\"\u009b1m\"}")}}, "mcphybrid approve")
	assert.Equal(t, `tool "a; rm -rf ~" of server "it's" is new
  {"a":"\u009b1m"}
  to approve it: mcphybrid approve 'it'\''s' 'a; rm -rf ~' `+strings.Repeat("ab", 32)+"\n", b.String())
}

// A person learns that a new tool is in use where it does not wait.
func TestApproveSaysWhereAToolIsUsed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show(&b, []*mcphybrid.ChangedError{{Server: "s", Tool: "t", Kind: "tool", By: mcphybrid.TrustQuarantine}}, "")
	assert.Contains(t, b.String(), "tool \"t\" of server \"s\" is new; gateways with -trust-policy quarantine use it already\n")
}

// A person learns how long a changed tool has waited.
func TestApproveSaysSinceWhen(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	since := time.Date(2026, 11, 30, 9, 5, 0, 0, time.Local)
	show(&b, []*mcphybrid.ChangedError{{Server: "s", Tool: "t", Kind: "prompt", Since: since, Is: "ab", Definition: json.RawMessage(`{}`)}}, "c")
	assert.Equal(t, "prompt \"t\" of server \"s\" has changed since 2026-11-30 09:05\n  {}\n  to approve it: c s t ab\n", b.String())
}

// What a server, or an error of one, says does not reach the terminal as it is, and stays
// one line.
func TestApprovePrintsForATerminal(t *testing.T) {
	t.Parallel()
	const hostile = "two\x1b[1A\x1b[2K\rnothing is held back\n'; touch pwned; '\\\u202e"
	var b strings.Builder
	show(&b, []*mcphybrid.ChangedError{{Server: "s", Tool: hostile, Kind: "tool", Is: strings.Repeat("ab", 32), Definition: json.RawMessage(`{"name":"x"}`)}}, "mcphybrid approve")
	assert.Equal(t, 3, strings.Count(b.String(), "\n"))
	assert.Contains(t, b.String(), `s $'two\033[1A\033[2K\015nothing is held back\012\047; touch pwned; \047\134\342\200\256' abab`)
	exit.Report(&b, "approve", errors.Join(errors.New("one: "+hostile), fmt.Errorf("two: %w", errors.New(hostile))))
	assert.Equal(t, 5, strings.Count(b.String(), "\n"))
	for _, r := range b.String() {
		assert.True(t, r == '\n' || unicode.IsPrint(r), "%q", r)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		said, err := exec.CommandContext(t.Context(), bash, "-c", "printf %s "+plain.Quoted(hostile)).Output()
		require.NoError(t, err)
		assert.Equal(t, hostile, string(said))
	}
}

// Who shares a file by different paths goes on to share it.
func TestApprovalBehindALink(t *testing.T) {
	mcptest.SkipUnlessUnix(t)
	file := commandtest.WriteFile(t, "secret", `{"version": 1}`)
	link := filepath.Join(t.TempDir(), "link.json")
	require.NoError(t, os.Symlink(file, link))
	real, err := filepath.EvalSymlinks(file)
	require.NoError(t, err)
	var a approval
	require.NoError(t, a.parse([]string{"-trust", link}, t.Output()))
	assert.Equal(t, real, a.known)
	require.NoError(t, os.Remove(file))
	assert.EqualError(t, a.parse([]string{"-trust", link}, t.Output()), "-trust: "+link+" is a link to a file that is not there")
}
