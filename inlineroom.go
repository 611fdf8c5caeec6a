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
	u := r.list.useOf(of)
	fits := r.list.fits(u, tokens)
	if fits {
		r.add(u, tokens)
	}
	return fits
}

// add adds a tool of the server that takes u of the list, whether it fits or not.
func (r *inlineRoom) add(u *listUse, tokens int) {
	r.list.add(u, tokens)
	r.tools--
	r.tokens -= tokens
}

// verdictOn makes a tool inline, for this reason, if there is room. After the first tool
// with too many tokens there is room for no other. Otherwise a larger budget could replace
// tools instead of adding some. A tool for which the list has no room keeps out no
// other.
func (r *inlineRoom) verdictOn(of origin, tokens int, because placementReason) verdict {
	if why, full := r.isFull(); full {
		return verdict{deferred, why, 0}
	}
	u := r.list.useOf(of)
	switch {
	case !r.list.fits(u, tokens):
		return verdict{deferred, whyListFull, 0}
	case tokens > r.tokens:
		r.full = true
		return verdict{deferred, whyTokens, 0}
	}
	r.add(u, tokens)
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
