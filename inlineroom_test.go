package mcphybrid

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoomForInlineToolsEnds(t *testing.T) {
	t.Parallel()
	list := listLimits{items: 10, tokens: 100, itemsEach: 2, tokensEach: 100}
	r := inlineRoom{tools: 4, tokens: 20, list: newListRoom(list)}
	assert.Equal(t, verdict{inline, whyServer, 0}, r.verdictOn(origin{server: "a"}, 5, whyServer))
	assert.True(t, r.tryAdd(origin{server: "a"}, 5), "a pin")
	assert.Equal(t, verdict{deferred, whyListFull, 0}, r.verdictOn(origin{server: "a"}, 1, whyFits), "the list has no room for another of its group")
	_, full := r.isFull()
	assert.False(t, full, "which keeps out no other")
	assert.Equal(t, verdict{inline, whyUsed, 0}, r.verdictOn(origin{server: "b"}, 1, whyUsed))
	assert.Equal(t, verdict{deferred, whyTokens, 0}, r.verdictOn(origin{server: "c"}, 10, whyFits))
	assert.Equal(t, verdict{deferred, whyTokens, 0}, r.verdictOn(origin{server: "d"}, 1, whyFits), "after the first with too many tokens, none is admitted")

	r = inlineRoom{tools: 1, tokens: 20, list: newListRoom(list)}
	assert.Equal(t, verdict{inline, whyFits, 0}, r.verdictOn(origin{server: "a"}, 1, whyFits))
	assert.Equal(t, verdict{deferred, whyCount, 0}, r.verdictOn(origin{server: "b"}, 1, whyFits))
}
