package eval

import "hash/fnv"

// The halves of a corpus.
const (
	chosenHalf = "chosen" // to choose a way by
	asideHalf  = "aside"  // to report it on
)

// inHalf returns the queries of a half, or all if half is empty: those are kept aside whose
// text has an odd FNV-1a hash of 64 bits.
func inHalf(queries []query, half string) (list []query) {
	for _, q := range queries {
		h := fnv.New64a()
		h.Write([]byte(q.Query))
		if aside := h.Sum64()&1 == 1; half == "" || aside == (half == asideHalf) {
			list = append(list, q)
		}
	}
	return list
}
