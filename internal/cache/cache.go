// Package cache has the stored form of what servers have listed, by which there is a
// catalog before any server runs.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/document"
	"github.com/mcphybrid/mcphybrid/internal/names"
	"github.com/mcphybrid/mcphybrid/internal/text"
)

// A Catalog is the document in the store.
type Catalog struct {
	Version int               `json:"version"`
	Names   []names.Claim     `json:"names,omitempty"`
	Servers map[string]Server `json:"servers"` // by name
}

const version = 1

// A Server is what a server has listed.
type Server struct {
	Config string    `json:"config"` // see [Key]
	Listed time.Time `json:"listed"` // when it listed the tools
	Tools  []string  `json:"tools"`  // elements of tools/list results, as strings to keep each byte

	// More has the elements of the other lists, by what they are.
	More map[string][]string `json:"more,omitempty"`
}

// Key returns a hash of those parts of a configuration by which a server may have
// other tools.
func Key(parts ...any) string {
	data, _ := json.Marshal(parts)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Read returns the catalog in the store, which may be nil. It is empty if there is
// none, or if another version wrote it: the next [Catalog.Save] replaces it.
func Read(store document.Store) (*Catalog, error) {
	if store == nil {
		return new(Catalog), nil
	}
	data, err := store.Load()
	if err != nil {
		return nil, err
	}
	return parse(data)
}

func parse(data []byte) (*Catalog, error) {
	c := new(Catalog)
	if data == nil {
		return c, nil
	}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("the cached catalog: %w", text.JSONError(data, err))
	}
	if c.Version != version {
		return new(Catalog), nil
	}
	return c, nil
}

// Save replaces the catalog in the store, but for the names there: see [names.Merge].
// It adds those to the names of c. If the store can't be read, Save writes nothing:
// it would overwrite the names. What is there and is no catalog is replaced.
func (c *Catalog) Save(store document.Store) error {
	data, err := store.Load()
	if err != nil {
		return err
	}
	if stored, err := parse(data); err == nil {
		c.Names = names.Merge(stored.Names, c.Names)
	}
	c.Version = version
	if data, err = json.Marshal(c); err != nil {
		return err
	}
	return store.Save(data)
}
