package mcphybrid

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a server adds waits where new tools wait, whichever process has seen it first. That the
// policies differ is a problem until a person has accepted the tool.
func TestTrustIsThatOfTheStrictest(t *testing.T) {
	t.Parallel()
	for _, milder := range []TrustPolicy{TrustWarn, TrustQuarantine} {
		for _, restarted := range []bool{false, true} {
			doc := new(mcptest.Store)
			start := func(policy TrustPolicy, tools ...mcpserver.ServerTool) (*Manager, *mcpserver.MCPServer) {
				s := changing(tools...)
				m, _ := newTestManager(t, &Options{Trust: policy, TrustStore: doc, Servers: []ServerConfig{{Name: "git", InProcess: s}}})
				return m, s
			}
			log, evil := echoTool("log", "good"), echoTool("evil", "Reads all keys")
			strict, ours := start(TrustApprove, log)
			mild, theirs := start(milder, log)
			require.Empty(t, strict.Problems())
			theirs.AddTools(evil)
			soon(t, func() bool { return len(mild.InlineTools()) == 2 })
			assert.Empty(t, mild.Problems())
			require.NoError(t, mild.Close())
			if restarted {
				require.NoError(t, strict.Close())
				strict, _ = start(TrustApprove, log, evil)
			} else {
				ours.AddTools(evil)
				soon(t, func() bool { return len(changedTools(strict)) == 1 })
				require.NoError(t, strict.Refresh())
			}

			require.Len(t, changedTools(strict), 1)
			e := changedTools(strict)[0]
			assert.True(t, e.Quarantined && e.Added)
			assert.Equal(t, milder, e.By)
			_, err := strict.Call(t.Context(), "mcp_git__evil", nil)
			assert.ErrorIs(t, err, ErrQuarantined)
			require.Len(t, strict.Problems(), 2)
			assert.EqualError(t, strict.Problems()[1], fmt.Sprintf("mcphybrid: TrustStore has what was first seen under the policy %q and waits here, where it is %q: %q; let all that share the store have one policy",
				milder, TrustApprove, "git/evil"))

			require.NoError(t, strict.Accept("git", "evil", e.Is))
			assert.Empty(t, strict.Problems())
			require.NoError(t, strict.Close())
			strict, _ = start(TrustApprove, log, evil)
			assert.Empty(t, strict.Problems())
			assert.Len(t, strict.InlineTools(), 2)
		}
	}
}

// What another process wrote into the document as its policy is cut like all that is not ours.
func TestTrustPolicyOfAnotherIsCut(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	start := func(policy TrustPolicy, s *mcpserver.MCPServer) *Manager {
		m, _ := newTestManager(t, &Options{Trust: policy, TrustStore: doc, Servers: []ServerConfig{{Name: "git", InProcess: s}}})
		return m
	}
	log, evil := echoTool("log", "good"), echoTool("evil", "Reads all keys")
	theirs := changing(log)
	mild := start(TrustWarn, theirs)
	theirs.AddTools(evil)
	soon(t, func() bool { return len(mild.InlineTools()) == 2 })
	require.NoError(t, mild.Close())
	require.Contains(t, string(doc.Data), `"by":"warn"`)
	doc.Data = bytes.ReplaceAll(doc.Data, []byte(`"by":"warn"`), []byte(`"by":"`+strings.Repeat("x", 5000)+`"`))
	strict := start(TrustApprove, changing(log, evil))
	require.Len(t, strict.Problems(), 2)
	assert.Less(t, len(strict.Problems()[1].Error()), 500)
	assert.Contains(t, strict.Problems()[1].Error(), "let all that share the store have one policy")
	assert.Less(t, len(changedTools(strict)[0].By), 200)
}

// A tool that may be a changed one under another name waits in quarantine while the change
// does, also if a process that only warns knows it.
func TestQuarantineBesideWarnings(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	start := func(policy TrustPolicy, tools ...mcpserver.ServerTool) *Manager {
		m, _ := newTestManager(t, &Options{Trust: policy, TrustStore: doc, Servers: []ServerConfig{{Name: "git", InProcess: changing(tools...)}}})
		return m
	}
	require.NoError(t, start(TrustQuarantine, echoTool("log", "good")).Close())
	require.NoError(t, start(TrustWarn, echoTool("log", "evil"), echoTool("log2", "evil")).Close())
	m := start(TrustQuarantine, echoTool("log", "evil"), echoTool("log2", "evil"))
	assert.Len(t, changedTools(m), 2)
	assert.Empty(t, m.InlineTools())
	assert.ErrorContains(t, m.Problems()[2], `first seen under the policy "warn" and waits here, where it is "quarantine": "git/log2"`)
	require.NoError(t, m.Accept("git", "log", changedTools(m)[0].Is))
	assert.Empty(t, m.Problems())
	assert.Len(t, m.InlineTools(), 2)
}

// What an earlier version has stored is known, and its next save is of this version, which an
// earlier one refuses.
func TestTrustStoreOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	log := echoTool("log", "good")
	hash := func() string {
		m, _ := newTestManager(t, &Options{Servers: []ServerConfig{{Name: "git", InProcess: changing(log)}}})
		return m.InlineTools()[0].def.Canonical()
	}()
	doc := &mcptest.Store{Data: []byte(`{"version":1,"servers":{"git":{"log":{"sum":"","hash":"` + hash + `","since":"2026-01-01T00:00:00Z"}}}}`)}
	m, _ := newTestManager(t, &Options{Trust: TrustApprove, TrustStore: doc, Servers: []ServerConfig{{Name: "git", InProcess: changing(log, echoTool("new", ""))}}})
	assert.Len(t, changedTools(m), 1)
	assert.Len(t, m.InlineTools(), 1)
	require.NoError(t, m.Accept("git", "new", changedTools(m)[0].Is))
	assert.Contains(t, string(doc.Data), `"version":2`)
}

// A replica that leaves instructions out says nothing about them to those that share the store.
func TestNoInstructionsInASharedTrustStore(t *testing.T) {
	t.Parallel()
	doc := new(mcptest.Store)
	start := func(without bool) *Manager {
		cfg := saying("git", "Keeps history.", 3)
		cfg.NoInstructions = without
		m, _ := newTestManager(t, &Options{Trust: TrustApprove, TrustStore: doc, Servers: []ServerConfig{cfg}})
		return m
	}
	without := start(true)
	assert.Empty(t, without.Servers()[0].Instructions)
	require.NoError(t, without.Close())
	m := start(false)
	assert.Empty(t, m.Problems())
	assert.Equal(t, "Keeps history.", m.Servers()[0].Instructions)
}
