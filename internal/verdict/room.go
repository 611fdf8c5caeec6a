package verdict

import "github.com/mcphybrid/mcphybrid/internal/room"

// A Room is what is left for inline tools. K tells the tools of a list's groups apart.
type Room[K comparable] struct {
	Tools  int
	Tokens int
	List   *room.Room[K] // of a session's list

	full bool // a tool had too many tokens
}

// Take gives a tool room beside those that are admitted. It reports whether the list
// has any.
func (r *Room[K]) Take(of K, tokens int) bool {
	fits := r.List.Admit(of, tokens)
	if fits {
		r.Tools--
		r.Tokens -= tokens
	}
	return fits
}

// Admit makes a tool inline, for this reason, if there is room. After the first tool
// with too many tokens it admits no other. Otherwise a larger budget could replace
// tools instead of adding some. A tool for which the list has no room keeps out no
// other.
func (r *Room[K]) Admit(of K, tokens int, why Reason) Verdict {
	if over := r.Over(); over != Waits {
		return Verdict{Deferred, over, 0}
	}
	switch {
	case !r.List.Fits(of, tokens):
		return Verdict{Deferred, List, 0}
	case tokens > r.Tokens:
		r.full = true
		return Verdict{Deferred, Tokens, 0}
	}
	r.Take(of, tokens)
	return Verdict{Inline, why, 0}
}

// Over returns why no tool is admitted any more, or [Waits].
func (r *Room[K]) Over() Reason {
	switch {
	case r.Tools <= 0:
		return Count
	case r.full:
		return Tokens
	}
	return Waits
}
