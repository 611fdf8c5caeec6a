package mcphybrid

import "github.com/mcphybrid/mcphybrid/internal/enrich"

// knownHints are the hints known so far. A map is shared and never changed.
type knownHints map[enrich.Tool]*enrich.Known

// of returns the hints of t, or nil. t may be nil.
func (k knownHints) of(t *BridgeTool) *enrich.Known {
	if t == nil {
		return nil
	}
	return k[t.def]
}
