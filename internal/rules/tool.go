package rules

import "strings"

// A Tool is what patterns see of a tool.
type Tool struct {
	Name   string `json:"name"` // registered
	Server string `json:"server"`
	Own    string `json:"own"` // the name on its server

	// Wanted is the registered name that the tool would have if no other server
	// had its server's prefix, or "" if that is Name.
	Wanted string `json:"wanted,omitempty"`

	// URI is that of a resource, or "" for what has none. A pattern server/URI is
	// about it too.
	URI string `json:"-"`

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
	formURI              // server/URI: a formPath with a folded URI
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

func (t Tool) path() string { return t.Server + "/" + t.Own }

// foldedURI returns t.URI with its scheme and its host in lower case.
func (t Tool) foldedURI() string {
	if scheme, _, _ := strings.Cut(t.URI, ":"); strings.Contains(scheme, "/") {
		return t.URI // a colon in a path
	}
	return fold(t.URI, "/?#")
}

// foldPattern folds a pattern for URIs, or for the URIs of a server. A ? in it is a
// wildcard.
func foldPattern(pattern string) string { return fold(pattern, "/#") }

// fold returns a URI, or a pattern for one, with its scheme and its host in lower case.
// Their case means nothing, as that of a path does. The host ends before one of ends.
func fold(uri, ends string) string {
	scheme, rest, found := strings.Cut(uri, ":")
	if !found {
		return uri
	}
	server := strings.LastIndexByte(scheme, '/') + 1 // what a pattern has before the URI
	host := 0
	if strings.HasPrefix(rest, "//") {
		if host = strings.IndexAny(rest[2:], ends) + 2; host < 2 {
			host = len(rest)
		}
	}
	return scheme[:server] + strings.ToLower(scheme[server:]) + ":" + strings.ToLower(rest[:host]) + rest[host:]
}

// matchesURI reports whether pattern matches the URI behind begin, in whatever case its
// scheme and host are.
func (t Tool) matchesURI(pattern, begin string) bool {
	return t.URI != "" && (Match(pattern, begin+t.URI) || Match(foldPattern(pattern), begin+t.foldedURI()))
}

// Matches reports whether pattern matches t. A pattern with a slash is about the
// server's and the tool's own name, as in github/create_*; one that begins with
// mcp_ is about the registered name; any other is about both the registered and
// the own name.
//
// So a server can't choose an own name that a pattern for other servers matches.
func (t Tool) Matches(pattern string) bool {
	if t.Within && (Match(pattern, t.Own) || t.matchesURI(pattern, "")) {
		return true
	}
	switch formOf(pattern) {
	case formPath:
		return Match(pattern, t.path()) || t.matchesURI(pattern, t.Server+"/")
	case formName:
		return Match(pattern, t.Name)
	}
	return Match(pattern, t.Name) || t.Own != "" && Match(pattern, t.Own)
}

// MatchesAny reports whether one of patterns matches t.
func (t Tool) MatchesAny(patterns []string) bool {
	for _, p := range patterns {
		if t.Matches(p) {
			return true
		}
	}
	return false
}

// Forbidden reports whether one of patterns matches t, or matches the name that t
// would have if its prefix were not another server's. A name that is forbidden
// stays so when its tool has to be named differently.
func (t Tool) Forbidden(patterns []string) bool {
	return t.MatchesAny(patterns) || t.Wanted != "" && MatchAny(patterns, t.Wanted)
}
