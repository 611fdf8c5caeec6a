package eval

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcphybrid/mcphybrid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// The tools of the sessions come sooner, as if they had been called.
func TestLearn(t *testing.T) {
	var learned document
	var tools []tool
	for _, name := range []string{"paint_sky", "paint_a", "paint_b", "paint_c"} {
		tools = append(tools, tool{ID: "id " + name, Server: "s", Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	s, err := newSubject(tools, mcphybrid.Options{Search: mcphybrid.RankingOptions{Threshold: -1}, Learn: &mcphybrid.LearnOptions{Store: &learned}})
	require.NoError(t, err)
	defer s.Close()
	before, _ := s.find("paint the sky", 3)
	assert.Equal(t, []string{"id paint_sky", "id paint_a", "id paint_b"}, before)
	require.NoError(t, s.learn(&learned, []query{{Relevant: []string{"id paint_c"}}, {Relevant: []string{"id paint_c", "id paint_a"}}}))
	after, _ := s.find("paint the sky", 3)
	assert.Equal(t, []string{"id paint_sky", "id paint_c", "id paint_a"}, after)
	assert.Equal(t, asideHalf, otherHalf(chosenHalf))
	assert.Equal(t, chosenHalf, otherHalf(asideHalf))
}
