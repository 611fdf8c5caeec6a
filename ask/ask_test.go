package ask

import (
	"context"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/assert"
)

// The hooks that are there stay, and only the others are replaced.
func TestOr(t *testing.T) {
	mine := func(context.Context, Asker) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///mine"}}, nil }
	h := Hooks{Roots: mine}.Or(Decline())
	roots, err := h.Roots(t.Context(), Asker{})
	assert.NoError(t, err)
	assert.Len(t, roots, 1)
	_, err = h.Elicit(t.Context(), Asker{}, mcp.ElicitationParams{})
	assert.Equal(t, ErrDeclined, err)
	_, err = h.Sample(t.Context(), Asker{}, mcp.CreateMessageParams{})
	assert.Equal(t, ErrDeclined, err)
	roots, err = Hooks{}.Or(h).Or(Decline()).Roots(t.Context(), Asker{})
	assert.NoError(t, err)
	assert.Len(t, roots, 1)
	assert.Nil(t, Hooks{}.Or(Hooks{}).Elicit)
}
