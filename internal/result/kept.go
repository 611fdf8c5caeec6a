package result

import "slices"

// A KeptText is the whole text of a result that was cut.
type KeptText struct{ ID, Text string }

// Kept holds the newest texts. A Kept is never changed, so its readers hold no lock.
type Kept []KeptText

// The limits of [Kept]. It keeps the newest texts within both limits, and always the
// very newest.
const (
	MaxKept      = 8
	MaxKeptBytes = 16 << 20
)

// With returns the texts of k and one more, without the oldest beyond the limits.
func (k Kept) With(id, text string) Kept {
	k = append(slices.Clip(k), KeptText{id, text})
	size := 0
	for i, r := range slices.Backward(k) {
		if size += len(r.Text); i < len(k)-1 && (len(k)-i > MaxKept || size > MaxKeptBytes) {
			return slices.Clone(k[i+1:])
		}
	}
	return k
}

// Text returns the text with that ID.
func (k Kept) Text(id string) (text string, ok bool) {
	for _, r := range k {
		if r.ID == id {
			return r.Text, true
		}
	}
	return "", false
}
