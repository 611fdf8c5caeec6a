package tokens

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/cmd/mcphybrid/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A token stands behind the scheme, in any case and after any spaces.
func TestBearer(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{"Bearer a": "a", "bearer  a b": "a b", "": "", "Bearer": "", "Bearer ": "", "Basic a": "", "a": ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		assert.Equal(t, want, Bearer(r), header)
	}
}

// Who has the same token, name and rights as before is the same holder; the requests of others
// end.
func TestHoldersOfAChangedFile(t *testing.T) {
	t.Parallel()
	const head = `{"tokens": [{"name": "a", "token": "hunter2", "allow": ["x", "y"]}, `
	file := commandtest.WriteFile(t, "secret", head+`{"name": "b", "token": "hunter3", "deny": ["x"]}]}`)
	all, err := Read(file)
	require.NoError(t, err)
	a, b := all.Holder("hunter2"), all.Holder("hunter3")
	require.NotNil(t, a)
	require.NotNil(t, b)
	assert.Nil(t, all.Holder("hunter"))
	assert.Nil(t, all.Holder(""))
	assert.Len(t, all.All(), 2)
	assert.True(t, all.AreNeeded())
	assert.True(t, all.IsCurrent(a))
	assert.False(t, all.IsCurrent(nil))

	ofA, releaseA := With(t.Context(), a)
	defer releaseA()
	ofB, releaseB := With(t.Context(), b)
	defer releaseB()
	assert.Same(t, a, HolderOf(ofA))
	commandtest.ReplaceFile(t, file, `{"tokens": [{"name": "a", "token": "hunter2", "allow": ["y", "x", "y"]}, {"name": "b", "token": "hunter3", "deny": ["x", "z"]}]}`)
	require.NoError(t, all.Read(file))
	assert.Same(t, a, all.Holder("hunter2"), "in another order")
	assert.NoError(t, ofA.Err())
	assert.NotSame(t, b, all.Holder("hunter3"), "other rights")
	<-ofB.Done()
	assert.False(t, all.IsCurrent(b))
	commandtest.ReplaceFile(t, file, "a b")
	assert.ErrorContains(t, all.Read(file), "-token-file: "+file+": ")
	assert.Same(t, a, all.Holder("hunter2"), "nothing has changed")

	released, release := With(t.Context(), a)
	release()
	assert.ErrorIs(t, released.Err(), context.Canceled)
	none, release := With(t.Context(), nil)
	release()
	assert.NoError(t, none.Err())
	assert.Nil(t, HolderOf(none))
}

// A holder is another one with any other property.
func TestSameHolder(t *testing.T) {
	t.Parallel()
	made := func(name, token string, change func(*Holder)) *Holder {
		h := newHolder(name, token)
		h.Access = mcphybrid.Access{Allow: []string{"x"}, Deny: []string{"y"}}
		if change != nil {
			change(h)
		}
		return h
	}
	h := made("a", "t", nil)
	assert.True(t, h.is(made("a", "t", nil)))
	for _, other := range []*Holder{
		made("b", "t", nil), made("a", "u", nil), made("a", "t", func(h *Holder) { h.Operator = true }),
		made("a", "t", func(h *Holder) { h.Access.Allow = nil }), made("a", "t", func(h *Holder) { h.Access.Deny = []string{"z"} }),
	} {
		assert.False(t, h.is(other))
	}
}

// Without a file, the environment may have the only token, whose holder may do all.
func TestTokenOfTheEnvironment(t *testing.T) {
	t.Setenv(Variable, "")
	all, err := Read("")
	require.NoError(t, err)
	assert.False(t, all.AreNeeded())
	assert.Empty(t, all.All())
	assert.True(t, all.IsCurrent(nil), "nobody needs one")
	t.Setenv(Variable, "hunter2")
	all, err = Read("")
	require.NoError(t, err)
	assert.True(t, all.Holder("hunter2").Operator)
	assert.Nil(t, all.Holder("hunter3"))
	_, err = Read("/no/such/file")
	assert.ErrorContains(t, err, "-token-file: ")
}
