package eval

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every query is in one of the halves, always the same.
func TestInHalf(t *testing.T) {
	var queries []query
	for i := range 200 {
		queries = append(queries, query{Query: fmt.Sprint("query ", i)})
	}
	chosen, aside := inHalf(queries, chosenHalf), inHalf(queries, asideHalf)
	assert.InDelta(t, 100, len(chosen), 25)
	assert.ElementsMatch(t, queries, append(chosen, aside...))
	assert.Equal(t, queries, inHalf(queries, ""))
	assert.Len(t, inHalf([]query{{Query: "create an issue"}}, asideHalf), 1, "FNV-1a says so")
}
