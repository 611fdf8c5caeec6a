package storeguard

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A hungStore is one whose calls end when it is closed.
type hungStore chan struct{}

func (s hungStore) Get(string) ([]byte, error) { <-s; return nil, nil }
func (s hungStore) Put(string, []byte) error   { <-s; return nil }

func TestPartsThatHang(t *testing.T) {
	t.Parallel()
	assert.Nil(t, Parts(nil, "parts"))
	synctest.Test(t, func(t *testing.T) {
		store := make(hungStore)
		p := Parts(store, "parts")
		began := time.Now()
		assert.EqualError(t, p.Put("a", nil), "parts: no answer within 11s")
		assert.Equal(t, MaxCall, time.Since(began))
		_, err := p.Get("a")
		assert.EqualError(t, err, "parts: a call before has not returned")
		close(store)
		synctest.Wait()
		_, err = p.Get("a")
		assert.NoError(t, err)
	})
}
