package storeguard

import (
	"context"
	"errors"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
)

// Document returns d with its panics turned into errors that begin with what. It is [store.Parts]
// if d is, and what it updates is shared if d is. It returns nil for nil.
//
// If wait is not 0, a call that takes longer fails, as do those after it until it has returned.
func Document(d store.Document, what string, wait time.Duration) store.Document {
	if d == nil {
		return nil
	}
	c := &calls{what: what, wait: wait}
	guarded := &document{c, d}
	if p, ok := d.(store.Parts); ok {
		return &split{guarded, parts{c, p}}
	}
	return guarded
}

// Name returns what people call a document: the path of a file, or the option that has it.
func Name(d store.Document) string {
	var guarded *document
	switch d := d.(type) {
	case *document:
		guarded = d
	case *split:
		guarded = d.document
	case store.File:
		return string(d)
	default:
		return "the store"
	}
	if f, ok := guarded.of.(store.File); ok {
		return string(f)
	}
	return guarded.calls.what
}

type document struct {
	calls *calls
	of    store.Document
}

// A split is a document that has parts.
type split struct {
	*document
	parts
}

func (d *document) Load() ([]byte, error) { return d.calls.get(d.of.Load) }

func (d *document) Save(data []byte) error {
	return d.calls.do(func(*call) error { return d.of.Save(data) })
}

// Update implements [store.Shared].
func (d *document) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	return d.calls.do(func(c *call) error {
		return Update(ctx, d.of, func(data []byte) ([]byte, error) {
			c.mu.Lock() // who leaves waits for change
			defer c.mu.Unlock()
			if c.left {
				return nil, errors.New("nobody waits for the update any more")
			}
			return change(data)
		})
	})
}

// Update replaces the document of d with what change returns for it. Unless d is a
// [store.Shared], what others save meanwhile is lost.
func Update(ctx context.Context, d store.Document, change func(document []byte) ([]byte, error)) error {
	if shared, ok := d.(store.Shared); ok {
		return shared.Update(ctx, change)
	}
	data, err := d.Load()
	if err == nil {
		data, err = change(data)
	}
	if err != nil {
		return err
	}
	return d.Save(data)
}
