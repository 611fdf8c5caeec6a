package mcphybrid

import "slices"

// Access says by name which tools may be used. Each entry is a name or a
// pattern, in which * stands for any run of characters and ? for one. The zero
// value permits every tool.
type Access struct {
	// Allow, if not empty, lists the only tools that may be used.
	Allow []string

	// Deny lists tools that may not be used, allowed or not.
	Deny []string
}

// permits reports whether a allows name and does not deny it.
func (a Access) permits(name string) bool {
	return !matchAny(a.Deny, name) && (len(a.Allow) == 0 || matchAny(a.Allow, name))
}

// empty reports whether a permits everything.
func (a Access) empty() bool { return len(a.Allow) == 0 && len(a.Deny) == 0 }

func (a Access) clone() Access {
	return Access{Allow: slices.Clone(a.Allow), Deny: slices.Clone(a.Deny)}
}

// rights are what a session may use: what all of them permit. None permit
// everything.
type rights []Access

func (r rights) permit(name string) bool {
	return !slices.ContainsFunc(r, func(a Access) bool { return !a.permits(name) })
}

// and returns r, further restricted to a.
func (r rights) and(a Access) rights {
	if a.empty() {
		return r
	}
	return append(slices.Clip(r), a.clone())
}

// mayUse reports whether r does not deny a meta tool. An allow list is about
// the servers' tools: it need not name the meta tools.
func (r rights) mayUse(meta string) bool {
	return !slices.ContainsFunc(r, func(a Access) bool { return matchAny(a.Deny, meta) })
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match([]rune(p), []rune(name)) })
}

// match reports whether pattern stands for name. It is not path.Match, for
// which a slash is no ordinary character: a deny rule "*" must not let a tool
// named "a/b" pass.
func match(pattern, name []rune) bool {
	p, n := 0, 0
	star, from := -1, 0 // the last * seen, and where in name the rest was last tried
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0: // let the * stand for one more
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
