// Package names gives tools the names by which models call them. A name that a
// tool was given never means another tool: each server has a prefix of its own,
// and a name under one prefix is never a name under another.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcphybrid/mcphybrid/internal/text"
)

const (
	separator = "__" // between the prefix and the tool's own name

	// suffixLength is the length of the suffix that makes a name unique: an
	// underscore and a hash of 32 bits in hexadecimal.
	suffixLength = 1 + 8

	// maxPrefix is the length of the longest prefix that a name with a suffix
	// holds whole.
	maxPrefix = text.MaxName - suffixLength - len(separator)

	// MaxPrefixes is how many prefixes a [Book] gives. It takes none back.
	MaxPrefixes = 100_000
)

var (
	errPrefixes = fmt.Errorf("names are kept for %d servers, which is the limit", MaxPrefixes)
	errNames    = errors.New("the server has used up the names that need a hash")
)

// Wanted returns the prefix that a server asks for: "mcp_" and the server's name
// with every - replaced by _. A given prefix takes its place; one without "mcp_"
// gets it in front.
//
//	Wanted("my-server", "")     = "mcp_my_server"
//	Wanted("my-server", "ops")  = "mcp_ops"
func Wanted(server, given string) string {
	switch {
	case given == "":
		return "mcp_" + strings.ReplaceAll(server, "-", "_")
	case !strings.HasPrefix(given, "mcp_"):
		return "mcp_" + given
	}
	return given
}

var underscores = regexp.MustCompile("__+")

// A Claim says that a prefix belongs to a server.
type Claim struct {
	Server string `json:"server"`
	Wanted string `json:"wanted"` // the prefix that the server asked for
	Prefix string `json:"prefix"` // the one that it has
}

// Alone returns the claim of a server without others beside it.
func Alone(server, given string) Claim {
	wanted := Wanted(server, given)
	c := Claim{server, wanted, clean(wanted)}
	if len(c.Prefix) > maxPrefix {
		c.Prefix = withHash(c.Prefix, maxPrefix, server, 0)
	}
	return c
}

// Own returns the tool's own name, if name could be that of one of the server's
// tools and has no hash.
func (c Claim) Own(name string) (string, bool) { return strings.CutPrefix(name, c.Prefix+separator) }

// Name returns the name that the tool has if no other tool of the server has it:
// the prefix, two underscores and the tool's own name. A name that a provider would
// reject is made safe: it has underscores in place of other characters, is cut, and
// ends in a hash of the server's and the tool's name.
func (c Claim) Name(tool string) string {
	name := c.Prefix + separator + tool
	if text.IsSafeName(c.Wanted) && len(c.Wanted) <= maxPrefix && text.IsSafeName(name) {
		return name
	}
	return c.suffixed(tool, 0)
}

// Start returns how all names of the server's tools start. A name with a hash is cut
// behind it.
func (c Claim) Start() string { return c.Prefix + separator }

// suffixed returns a safe name that ends in a hash. Each try > 0 gives another one.
func (c Claim) suffixed(tool string, try int) string {
	return withHash(clean(c.Prefix+separator+tool), text.MaxName, c.Server+"\x00"+tool, try)
}

// clean returns s with an underscore in place of each unsafe character.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && text.IsSafeByte(byte(r)) {
			return r
		}
		return '_'
	}, s)
}

// withHash returns s, cut to length, with a hash of owner at its end.
func withHash(s string, length int, owner string, try int) string {
	if try > 0 {
		owner += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(owner))
	return s[:min(len(s), length-suffixLength)] + "_" + hex.EncodeToString(sum[:4])
}

// looksSuffixed reports whether name ends like a name with a hash.
func looksSuffixed(name string) bool {
	at := len(name) - suffixLength
	return at >= 0 && name[at] == '_' && strings.Trim(name[at+1:], "0123456789abcdef") == ""
}

// A Book gives prefixes and names, each once. It may be used concurrently.
type Book struct {
	below *Book // or nil: see [Book.Above]
	most  int   // names with a hash, for each prefix

	mu       sync.Mutex
	claims   map[[2]string]Claim // by server and wanted prefix
	prefixes Prefixes
	lent     bool // others have prefixes.sorted, which therefore only grows at its end

	// hashed has the owner of each name that ends like one with a hash, by
	// prefix and name: a hash of the tool's own name.
	hashed map[string]map[string][16]byte

	refused []Claim // by Restore
	told    int     // how many of them Refused has returned
}

// NewBook returns a Book that keeps at most so many names with a hash for each
// server.
func NewBook(most int) *Book {
	return &Book{
		most: most, claims: make(map[[2]string]Claim), hashed: make(map[string]map[string][16]byte),
	}
}

// Above returns a Book for further servers beside those of b. A server that b knows
// too has the same prefix in both. Another one gets none that b has given before.
func (b *Book) Above() *Book {
	above := NewBook(b.most)
	above.below = b
	return above
}

// Claim gives the server a prefix of its own: the one it wants, or if names under
// that one could be those of another server, one with a hash. first is then that
// server, else "". The same server gets the same prefix each time. Claim fails after
// [MaxPrefixes].
func (b *Book) Claim(server, given string) (c Claim, first string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	alone := Alone(server, given)
	c, known := b.claims[[2]string{server, alone.Wanted}]
	if !known {
		c = alone
		for try := 0; b.conflict(c.Prefix, server) != ""; try++ {
			// Without a separator inside, it begins like no other prefix.
			c.Prefix = withHash(strings.TrimRight(underscores.ReplaceAllLiteralString(alone.Prefix, "_"), "_"), maxPrefix, server, try)
		}
		if len(b.claims) == MaxPrefixes {
			return Claim{}, "", errPrefixes
		}
		b.add(c)
	}
	if c.Prefix != alone.Prefix {
		first = b.conflict(alone.Prefix, "")
	}
	return c, first, nil
}

// conflict returns the server whose names could begin with prefix, or "". A server
// below is in no conflict with itself.
func (b *Book) conflict(prefix, server string) string {
	if b.below != nil {
		b.below.mu.Lock()
		other := b.below.conflict(prefix, server)
		b.below.mu.Unlock()
		if other != "" && other != server {
			return other
		}
	}
	prefix += separator
	if server := b.prefixes.Server(prefix); server != "" {
		return server
	}
	if i := b.prefixes.after(prefix); i < b.prefixes.Len() && strings.HasPrefix(b.prefixes.at(i).begin, prefix) {
		return b.prefixes.at(i).server
	}
	return ""
}

// Prefixes are prefixes that a [Book] has given. None begins another.
type Prefixes struct {
	given  []prefix // by number; the Book appends to it
	sorted []int32  // their numbers, by begin
}

type prefix struct{ begin, server string } // begin has the separator

// Prefixes returns those that b has given so far, without those of a Book below.
func (b *Book) Prefixes() Prefixes {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent = true
	return b.prefixes
}

// Server returns the server to which a name belongs, or "" if it begins with none of
// the prefixes.
func (p Prefixes) Server(name string) string {
	if n := p.Number(name); n >= 0 {
		return p.given[n].server
	}
	return ""
}

// Prefix returns the prefix with which name begins, or "".
func (p Prefixes) Prefix(name string) string {
	if n := p.Number(name); n >= 0 {
		return strings.TrimSuffix(p.given[n].begin, separator)
	}
	return ""
}

// Number returns the number of the prefix with which name begins, or -1 if it begins
// with none. They are numbered from 0 in the order in which they were given.
func (p Prefixes) Number(name string) int {
	// No prefix begins another, so one that begins name is the last before it.
	if i := p.after(name) - 1; i >= 0 && strings.HasPrefix(name, p.at(i).begin) {
		return int(p.sorted[i])
	}
	return -1
}

// Meeting returns the numbers of the prefixes with which a name can begin that begins with a prefix
// of others, ascending.
func (p Prefixes) Meeting(others Prefixes) (numbers []int) {
	for _, other := range others.given[:others.Len()] {
		i := p.after(other.begin)
		if i > 0 && strings.HasPrefix(other.begin, p.at(i-1).begin) {
			numbers = append(numbers, int(p.sorted[i-1]))
		}
		for ; i < p.Len() && strings.HasPrefix(p.at(i).begin, other.begin); i++ {
			numbers = append(numbers, int(p.sorted[i]))
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// Len returns how many prefixes there are.
func (p Prefixes) Len() int { return len(p.sorted) }

func (p Prefixes) at(i int) prefix { return p.given[p.sorted[i]] }

// after returns how many prefixes are not greater than name.
func (p Prefixes) after(name string) int {
	return sort.Search(p.Len(), func(i int) bool { return p.at(i).begin > name })
}

// Number returns the number of the prefix of c, which b has given.
func (b *Book) Number(c Claim) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prefixes.Number(c.Prefix + separator)
}

func (b *Book) add(c Claim) {
	b.claims[[2]string{c.Server, c.Wanted}] = c
	p, begin := &b.prefixes, c.Prefix+separator
	i := p.after(begin)
	if i < p.Len() && b.lent {
		p.sorted, b.lent = slices.Clone(p.sorted), false
	}
	p.sorted = append(p.sorted, 0)
	copy(p.sorted[i+1:], p.sorted[i:])
	p.sorted[i] = int32(len(p.given))
	p.given = append(p.given, prefix{begin, c.Server})
}

// Len returns how many claims there are.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.claims)
}

// Claims returns all claims, sorted by server and wanted prefix.
func (b *Book) Claims() []Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Claim, 0, len(b.claims))
	for _, c := range b.claims {
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].Server+"\x00"+list[i].Wanted < list[j].Server+"\x00"+list[j].Wanted
	})
	return list
}

// maxRefused is how many claims a Book keeps for [Book.Refused].
const maxRefused = 100

// Restore adds claims that another Book has given. Those of b count before them.
func (b *Book) Restore(claims []Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range claims {
		if known, ok := b.claims[[2]string{c.Server, c.Wanted}]; ok {
			if known != c {
				b.refuse(c)
			}
			continue
		}
		ok := c.Server != "" && strings.HasPrefix(c.Wanted, "mcp_") && strings.HasPrefix(c.Prefix, "mcp_") &&
			len(c.Prefix) <= maxPrefix && text.IsSafeName(c.Prefix)
		if !ok || len(b.claims) == MaxPrefixes || b.conflict(c.Prefix, c.Server) != "" {
			b.refuse(c)
			continue
		}
		b.add(c)
	}
}

func (b *Book) refuse(c Claim) {
	if len(b.refused) < maxRefused && !slices.Contains(b.refused, c) {
		b.refused = append(b.refused, c)
	}
}

// Refused returns the claims that [Book.Restore] did not add since the last call:
// they are malformed, in conflict with what b has given, or too many. It returns
// each once, and at most 100 in all.
func (b *Book) Refused() []Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	refused := slices.Clone(b.refused[b.told:])
	b.told = len(b.refused)
	return refused
}

// Merge returns what a store should have that has the stored claims and gets further
// ones. Where two are in conflict, the stored one stays: another process may have
// used it.
func Merge(stored, further []Claim) []Claim {
	book := NewBook(0)
	book.Restore(stored)
	book.Restore(further)
	return book.Claims()
}

// Name returns the registered name of a tool of the server with that claim. It is
// [Claim.Name], unless another tool of the server got that before: then it has
// another hash. It fails if the server has used up its names with a hash.
func (b *Book) Name(c Claim, tool string) (string, error) {
	name := c.Name(tool)
	if !looksSuffixed(name) {
		return name, nil // no other tool's name is like it
	}
	sum := sha256.Sum256([]byte(tool))
	owner := [16]byte(sum[:])
	b.mu.Lock()
	defer b.mu.Unlock()
	given := b.hashed[c.Prefix]
	for try := 0; ; try++ {
		if other, taken := given[name]; !taken {
			break
		} else if other == owner {
			return name, nil
		}
		name = c.suffixed(tool, try)
	}
	if len(given) >= b.most {
		return "", errNames
	}
	if given == nil {
		given = make(map[string][16]byte)
		b.hashed[c.Prefix] = given
	}
	given[name] = owner
	return name, nil
}
