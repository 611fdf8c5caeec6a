package approve

import (
	"context"
	"sync/atomic"

	"github.com/mcphybrid/mcphybrid/store"
)

// An onlooker is a store of what is known that stays as it is while a person looks: what
// servers list now becomes known only when something is approved.
type onlooker struct {
	store.Shared
	writes atomic.Bool // set before something is approved
}

// Update implements [store.Shared].
func (o *onlooker) Update(ctx context.Context, change func([]byte) ([]byte, error)) error {
	return o.Shared.Update(ctx, func(document []byte) ([]byte, error) {
		changed, err := change(document)
		if o.writes.Load() { // asked only now: what is approved meanwhile is in it
			return changed, err
		}
		return document, err
	})
}
