package needs

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares nothing with needs.
func Clone(needs map[string][]string) map[string][]string {
	needs = maps.Clone(needs)
	for name, list := range needs {
		needs[name] = slices.Clone(list)
	}
	return needs
}
