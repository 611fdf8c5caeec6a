package main

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid"
)

// An onlooker is a store of what is known that stays as it is while a person looks: what
// servers list now becomes known only when something is approved.
type onlooker struct {
	mcphybrid.SharedStore
	hash   string      // of what is approved
	writes atomic.Bool // set before it is approved
	stored chan error  // gets nil when the hash is in the store, or why it is not; of capacity 1
}

func newOnlooker(file, hash string) *onlooker {
	return &onlooker{SharedStore: mcphybrid.FileStore(file), hash: hash, stored: make(chan error, 1)}
}

// Update implements [mcphybrid.SharedStore].
func (o *onlooker) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	has := false
	err := o.SharedStore.Update(ctx, func(document []byte) ([]byte, error) {
		changed, err := change(document)
		if err != nil || !o.writes.Load() { // asked only now: what is approved meanwhile is in it
			return document, err
		}
		has = bytes.Contains(changed, []byte(o.hash))
		return changed, nil
	})
	if has || err != nil && o.writes.Load() {
		select {
		case o.stored <- err:
		default: // it has the first
		}
	}
	return err
}
