package mcphybrid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/internal/text"
	"github.com/mcphybrid/mcphybrid/internal/trust"
	"github.com/mcphybrid/mcphybrid/internal/upstream"
	"github.com/mcphybrid/mcphybrid/search"
)

// This file is about the instructions of servers: the text in which a server says, when it
// is connected, what it is for and how to use it. It is a foreign text like a description:
// what has not been accepted is neither shown nor searched.
//
//	receive.go ─▶ source.rawInstructions ─ review.go ─▶ source.instructions ─▶ serverTools.instructions ─▶ gist      prompt.go, a line
//	cache.go ──────────▲                                     │                           │              ─▶ searched  the index
//	                                                         ▼                           ▼
//	                                  Manager.Servers: the whole text      modelsearch.go: the whole text

const (
	// maxInstructions is how many bytes of a server's instructions are kept.
	maxInstructions = upstream.MaxInstructions

	// maxSearchedInstructions is how many bytes of them are indexed, with each tool of the server.
	maxSearchedInstructions = 500

	// maxGist is how many characters the line on a server has of them.
	maxGist = 120
)

// These stand for the instructions of a server in a [ChangedError], in the cache of lists,
// and where the trust store has them.
const (
	kindText         = "text"
	nameInstructions = "instructions"
)

// instructionsOf returns the name under which the trust store has the instructions of a
// server. They are a list of their own: a changed text holds back no tools.
func instructionsOf(server string) string { return server + "\x00instructions" }

// instructionsAsDefinition returns instructions in the form of a definition, which can be
// scanned for suspicious text.
func instructionsAsDefinition(instructions string) json.RawMessage {
	return json.RawMessage(text.JSON(struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}{nameInstructions, instructions}))
}

// trustedInstructions returns what must not change of instructions.
func trustedInstructions(instructions string) *trust.Definition {
	sum := sha256.Sum256([]byte(instructions))
	return &trust.Definition{Name: nameInstructions, Sum: sum, Hash: func() string { return hex.EncodeToString(sum[:]) }}
}

// searchedInstructions returns the words of instructions by which a search finds the server's
// tools.
func searchedInstructions(instructions string) string {
	return text.Cut(instructions, maxSearchedInstructions)
}

// An instructionWords is what the document of a tool has of its server's instructions.
type instructionWords struct {
	words string
	last  atomic.Pointer[documentWithInstructions]
}

// A documentWithInstructions is a document with these words: the same from index to index, so
// that the index sees no change.
type documentWithInstructions struct{ of, with *search.Document }

// document returns d with the words. i may be nil.
func (i *instructionWords) document(d *search.Document) *search.Document {
	if i == nil {
		return d
	}
	last := i.last.Load()
	if last == nil || last.of != d {
		with := *d
		with.Instructions = i.words
		last = &documentWithInstructions{d, &with}
		i.last.Store(last)
	}
	return last.with
}
