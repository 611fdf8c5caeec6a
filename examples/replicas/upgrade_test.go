package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// beforeOpenings is the last commit whose stores don't know openings: it can't read what they
// keep of a state of version 5. No release was older.
const beforeOpenings = "26ff693d0815"

var from = flag.String("from", "", "the `commit` from which TestUpgrade upgrades, if not the last release")

// built builds this test as it was at a commit.
func built(t *testing.T, commit string) string {
	folder := t.TempDir()
	run := func(name string, args ...string) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, out)
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	archive := filepath.Join(folder, "tree.tar")
	run("git", "-C", root, "archive", "-o", archive, commit)
	run("tar", "-xf", archive)
	run("go", "test", "-C", "examples/replicas", "-vet=off", "-c", "-o", filepath.Join(folder, "before"), ".")
	return filepath.Join(folder, "before")
}

// git returns what git says, or "".
func git(t *testing.T, args ...string) string {
	out, err := exec.CommandContext(t.Context(), "git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Replicas of the version before and of this one serve the same conversations, while one after the other
// is replaced, and put back. Then this version writes what it likes, and a replica that was forgotten
// refuses that and leaves it as it is.
func TestUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the version before is not built")
	}
	release, _, _ := strings.Cut(git(t, "-c", "versionsort.suffix=-", "tag", "--list", "v[0-9]*", "--sort=-v:refname"), "\n")
	commit := cmp.Or(*from, release, beforeOpenings)
	if git(t, "rev-parse", "--verify", "--quiet", commit+"^{commit}") == "" {
		t.Skipf("no git history here: there is no %s to upgrade from", commit)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	before := program{path: built(t, commit)}
	during := program{self, []string{wholeVariable + "=1", versionVariable + "=4"}}
	now := program{self, []string{wholeVariable + "=1"}}

	const replicas = 3
	programs := make([]program, replicas)
	steps := []struct {
		what    string
		program program
		replica int
	}{
		{"this version", during, 0}, {"this version", during, 1}, {"the version before", before, 0}, {"this version", during, 0}, {"this version", during, 2},
		{"the newest form", now, 0}, {"the newest form", now, 1}, {"the newest form", now, 2},
	}
	for i := range programs {
		programs[i] = before
	}
	var refused error
	r, err := play(t.Context(), settings{
		replicas: replicas, conversations: 10, think: 20 * time.Millisecond, programs: programs,
		disturb: func(ctx context.Context, c *cast) error {
			if err := c.goesOn(ctx); err != nil {
				return err
			}
			all := probe{c: c, id: "from the beginning"}
			for _, step := range steps {
				t.Logf("replica %d: %s", step.replica+1, step.what)
				programs[step.replica] = step.program
				if err := c.replace(ctx, step.replica); err != nil {
					return err
				}
				if err := all.askAll(ctx); err != nil {
					return fmt.Errorf("after replica %d has %s: %w", step.replica+1, step.what, err)
				}
			}
			forgotten, err := before.begin("as-replica", c.url, c.desk)
			if err != nil {
				return err
			}
			defer forgotten.kill()
			if err := until(ctx, func() bool { return forgotten.at() != "" }); err != nil {
				return err
			}
			newest := probe{c: c, id: "of the newest form"} // what was saved in the other form keeps it
			if err := newest.askAll(ctx); err != nil {
				return err
			}
			refused = newest.ask(ctx, forgotten.at())
			return errors.Join(newest.askAll(ctx), all.askAll(ctx), c.goesOn(ctx))
		},
	}, t.Logf)
	require.NoError(t, err)
	t.Log(r)
	if commit == beforeOpenings {
		assert.Error(t, refused, "the version before reads the newest form")
		t.Logf("the version before says: %v", refused)
	}
}

// A probe is one more conversation, of which each replica is asked in turn: others retry until any replica
// answers.
type probe struct {
	c  *cast
	id string
	n  int // of its next message
}

// ask asks a replica for the next message, once.
func (p *probe) ask(ctx context.Context, at string) error {
	body, err := json.Marshal(turn{p.id, p.n, question(99, p.n)})
	if err != nil {
		return err
	}
	status, data, err := send(ctx, http.MethodPost, at+"/turn", body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, strings.TrimSpace(string(data)))
	}
	if err == nil {
		p.n++
	}
	return err
}

// askAll asks all replicas.
func (p *probe) askAll(ctx context.Context) error {
	for i, at := range p.c.addresses() {
		if err := p.ask(ctx, at); err != nil {
			return fmt.Errorf("replica %d: %w", i+1, err)
		}
	}
	return nil
}
