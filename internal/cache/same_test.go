package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/mcphybrid/mcphybrid/store"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process whose list another one has stored just before, takes it for its own: it does not store that
// it is still the same.
func TestListThatAnotherProcessHasStoredBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		p, q := begin(doc), begin(doc)
		defer p.Close()
		p.put("a", "1")
		time.Sleep(2 * time.Second)
		before, _ := doc.Load()
		q.put("a", "1")
		time.Sleep(2 * time.Second)
		q.Again("a", time.Now())
		time.Sleep(2 * time.Second)
		after, _ := doc.Load()
		assert.Equal(t, string(before), string(after))
		time.Sleep(time.Minute)
		q.Again("a", time.Now())
		q.Close()
		after, _ = doc.Load()
		assert.NotEqual(t, string(before), string(after), "but at the end it does")
	})
}

// What was only found in the form of an earlier version is not stored by who ends: it has no list of its own.
func TestListThatWasOnlyFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := new(mcptest.Split)
		old := begin(&doc.Store) // it knows no parts
		old.put("a", "1")
		old.Close()
		before, _ := doc.Load()
		p := begin(doc)
		found, err := p.Read()
		require.NoError(t, err)
		assert.Equal(t, []string{"1"}, found.Server("a").Lists[Tools])
		p.Close()
		after, _ := doc.Load()
		assert.Equal(t, string(before), string(after))
	})
}

// A base that is missing is looked for three times: another process may have a new one meanwhile.
func TestMissingBaseIsLookedForAgain(t *testing.T) {
	t.Parallel()
	doc := new(counting)
	doc.Data = []byte(`{"version":2,"base":"` + store.KeyOf([]byte("x")) + `"}`)
	_, err := begin(doc).Read()
	assert.ErrorIs(t, err, errGone)
	assert.Equal(t, 3, doc.loads)
}
