package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSent(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 31, Tokens{All: 100, Inline: 1, Meta: 2, Active: 4, Sections: 8, Searches: 16}.Sent())
}
