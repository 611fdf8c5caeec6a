package mcphybrid

// An inlineRoom is what is left for inline tools.
type inlineRoom struct {
	tools, tokens int
	list          *listRoom // of a session's list

	full bool // a tool had too many tokens
}

// tryAdd adds a tool if the list has room, whatever the room for inline tools. It reports
// whether it did.
func (r *inlineRoom) tryAdd(of origin, tokens int) bool {
	fits := r.list.tryAdd(of, tokens)
	if fits {
		r.tools--
		r.tokens -= tokens
	}
	return fits
}

// verdictOn makes a tool inline, for this reason, if there is room. After the first tool
// with too many tokens there is room for no other. Otherwise a larger budget could replace
// tools instead of adding some. A tool for which the list has no room keeps out no
// other.
func (r *inlineRoom) verdictOn(of origin, tokens int, because placementReason) verdict {
	if why, full := r.isFull(); full {
		return verdict{deferred, why, 0}
	}
	switch {
	case !r.list.fits(of, tokens):
		return verdict{deferred, whyListFull, 0}
	case tokens > r.tokens:
		r.full = true
		return verdict{deferred, whyTokens, 0}
	}
	r.tryAdd(of, tokens)
	return verdict{inline, because, 0}
}

// isFull reports whether there is room for no further tool, and why.
func (r *inlineRoom) isFull() (why placementReason, full bool) {
	switch {
	case r.tools <= 0:
		return whyCount, true
	case r.full:
		return whyTokens, true
	}
	return 0, false
}
