package config

import (
	"regexp"
	"slices"
	"strings"
)

var (
	beforeServer = regexp.MustCompile(`^[!+-]?\s*(?:mcp(?:__|[_/:(]))?`)
	behindServer = regexp.MustCompile(`__|[/:#(,]`)
	behindPrefix = regexp.MustCompile(`[_/:#(,]`)
)

// maxBehind is in how many places of a text the name of a server may end.
const maxBehind = 16

// mentions reports whether text is the name of a server, in any letter case, or that
// of a tool of one, as clients write it: "gh", "gh/x", "mcp__gh__*", "Mcp(gh:x)". A name
// may be cut by a *.
func (doc *document) mentions(text string) bool {
	text = strings.ToLower(text)
	bare := beforeServer.ReplaceAllString(text, "")
	return doc.begins(text, behindServer) || bare != text && (doc.begins(bare, behindPrefix) || strings.HasPrefix(bare, "*"))
}

// begins reports whether text begins with the name of a server, and then ends or goes on
// with behind.
func (doc *document) begins(text string, behind *regexp.Regexp) bool {
	is := func(name string) bool {
		_, found := slices.BinarySearch(doc.spellings, name)
		return found
	}
	for _, at := range behind.FindAllStringIndex(text, maxBehind) {
		if is(text[:at[0]]) {
			return true
		}
	}
	start, _, cut := strings.Cut(text, "*")
	i, _ := slices.BinarySearch(doc.spellings, start)
	return is(text) || cut && start != "" && i < len(doc.spellings) && strings.HasPrefix(doc.spellings[i], start)
}

// spell notes how clients may write the names of the servers.
func (doc *document) spell() {
	doc.spellings = nil
	for _, s := range doc.servers {
		for _, name := range []string{s.name, safeName(s.name, "", 1), safeName(s.name, ".:", 1)} {
			doc.spellings = append(doc.spellings, strings.ToLower(name))
		}
	}
	slices.Sort(doc.spellings)
	doc.spellings = slices.Compact(doc.spellings)
}
