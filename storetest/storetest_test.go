package storetest_test

import (
	"testing"

	"github.com/mcphybrid/mcphybrid/storetest"
	"github.com/mcphybrid/mcphybrid/vector"
)

func TestMemoryStore(t *testing.T) {
	store := new(vector.MemoryStore)
	storetest.Run(t, storetest.Subject{Open: func(*testing.T) vector.Store { return store }})
}
