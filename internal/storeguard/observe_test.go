package storeguard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
)

// A slowStore takes a second for each call.
type slowStore struct{ mcptest.Split }

func (s *slowStore) Load() ([]byte, error)  { time.Sleep(time.Second); return s.Split.Load() }
func (s *slowStore) Save(data []byte) error { time.Sleep(time.Second); return s.Split.Save(data) }
func (s *slowStore) Get(key string) ([]byte, error) {
	time.Sleep(time.Second)
	return s.Split.Get(key)
}
func (s *slowStore) Put(key string, part []byte) error {
	time.Sleep(time.Second)
	return s.Split.Put(key, part)
}

// Who observes a store is told of each call: how long it took, and its error.
func TestObserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("no disk")
		slow := new(slowStore)
		whole := struct{ store.Document }{slow} // without parts
		for name, of := range map[string]any{"a document": Document(whole, "it", time.Minute), "one with parts": Document(slow, "it", time.Minute), "parts": Parts(slow, "it")} {
			var told []error
			var took time.Duration
			Observe(of, func(d time.Duration, err error) {
				took += d
				told = append(told, err)
			})
			calls := 0
			if d, ok := of.(store.Document); ok {
				assert.NoError(t, d.Save([]byte("x")), name)
				data, err := d.Load()
				assert.NoError(t, err, name)
				assert.Equal(t, "x", string(data), name)
				calls += 2
			}
			slow.FailParts(failed)
			if p, ok := of.(store.Parts); ok {
				assert.Equal(t, failed, p.Put("k", []byte("p")), name)
				_, err := p.Get("k")
				assert.Equal(t, failed, err, name)
				calls += 2
			}
			slow.FailParts(nil)
			want := make([]error, calls)
			if calls == 4 {
				want[2], want[3] = failed, failed
			} else if name == "parts" {
				want[0], want[1] = failed, failed
			}
			assert.Equal(t, want, told, name)
			assert.Equal(t, time.Duration(calls)*time.Second, took, name)
		}
		Observe(nil, nil)
		Observe(slow, func(time.Duration, error) { t.Error("a store that nobody guards") })
		assert.NoError(t, slow.Save(nil))
	})
}

// An update that waits for a call that hangs is over in time, and what the store calls later changes nothing.
func TestUpdateThatComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let, late := make(chan struct{}), make(chan error, 1)
		d := Document(laterShared{let: let, late: late}, "it", time.Minute)
		called := false
		err := d.(store.Shared).Update(t.Context(), func([]byte) ([]byte, error) { called = true; return nil, nil })
		assert.EqualError(t, err, "it: no answer within 1m0s")
		_, err = d.Load()
		assert.EqualError(t, err, "it: a call before has not returned")
		close(let)
		assert.EqualError(t, <-late, "nobody waits for the update any more")
		assert.False(t, called)
		synctest.Wait()
		_, err = d.Load()
		assert.NoError(t, err)
	})
}

// A laterShared calls change when it is let.
type laterShared struct {
	let  chan struct{}
	late chan error
}

func (s laterShared) Load() ([]byte, error) { return nil, nil }
func (s laterShared) Save([]byte) error     { return nil }

func (s laterShared) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	<-s.let
	_, err := change(nil)
	s.late <- err
	return err
}
