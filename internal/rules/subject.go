package rules

import "strings"

// A Subject is what patterns are matched with: the names of a tool, a resource, a skill or a
// whole server.
type Subject struct {
	Name   string `json:"name"` // registered
	Server string `json:"server"`
	Own    string `json:"own"` // the name on its server

	// Wanted is the registered name that the tool would have if no other server
	// had its server's prefix, or "" if that is Name.
	Wanted string `json:"wanted,omitempty"`

	// URI is that of a resource, or "" for what has none. A pattern server/URI is
	// about it too.
	URI string `json:"-"`

	// Forms are others that URI can be taken for. What forbids one of them forbids
	// the resource; nothing else looks at them.
	Forms []string `json:"-"`

	// Within says that the patterns are about the tools of this server alone: then
	// each is about the own name too, whatever its form.
	Within bool `json:"-"`
}

// A form says which names a pattern is about.
type form uint8

const (
	formName form = iota // the registered name: the pattern begins with mcp_
	formPath             // server/tool: the pattern has a slash
	formAny              // the registered or the own name
	formURI              // server/URI: a formPath in lower case
	forms
)

func formOf(pattern string) form {
	switch {
	case strings.Contains(pattern, "/"):
		return formPath
	case strings.HasPrefix(pattern, "mcp_"):
		return formName
	}
	return formAny
}

func (t Subject) path() string { return t.Server + "/" + t.Own }

// Caseless returns how many of the first bytes of a URI have a case that means nothing:
// those of the scheme and the host.
func Caseless(uri string) int {
	scheme, rest, found := strings.Cut(uri, ":")
	if !found || strings.ContainsAny(scheme, "/?#") { // a colon in a path
		return 0
	}
	n := len(scheme) + 1
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		n += 2
		if host := strings.IndexAny(after, "/?#"); host >= 0 {
			return n + host
		}
		return len(uri)
	}
	return n
}

// matchesURI reports whether pattern matches the URI behind begin, in whatever case its
// scheme and host are.
func (t Subject) matchesURI(pattern, begin string) bool {
	return t.URI != "" && match(pattern, begin+t.URI, len(begin), len(begin)+Caseless(t.URI))
}

// mayBegin reports whether what pattern matches may begin with server. Most patterns are about one
// server, and no path needs to be put together to see that it is another.
func mayBegin(pattern, server string) bool {
	for i := range min(len(pattern), len(server)) {
		if c := pattern[i]; c == '*' || c == '?' {
			return true
		} else if c != server[i] {
			return false
		}
	}
	return true
}

// Matches reports whether pattern matches t. A pattern with a slash is about the
// server's and the tool's own name, as in github/create_*; one that begins with
// mcp_ is about the registered name; any other is about both the registered and
// the own name.
//
// So a server can't choose an own name that a pattern for other servers matches.
func (t Subject) Matches(pattern string) bool {
	if t.Within && (Match(pattern, t.Own) || t.matchesURI(pattern, "")) {
		return true
	}
	switch formOf(pattern) {
	case formPath:
		return mayBegin(pattern, t.Server) && (Match(pattern, t.path()) || t.matchesURI(pattern, t.Server+"/"))
	case formName:
		return Match(pattern, t.Name)
	}
	return Match(pattern, t.Name) || t.Own != "" && Match(pattern, t.Own)
}

// MatchesAny reports whether one of patterns matches t.
func (t Subject) MatchesAny(patterns []string) bool {
	for _, p := range patterns {
		if t.Matches(p) {
			return true
		}
	}
	return false
}

// Forbidden reports whether one of patterns matches t, or matches the name that t
// would have if its prefix were not another server's. A name that is forbidden
// stays so when its tool has to be named differently, and a URI however it is spelled.
func (t Subject) Forbidden(patterns []string) bool {
	if t.MatchesAny(patterns) || t.Wanted != "" && MatchAny(patterns, t.Wanted) {
		return true
	}
	for _, t.URI = range t.Forms {
		if t.MatchesAny(patterns) {
			return true
		}
	}
	return false
}
