package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcphybrid/mcphybrid/internal/mcptest"
	"github.com/stretchr/testify/assert"
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
