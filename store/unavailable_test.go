package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
)

func TestRetry(t *testing.T) {
	away := fmt.Errorf("test: %w", store.ErrUnavailable)
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("another error")
		for _, last := range []error{nil, other} {
			asked, began := 0, time.Now()
			err := store.Retry(t.Context(), func() error {
				if asked++; time.Since(began) < 20*time.Second {
					return away
				}
				return last
			})
			assert.Equal(t, last, err)
			assert.Less(t, asked, 90, "it waits between attempts")
			assert.LessOrEqual(t, time.Since(began), 20*time.Second+500*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.Equal(t, away, store.Retry(ctx, func() error { return away }))
	})
}
