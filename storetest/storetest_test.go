package storetest_test

import (
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/mcphybrid/mcphybrid/storetest"
)

func TestMemoryStore(t *testing.T) {
	store := new(mcphybrid.MemoryStore)
	storetest.Run(t, storetest.Subject{Open: func(*testing.T) mcphybrid.VectorStore { return store }})
}
