package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the tests, or the program.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// Help for a command is its sentence and its flags, on standard output.
func TestHelpOfCommands(t *testing.T) {
	for _, c := range commands() {
		status, stdout, stderr := mcphybrid(t, "help", c.name)
		assert.Zero(t, status)
		assert.Empty(t, stderr)
		assert.True(t, strings.HasPrefix(stdout, "mcphybrid "+c.name+": "+c.does+"\n\n"), stdout)
		if c.name != "version" && c.name != "completion" {
			assert.Regexp(t, `(?m)^  -\w`, stdout)
		}
	}
	status, _, stderr := mcphybrid(t, "help", "gatway")
	assert.Equal(t, 2, status)
	assert.Contains(t, stderr, `there is no command "gatway"`)
	status, _, stderr = mcphybrid(t, "help", "gateway", "x")
	assert.Equal(t, 2, status)
	assert.Equal(t, "help: unexpected argument \"x\"\n", stderr)
}

// Who asks for help, or names no shell, is told which there are.
func TestHelpOfCompletion(t *testing.T) {
	const usage = "completion: name one shell: bash, zsh or fish, as in  source <(mcphybrid completion bash)\n"
	for _, test := range []struct {
		args   []string
		status int
	}{{[]string{"-h"}, 0}, {[]string{"help"}, 0}, {nil, 2}, {[]string{"csh"}, 2}, {[]string{"-h", "bash"}, 2}, {[]string{"bash", "zsh"}, 2}} {
		status, stdout, stderr := mcphybrid(t, append([]string{"completion"}, test.args...)...)
		assert.Equal(t, test.status, status, test.args)
		assert.Equal(t, usage, stdout+stderr, test.args)
		assert.Equal(t, test.status == 0, stderr == "", test.args)
	}
}

// A real bash completes commands, their flags, and the shells.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	_, script, _ := mcphybrid(t, "completion", "bash")
	nothing := []struct{ words, want string }{{"gateway mcp", ""}, {"nonsense -x", ""}}
	for _, test := range append(nothing, completions...) {
		words := strings.Fields(test.words)
		run := exec.Command(bash, "-c", `mcphybrid() { TEST_PROGRAM=1 "$SELF" "$@"; }
`+script+`
COMP_WORDS=(mcphybrid "$@") COMP_CWORD=$#
_mcphybrid
echo "${COMPREPLY[*]}"`, "bash")
		run.Args = append(run.Args, words...)
		run.Env = append(os.Environ(), "SELF="+self)
		out, err := run.CombinedOutput()
		assert.NoError(t, err)
		assert.Equal(t, test.want+"\n", string(out), test.words)
	}
}

// completions are command lines, and what they end in when they have been completed.
var completions = []struct{ words, want string }{
	{"g", "gateway"},
	{"help do", "doctor"},
	{"completion f", "fish"},
	{"doctor -dia", "-dialect"},
	{"gateway -log-a", "-log-arguments"},
}

// A real fish completes commands, their flags, and the shells.
func TestCompletionInFish(t *testing.T) {
	script, here := inShell(t, "fish")
	for _, test := range completions {
		out := here("-N", "-c", `function mcphybrid; TEST_PROGRAM=1 $SELF $argv; end
`+script+`
complete -C "mcphybrid $argv"`, "--", test.words)
		word, _, _ := strings.Cut(strings.TrimSpace(out), "\t")
		assert.Equal(t, test.want, word, test.words)
	}
}

// So does a real zsh, in a terminal of its own.
func TestCompletionInZsh(t *testing.T) {
	script, here := inShell(t, "zsh")
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte("mcphybrid() { TEST_PROGRAM=1 $SELF \"$@\" }\n"+script), 0o600))
	for _, test := range completions {
		out := here("-f", "-c", `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "autoload -U compinit; compinit -u -D; source '$1'; bindkey '^I' complete-word; echo set''up"
zpty -r z out '*setup*'
zpty -w -n z "mcphybrid $2"$'\t'
zpty -r z out "*$3*"
echo "$out"
zpty -d z`, "zsh", path, test.words, test.want)
		assert.Contains(t, out, test.want, test.words)
	}
}

// inShell returns the script of a shell, and what runs that shell and returns what it says.
func inShell(t *testing.T, shell string) (script string, here func(args ...string) string) {
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("NOTE: %s is not here, so its completion is not tried", shell)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	_, script, _ = mcphybrid(t, "completion", shell)
	return script, func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		run := exec.CommandContext(ctx, path, args...)
		run.Env = append(os.Environ(), "SELF="+self, "HOME="+t.TempDir())
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, out)
		return string(out)
	}
}

// Shells that are here find no mistake in their scripts.
func TestCompletionScripts(t *testing.T) {
	for shell := range scripts {
		status, script, _ := mcphybrid(t, "completion", shell)
		assert.Zero(t, status)
		assert.NotContains(t, script, "COMMANDS")
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("NOTE: %s is not here, so its script is not parsed", shell)
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(script)
		out, err := check.CombinedOutput()
		assert.NoError(t, err, "%s: %s", shell, out)
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		status, stdout, stderr := mcphybrid(t, args...)
		assert.Equal(t, 2, status)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "bash, zsh or fish")
	}
}
