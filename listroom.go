package mcphybrid

import "slices"

// listLimits bound a list. Each is a largest number.
type listLimits struct {
	items, tokens         int // of all servers together
	itemsEach, tokensEach int // of one server
}

// A listUse is what items take.
type listUse struct{ items, tokens int }

// A listRoom is what is left of a list for the items of servers.
type listRoom struct {
	limits listLimits
	all    listUse
	of     map[origin]*listUse
}

// newListRoom returns the room in an empty list.
func newListRoom(l listLimits) *listRoom { return &listRoom{limits: l, of: make(map[origin]*listUse)} }

// useOf returns what the items of a server take.
func (r *listRoom) useOf(of origin) *listUse {
	u := r.of[of]
	if u == nil {
		u = new(listUse)
		r.of[of] = u
	}
	return u
}

// add adds an item of the server that takes u, whether it fits or not.
func (r *listRoom) add(u *listUse, tokens int) {
	for _, u := range []*listUse{&r.all, u} {
		u.items++
		u.tokens += tokens
	}
}

// fits reports whether there is room for an item of the server that takes u.
func (r *listRoom) fits(u *listUse, tokens int) bool {
	l := r.limits
	return r.all.hasRoom(tokens, l.items, l.tokens) && u.hasRoom(tokens, l.itemsEach, l.tokensEach)
}

// tryAdd adds an item if it fits, and reports whether it does.
func (r *listRoom) tryAdd(of origin, tokens int) bool {
	u := r.useOf(of)
	fits := r.fits(u, tokens)
	if fits {
		r.add(u, tokens)
	}
	return fits
}

// hasRoom reports whether one more item of so many tokens leaves u within the limits.
func (u listUse) hasRoom(tokens, maxItems, maxTokens int) bool {
	return u.items < maxItems && tokens <= maxTokens-u.tokens
}

// A namedRoom is a list of named items with their room. A name that is listed takes
// no more.
type namedRoom struct {
	room   *listRoom
	listed map[string]bool
	closed map[string]bool
}

// newNamedRoom returns an empty list, for about so many items.
func newNamedRoom(l listLimits, items int) *namedRoom {
	return &namedRoom{newListRoom(l), make(map[string]bool, items), make(map[string]bool)}
}

// note lists a name that takes no room.
func (n *namedRoom) note(name string) { n.listed[name] = true }

// forget has a name take room again, beside what it took.
func (n *namedRoom) forget(name string) { delete(n.listed, name) }

// add lists an item whether it fits or not.
func (n *namedRoom) add(name string, of origin, tokens int) {
	if !n.listed[name] {
		n.note(name)
		n.room.add(n.room.useOf(of), tokens)
	}
}

// close refuses that name from here on.
func (n *namedRoom) close(name string) { n.closed[name] = true }

// tryAdd lists an item if it fits and is not closed, and reports whether it is listed.
func (n *namedRoom) tryAdd(name string, of origin, tokens int) bool {
	if n.closed[name] {
		return false
	}
	n.listed[name] = n.listed[name] || n.room.tryAdd(of, tokens)
	return n.listed[name]
}

// roomLeft returns what is left of the list, after what it has and will have of
// tools: see [ListOptions]. It is closed to a tool that has been taken back too often.
// It is nil if active tools take no room: with ByBridge they are not in the list, and
// with ByProvider its first items are all tools. The caller holds mu.
func (s *Session) roomLeft(now *partition, tools ...[]*BridgeTool) *namedRoom {
	if d := s.Disclosure(); d == ByBridge || d == ByProvider && s.shown == nil {
		return nil
	}
	limits := now.policy.list
	if !mayUse(now.rights, SearchToolName) { // nothing can be deferred
		limits.items, limits.itemsEach = max(limits.items, len(now.inlineTools)), max(limits.itemsEach, len(now.inlineTools))
		limits.tokens, limits.tokensEach = NoLimit, NoLimit
	}
	left := newNamedRoom(limits, len(s.shown))
	versions := make(map[string]int, len(s.shown))
	add := func(t *BridgeTool) { left.add(t.name, t.origin(), s.tenant.toolTokens(t)) }
	for _, e := range s.shown {
		if e.isTool() {
			versions[e.tool.name]++
		}
		switch e.slot {
		case asRemoved:
			left.forget(e.tool.name)
			if versions[e.tool.name] == maxVersions {
				left.close(e.tool.name)
			}
		case asDeferred:
			if s.transcriptCopy().loads { // the conversation has it in full
				add(e.tool)
			} else {
				left.note(e.tool.name)
			}
		case asTool:
			add(e.tool)
		}
	}
	for _, t := range slices.Concat(tools...) {
		add(t)
	}
	return left
}

// tryAdd reports whether left has room for t, which takes it.
func (s *Session) tryAdd(left *namedRoom, t *BridgeTool) bool {
	return left == nil || left.tryAdd(t.name, t.origin(), s.tenant.toolTokens(t))
}
