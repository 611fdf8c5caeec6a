package openings

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A keeper keeps openings in memory, and counts how often they are put and asked for.
type keeper struct {
	mu        sync.Mutex
	of        map[string][]byte
	puts, got int
	down      error
}

func newKeeper() *keeper { return &keeper{of: make(map[string][]byte)} }

func (k *keeper) PutOpening(_ context.Context, key string, opening []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.puts++
	if k.down == nil {
		k.of[key] = bytes.Clone(opening)
	}
	return k.down
}

func (k *keeper) GetOpening(_ context.Context, key string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got++
	return k.of[key], k.down
}

// state returns a state with an opening of more than n bytes.
func state(n int, turn int) []byte {
	began := fmt.Sprintf(`{"tools":[{"definition":%q}],"shown":[{"kind":"}{\"\\"}]}`, strings.Repeat(`{"x":"\"}]`, n/10))
	return fmt.Appendf(nil, `{"version":5,"turn":%d,"opening":%q,"first":1,"began":%s}`, turn, store.KeyOf([]byte(began)), began)
}

// shortened returns what is stored in the place of a state.
func shortened(t *testing.T, o *Openings, state []byte) []byte {
	t.Helper()
	stored, err := o.Shorten(t.Context(), state)
	require.NoError(t, err)
	return stored
}

// has asserts that another process reads the state.
func has(t *testing.T, k *keeper, want, stored []byte) {
	t.Helper()
	got, err := New(k).Lengthen(t.Context(), stored)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// States with one opening are short, each is the same after it was read, and the opening is put once.
func TestOpeningIsStoredOnce(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	o := New(k)
	for turn := range 9 {
		one := state(50_000, turn)
		stored := shortened(t, o, one)
		assert.Less(t, len(stored), 250)
		has(t, k, one, stored)
	}
	assert.Equal(t, 1, k.puts)
	assert.Len(t, k.of, 1)
	for key, opening := range k.of {
		assert.True(t, json.Valid(opening), "it is an object")
		assert.Equal(t, store.KeyOf(opening), key)
	}
	for range 3 {
		_, err := o.Lengthen(t.Context(), shortened(t, o, state(50_000, 1)))
		require.NoError(t, err)
	}
	assert.Equal(t, 9, k.got, "this process knows it")

	inside := fmt.Appendf(nil, `{"messages":["said \",\\\"began\\\":{\""],"state":%s,"title":"x"}`, state(50_000, 3))
	stored := shortened(t, o, inside)
	assert.Less(t, len(stored), 350, "a document of the host")
	has(t, k, inside, stored)
}

// What has no opening, or a small one, or only looks like it, is stored whole; and what begins like
// something shortened, too.
func TestOthersStayWhole(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	o := New(k)
	for _, one := range []string{
		"", "x", `{"version":4}`, string(state(100, 1)), string(short), string(whole), string(whole) + string(whole),
		string(short) + strings.Repeat("x", 100), string(state(5_000, 1)[:4_000]), `{"began":{}}`,
		strings.Replace(string(state(5_000, 1)), `"opening":`, `"other":`, 1),
	} {
		stored := shortened(t, o, []byte(one))
		assert.LessOrEqual(t, len(one), len(stored), "%.50q", one)
		has(t, k, []byte(one), stored)
	}
	assert.Zero(t, k.puts)
}

// What a version to come has put is refused as such. A state that only looks like it is stored so that it
// is read again.
func TestNewerFormsAreRefused(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	for state, newer := range map[string]bool{"\x00other\x00{}": true, "\x00other\x00": true, "\x00other": false, "\x00Other\x00{}": false, "\x00oth\x00\x00\x00": false, "\x00othe{\x00": false, "xother\x00": false, "\x00otherx": false} {
		got, err := New(k).Lengthen(t.Context(), []byte(state))
		if newer {
			require.EqualError(t, err, "a newer version of the library has put it in a form that this one can't read", "%q", state)
		} else {
			require.NoError(t, err, "%q", state)
			assert.Equal(t, state, string(got))
		}
		has(t, k, []byte(state), shortened(t, New(k), []byte(state)))
	}
}

// An opening outlives the states that name it: this process puts it again after an hour, also if its clock
// was set back.
func TestOpeningIsPutAgain(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	o := New(k)
	now := time.Now()
	o.now = func() time.Time { return now }
	one := state(5_000, 1)
	for _, step := range []struct {
		later time.Duration
		puts  int
	}{{0, 1}, {59 * time.Minute, 1}, {time.Minute, 2}, {59 * time.Minute, 2}, {-2 * time.Hour, 3}, {time.Minute, 3}} {
		now = now.Add(step.later)
		shortened(t, o, one)
		assert.Equal(t, step.puts, k.puts, "%v later", step.later)
	}
	other := New(k) // has read it, and not put it
	stored := shortened(t, o, one)
	_, err := other.Lengthen(t.Context(), stored)
	require.NoError(t, err)
	shortened(t, other, one)
	assert.Equal(t, 4, k.puts)
}

// An opening that is lost is an error that says what is lost, until somebody puts it again; and so is one that
// is another than it was.
func TestOpeningIsLost(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	one := state(5_000, 1)
	stored := shortened(t, New(k), one)
	var key string
	for key = range k.of {
		k.of[key] = []byte("other")
	}
	_, err := New(k).Lengthen(t.Context(), stored)
	assert.EqualError(t, err, "the opening "+key+": it is not what was stored")
	delete(k.of, key)
	_, err = New(k).Lengthen(t.Context(), stored)
	assert.EqualError(t, err, "the opening "+key+": it is not in the store: what the conversation began with, its first tools and sections, is lost, and without it the state can't be read")
	shortened(t, New(k), state(5_000, 2))
	has(t, k, one, stored)

	k.down = errors.New("down")
	_, err = New(k).Shorten(t.Context(), one)
	require.ErrorIs(t, err, k.down)
	_, err = New(k).Lengthen(t.Context(), stored)
	require.ErrorIs(t, err, k.down)
	o := New(k)
	_, err = o.Shorten(t.Context(), one)
	require.Error(t, err)
	k.down = nil
	delete(k.of, key)
	has(t, k, one, shortened(t, o, one))
}

// What is damaged is an error, and no state.
func TestDamagedStates(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	opening := []byte(`{"x":1}`)
	key := store.KeyOf(opening)
	k.of[key] = opening
	stored := func(key string, at uint32, rest string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte(string(short)+key), at), rest...)
	}
	has(t, k, []byte(`{"x":1}ab`), stored(key, 0, "ab"))
	has(t, k, []byte(`ab{"x":1}`), stored(key, 2, "ab"))
	has(t, k, opening, stored(key, 0, ""))
	for name, damaged := range map[string][]byte{
		"nothing follows":    short,
		"it ends too soon":   stored(key, 0, "")[:len(short)+keyBytes+3],
		"behind its end":     stored(key, 3, "ab"),
		"a key that is none": stored(strings.Repeat("/", keyBytes), 0, "ab"),
	} {
		got, err := New(k).Lengthen(t.Context(), damaged)
		assert.ErrorIs(t, err, errDamaged, name)
		assert.Nil(t, got, name)
	}
}

// With its opening, a state is as long as a store may have it, and no longer.
func TestLongStates(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	one := state(5_000, 1)
	stored := shortened(t, New(k), one)
	o := New(k)
	room := store.MaxState - len(one)
	got, err := o.Lengthen(t.Context(), append(bytes.Clone(stored), make([]byte, room)...))
	require.NoError(t, err)
	assert.Len(t, got, store.MaxState)
	got, err = o.Lengthen(t.Context(), append(bytes.Clone(stored), make([]byte, room+1)...))
	assert.ErrorContains(t, err, fmt.Sprintf("with its opening it has %d bytes, more than %d", store.MaxState+1, store.MaxState))
	assert.Nil(t, got)
}

// However many openings there are, so many are remembered.
func TestOpeningsAreBounded(t *testing.T) {
	t.Parallel()
	o := New(newKeeper())
	sum := func() (n int) {
		for _, known := range o.known {
			n += len(known.data)
		}
		return n
	}
	for i := range maxKept + 50 {
		o.remember(fmt.Sprint(i), make([]byte, 10), time.Time{})
	}
	assert.Len(t, o.known, maxKept)
	assert.Equal(t, sum(), o.bytes)
	for i := range 40 {
		o.remember(fmt.Sprint("large", i%30), make([]byte, 1<<20+i), time.Time{})
		require.LessOrEqual(t, sum(), maxKeptBytes)
		require.Equal(t, sum(), o.bytes)
	}
	o.remember("too large", make([]byte, maxKeptBytes+1), time.Time{})
	assert.NotContains(t, o.known, "too large")
	assert.Equal(t, sum(), o.bytes)

	o = New(newKeeper())
	o.remember("all but ten", make([]byte, maxKeptBytes-10), time.Time{})
	o.remember("ten", make([]byte, 10), time.Time{})
	assert.Len(t, o.known, 2, "they fit together")
	o.remember("one", make([]byte, 1), time.Time{})
	assert.Contains(t, o.known, "one")
	assert.Less(t, len(o.known), 3)
	assert.Equal(t, sum(), o.bytes)
}

// Whatever the engine has, it is read without a panic, and what is stored is read as it was.
func FuzzOpenings(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(state(2_000, 1))
	f.Add(append(bytes.Clone(short), bytes.Repeat([]byte("A"), 60)...))
	f.Add(append(append(bytes.Clone(short), bytes.Repeat([]byte("A"), 43)...), 0xff, 0xff, 0xff, 0xff, 'x'))
	f.Fuzz(func(t *testing.T, data []byte) {
		k := newKeeper()
		_, _ = New(k).Lengthen(t.Context(), data)
		stored, err := New(k).Shorten(t.Context(), data)
		require.NoError(t, err)
		got, err := New(k).Lengthen(t.Context(), stored)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	})
}

// Several goroutines use one opening at once.
func TestOpeningsAtOnce(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	o := New(k)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(g)))
			for range 50 {
				one := state(2_000+1_000*rnd.IntN(3), g)
				stored, err := o.Shorten(t.Context(), one)
				assert.NoError(t, err)
				got, err := New(k).Lengthen(t.Context(), stored)
				assert.NoError(t, err)
				assert.Equal(t, string(one), string(got))
			}
		})
	}
	wg.Wait()
	assert.Len(t, k.of, 3)
}
