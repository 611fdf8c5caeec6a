package dialect

import (
	"encoding/json"
	"math"

	"github.com/mcphybrid/mcphybrid/internal/schema"
)

// A reach says which references are replaced by what they lead to, where the provider
// takes none. The others keep the type and the description of their target.
//
// In {"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{}}}
// the reference to A has level 0 and the one to B, which stands in A, level 1. References
// at the root are always replaced: without them, the schema would say nothing.
type reach struct {
	levels int  // those of lower levels are replaced
	room   int  // and then, in order, those of that level with at most so many bytes in all
	bare   bool // the others keep only the type
}

const (
	// Replaced references may make a schema a third larger, or minGrowth bytes if that is
	// more. Types that refer to each other, as those of Microsoft Graph do, would otherwise
	// grow tenfold. The bytes are some 250 tokens, so that small schemas keep what they
	// share.
	maxGrowth = 3
	minGrowth = 1 << 10

	// maxLevels bounds the attempts to convert a schema. Published ones that grow too much
	// do so at the second or third level.
	maxLevels = 8
)

// bounded converts a schema with the most references replaced that the growth allows,
// unless the first attempt, of which it has the result, did not grow too much. It goes by
// levels, so that all parameters of a tool are described before one of them is in depth.
func (d Dialect) bounded(given json.RawMessage, whole *converter, converted json.RawMessage) (*converter, json.RawMessage) {
	size := len(schema.Prune(given))
	if len(converted) <= size || !whole.replaces {
		return whole, converted
	}
	least, smallest := d.convert(given, reach{bare: true})
	most := max(size, len(smallest)) // a schema also grows by what the provider requires
	most += max(most/maxGrowth, minGrowth)
	if len(converted) <= most {
		return whole, converted
	}
	levels, best := 0, smallest
	for ; levels < maxLevels; levels++ {
		c, next := d.convert(given, reach{levels: levels})
		if len(next) > most {
			break
		}
		least, best = c, next
	}
	// All of the next level is too much, but some of it may fit. How much it takes is not
	// known before, since definitions have references too.
	for room := most - len(best); room > minGrowth/4; room /= 2 {
		c, next := d.convert(given, reach{levels: max(levels-1, 0), room: room, bare: levels == 0})
		if len(next) <= most && len(next) > len(best) {
			return c, next
		}
	}
	return least, best
}

// everything is the reach of a first attempt.
var everything = reach{levels: math.MaxInt}

// reaches reports whether a reference to a definition of that many bytes is replaced.
func (c *converter) reaches(size int, atRoot bool) bool {
	switch {
	case atRoot || c.level < c.reach.levels:
		return true
	case c.level > c.reach.levels || size > c.reach.room:
		return false
	}
	c.reach.room -= size
	return true
}
