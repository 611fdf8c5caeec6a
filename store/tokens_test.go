package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/login"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Updates of one key exclude each other, also by files; those of others do not.
func TestTokens(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "sub")
	for name, stores := range map[string][]store.Tokens{
		"memory": {new(login.Memory)},
		"files":  {store.FileTokens(folder), store.FileTokens(folder)},
	} {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				assert.NoError(t, stores[i%len(stores)].Update(t.Context(), fmt.Sprint(i%2), func(document []byte) ([]byte, error) {
					return append(document[:len(document):len(document)], 'x'), nil
				}))
			})
		}
		wg.Wait()
		for _, key := range []string{"0", "1"} {
			err := stores[0].Update(t.Context(), key, func(document []byte) ([]byte, error) {
				assert.Equal(t, strings.Repeat("x", 20), string(document), name)
				assert.NoError(t, stores[0].Update(t.Context(), "another", func([]byte) ([]byte, error) { return []byte("y"), nil }))
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				err := stores[len(stores)-1].Update(ctx, key, func([]byte) ([]byte, error) { return nil, nil })
				assert.ErrorIs(t, err, context.DeadlineExceeded, name)
				return nil, errors.New("no change")
			})
			assert.EqualError(t, err, "no change")
		}
	}
}

// FileTokens makes the folders above its own, too. An empty path is not the folder that the
// program happens to run in.
func TestFileTokens(t *testing.T) {
	t.Chdir(t.TempDir())
	keep := func([]byte) ([]byte, error) { return []byte("x"), nil }
	require.NoError(t, store.FileTokens("a/b/c").Update(t.Context(), "k", keep))
	require.NoError(t, os.WriteFile("f", nil, 0o600))
	assert.ErrorContains(t, store.FileTokens("f/g").Update(t.Context(), "k", keep), "mcphybrid: mkdir f: ")
	assert.EqualError(t, store.FileTokens("").Update(t.Context(), "k", keep), "mcphybrid: the path is empty")
	list, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, list, 2)
}
