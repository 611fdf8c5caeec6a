package mcphybrid

// What is suspicious in a definition, kept with it.

import (
	"slices"
	"strings"

	"github.com/mcphybrid/mcphybrid/scan"
)

// A marked definition is one with its marks, and the answers on which these depend.
type marked struct {
	list    []scan.Mark
	asked   []string // words, each once, at most maxAskedWords
	foreign []bool   // the answers
}

// maxAskedWords is how many words of a definition may look like names of tools for its marks to
// be kept: what a server writes there must not multiply what we keep of it.
const maxAskedWords = 64

// marks returns [scan.Definition], which it keeps: it scans again only if foreign has
// another answer than before. The caller owns the slice.
func (d *definition) marks(foreign func(word string) bool) []scan.Mark {
	if kept := d.scanned.Load(); kept != nil {
		same := true
		for i, word := range kept.asked {
			same = same && foreign(word) == kept.foreign[i]
		}
		if same {
			return slices.Clone(kept.list)
		}
	}
	now := new(marked)
	now.list = scan.Definition(d.Raw, func(word string) bool {
		is := foreign(word)
		if len(now.asked) <= maxAskedWords && !slices.Contains(now.asked, word) {
			now.asked, now.foreign = append(now.asked, strings.Clone(word)), append(now.foreign, is)
		}
		return is
	})
	if len(now.asked) <= maxAskedWords {
		d.scanned.Store(now)
	}
	return slices.Clone(now.list)
}
