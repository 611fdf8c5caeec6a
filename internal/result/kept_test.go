package result

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session keeps its newest texts.
func TestOnlyTheNewestResultsAreKept(t *testing.T) {
	t.Parallel()
	s := NewShelf(1 << 30)
	var k Kept
	for _, id := range "abcdefghijkl" {
		k = k.With(s, string(id), "text")
	}
	require.Len(t, k, 8)
	_, ok := k.Text("d", nil)
	assert.False(t, ok)
	text, ok := k.Text("e", nil)
	assert.True(t, ok)
	assert.Equal(t, "text", text)
	huge := strings.Repeat("x", 16<<20/2)
	k = k.With(s, "y", huge).With(s, "z", huge)
	assert.Len(t, k, 2)
	k = k.With(s, "the very newest", huge+huge+huge)
	require.Len(t, k, 1)
	_, ok = k.Text("the very newest", nil)
	assert.True(t, ok)
}

// All sessions together keep the newest texts within the limit, and always the very
// newest. What a session drops, or takes along, leaves room.
func TestSessionsShareAShelf(t *testing.T) {
	t.Parallel()
	s := NewShelf(100)
	has := func(k Kept, id string) bool {
		_, ok := k.Text(id, nil)
		return ok
	}
	ten := strings.Repeat("x", 10)
	var sessions [10]Kept
	for i := range sessions {
		sessions[i] = sessions[i].With(s, "r1", ten)
	}
	sessions[3].Drop()
	sessions[0] = sessions[0].With(s, "r2", ten)
	assert.True(t, has(sessions[0], "r1"), "one was dropped")
	sessions[0] = sessions[0].With(s, "r3", ten+ten)
	assert.False(t, has(sessions[0], "r1"))
	assert.False(t, has(sessions[1], "r1"))
	assert.True(t, has(sessions[2], "r1"))
	sessions[5] = sessions[5].With(s, "r2", strings.Repeat("x", 1000))
	assert.True(t, has(sessions[5], "r2"))
	for i := range sessions {
		assert.False(t, has(sessions[i], "r1"))
	}

	s, kept := NewShelf(1<<30), Kept(nil).With(NewShelf(1000), "other", ten)
	kept = kept.With(s, "first", ten)
	for range 200 {
		Kept(nil).With(s, "lost", ten)
		runtime.GC()
	}
	assert.Less(t, len(s.texts), 100, "lost texts are counted out")
	assert.True(t, has(kept, "first"))
}

// Texts that a store has are found by whoever restores them, even those that are not in
// memory any more; those that it does not take are not.
func TestKeptAreSaved(t *testing.T) {
	t.Parallel()
	s := NewShelf(1 << 30)
	var k Kept
	for i := range 8 {
		k = k.With(s, string(rune('a'+i)), strings.Repeat("x", i+1))
	}
	stored := make(map[string]string)
	const at = 1_800_000_000
	put := func(key string, last time.Time, text *string) (string, time.Time) {
		if text == nil {
			require.EqualValues(t, at, last.Unix(), "it is known when it was put")
			require.Contains(t, stored, key)
			return key, last
		}
		if *text == "xx" {
			return "", last
		}
		if key == "" {
			key = "key" + *text
		}
		stored[key] = *text
		return key, time.Unix(at, 0)
	}
	saved := k.Saved(put)
	k[0].text.Store(nil) // the shelf is full
	assert.Equal(t, saved, k.Saved(put))
	load := func(key string) (string, bool) { text, ok := stored[key]; return text, ok }
	for _, k := range []Kept{k, Restored(saved), Restored(Restored(saved).Saved(put)), Restored(saved + " " + saved)} {
		for i := range 8 {
			text, ok := k.Text(string(rune('a'+i)), load)
			if i == 1 && k[1].ID != "b" {
				assert.False(t, ok)
				continue
			}
			assert.True(t, ok)
			assert.Equal(t, strings.Repeat("x", i+1), text)
		}
		assert.LessOrEqual(t, len(k), 8)
	}
	for _, bad := range []string{"", " ", "a", "= =", strings.Repeat("=", 1000)} {
		assert.LessOrEqual(t, len(Restored(bad)), 2, bad)
	}
}

// Whatever a state says of texts, it is a few, and saved as it was read.
func FuzzRestored(f *testing.F) {
	f.Add("r1=key r2=other")
	f.Add("= =  a b=c=d e=f@g@h i=@j k=l@zzzzzzzzzzzzzzzzzz m=n@-1")
	same := func(key string, last time.Time, text *string) (string, time.Time) { return key, last }
	f.Fuzz(func(t *testing.T, saved string) {
		k := Restored(saved)
		require.LessOrEqual(t, len(k), 8)
		again := Restored(k.Saved(same))
		for _, one := range k {
			_, known := k.Text(one.ID, func(string) (string, bool) { return "", true })
			require.True(t, known)
		}
		require.LessOrEqual(t, len(again), len(k))
		require.Equal(t, k.Saved(same), again.Saved(same))
	})
}
