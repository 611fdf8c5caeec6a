package mcphybrid

import (
	"context"
	"slices"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/meaning"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/mcphybrid/mcphybrid/vector"
)

// What the tests of package mcphybrid_test use of this package: its test
// helpers, and what a host can't see.
var (
	NewTestManager = newTestManager
	Check          = check
	Child          = child
	Serving        = serving

	MeaningTools   = meaningTools
	Embedded       = embedded
	TextsEmbedded  = func(m *Manager) bool { return m.semantic.Idle() }
	ErrNotEmbedded = meaning.ErrNotEmbedded
	FoundText      = textFoundActive + textUntrusted
	NothingText    = textNothingFound
)

// A Recorder is a vector store that records the changes it is asked for.
type Recorder = recordingStore

// NewTestStore returns a document in memory.
func NewTestStore() store.Document { return new(mcptest.Store) }

// NewConcepts returns an embedder that calls embed before it embeds.
func NewConcepts(embed func(context.Context) error) *concepts {
	c := newConcepts()
	c.embed = embed
	return c
}

// Texts returns what c has embedded.
func (c *concepts) Texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.texts)
}

// NewTestUser returns a user with its own tools, and the Manager of the user's
// servers.
func NewTestUser(t *testing.T, m *Manager, id string, tools ...mcpserver.ServerTool) (*User, *Manager) {
	own := newUser(t, m, id, nil, tools...)
	return &User{own}, own
}

// StoreOf returns the store in which m searches by meaning.
func StoreOf(m *Manager) vector.Store { return m.semantic.Store }
