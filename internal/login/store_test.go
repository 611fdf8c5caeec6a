package login

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/internal/storeguard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A storeFunc is a store of a host.
type storeFunc func(ctx context.Context, change func([]byte) ([]byte, error)) error

func (f storeFunc) Update(ctx context.Context, _ string, change func([]byte) ([]byte, error)) error {
	return f(ctx, change)
}

// A refresh whose tokens the store does not save in time is not lost: Close gives up,
// the account has the tokens, and the store saves them when it can.
func TestCloseDuringSave(t *testing.T) {
	t.Parallel()
	memory, saving, hang, saved := new(Memory), make(chan struct{}), make(chan struct{}), make(chan error)
	var slow sync.Once
	a, authority := account(t, memory)
	cfg := a.cfg
	cfg.Store = storeguard.Tokens(storeFunc(func(ctx context.Context, change func([]byte) ([]byte, error)) error {
		err := memory.Update(context.Background(), "k", func(document []byte) ([]byte, error) {
			changed, err := change(document)
			slow.Do(func() { close(saving); <-hang })
			return changed, err
		})
		select {
		case <-hang:
			saved <- err
		default:
		}
		return err
	}), "the store")
	other := New(cfg)
	old, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	got := make(chan string)
	go func() {
		header, err := other.Header(t.Context(), &Refusal{Header: old})
		assert.NoError(t, err)
		got <- header
	}()
	<-saving
	other.Close()
	fresh := <-got
	assert.NotEqual(t, old, fresh)
	close(hang)
	require.NoError(t, <-saved)
	again, err := a.Header(t.Context(), &Refusal{Header: old})
	require.NoError(t, err)
	assert.Equal(t, fresh, again)
	assert.Equal(t, mcptest.Counts{Clients: 1, Refreshes: 1}, authority.Count())
}

// A client of the host's that ignores its context is not waited for either.
func TestClientThatHangs(t *testing.T) {
	t.Parallel()
	tokens := new(Memory)
	a, _ := account(t, tokens)
	old, err := a.Header(t.Context(), nil)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		cfg := a.cfg
		cfg.Store = storeguard.Tokens(new(Memory), "the store")
		require.NoError(t, tokens.Update(t.Context(), "k", func(document []byte) ([]byte, error) {
			return document, cfg.Store.Update(t.Context(), "k", func([]byte) ([]byte, error) { return document, nil })
		}))
		cfg.HTTP = roundTripper(func(*http.Request) (*http.Response, error) { <-hang; return nil, errors.New("at last") })
		other := New(cfg)
		_, err := other.Header(t.Context(), &Refusal{Header: old})
		assert.ErrorContains(t, err, "refreshing the token")
		go func() { _, _ = other.Header(t.Context(), &Refusal{Header: old}) }()
		synctest.Wait()
		begun := time.Now()
		other.Close()
		assert.Equal(t, closeGrace, time.Since(begun))
	})
}
